#include "systemc/semaphore_file.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace assay::chip {

std::uint32_t SemaphoreFile::value(std::uint32_t index, Cycles at) {
    Cell& cell = cells_[index];
    auto next = cell.pending.begin();
    for (; next != cell.pending.end() && next->seen_at <= at; ++next) cell.seen += next->add;
    cell.pending.erase(cell.pending.begin(), next);
    return cell.seen;
}

std::optional<Cycles> SemaphoreFile::next_change(std::uint32_t index, Cycles at) const {
    for (const Signal& signal : cells_[index].pending)
        if (signal.seen_at > at) return signal.seen_at;
    return std::nullopt;
}

bool SemaphoreFile::signal(std::uint32_t index, std::uint32_t add, Cycles at) {
    std::uint64_t total = std::uint64_t{value(index, at)} + add;
    Cell& cell = cells_[index];
    for (const Signal& signal : cell.pending) total += signal.add;
    if (total > std::numeric_limits<std::uint32_t>::max()) return false;
    const Cycles seen_at = at + Cycles{1} + delay_;
    cell.pending.push_back({add, seen_at});
    for (const Waiter& waiter : waiters_)
        if (waiter.index == index) waiter.who->wake_at(seen_at);
    return true;
}

void SemaphoreFile::forget(const TimedProcess& who) {
    std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.who == &who; });
}

void SemaphoreFile::clear() {
    for (Cell& cell : cells_) cell = {};
}

bool SemaphoreFile::whole_words(std::uint64_t offset, std::uint64_t bytes) const {
    return offset % 4 == 0 && bytes % 4 == 0 && offset <= size() * 4 && bytes <= size() * 4 - offset;
}

bool SemaphoreFile::read(std::uint64_t offset, std::span<std::byte> out, Cycles at) {
    if (!whole_words(offset, out.size())) return false;
    for (std::uint64_t i = 0; i < out.size(); i += 4) {
        const std::uint32_t seen = value(static_cast<std::uint32_t>((offset + i) / 4), at);
        std::memcpy(out.data() + i, &seen, 4);
    }
    return true;
}

bool SemaphoreFile::write(std::uint64_t offset, std::span<const std::byte> in) {
    if (!whole_words(offset, in.size())) return false;
    for (std::uint64_t i = 0; i < in.size(); i += 4) {
        Cell& cell = cells_[(offset + i) / 4];
        std::memcpy(&cell.seen, in.data() + i, 4);
        cell.pending.clear();
    }
    return true;
}

}  // namespace assay::chip
