#include "systemc/semaphore_file.hpp"

#include <limits>

namespace assay::chip {

std::uint32_t SemaphoreFile::value(std::uint32_t index, Cycles at) {
    Cell& cell = cells_[index];
    if (cell.pending_at < at) {
        cell.seen += cell.pending;
        cell.pending = 0;
    }
    return cell.seen;
}

bool SemaphoreFile::signal(std::uint32_t index, std::uint32_t add, Cycles at) {
    Cell& cell = cells_[index];
    const std::uint32_t seen = value(index, at);  // commits what is older than this cycle
    const std::uint64_t total = std::uint64_t{seen} + cell.pending + add;
    if (total > std::numeric_limits<std::uint32_t>::max()) return false;
    cell.pending += add;
    cell.pending_at = at;
    for (const Waiter& waiter : waiters_)
        if (waiter.index == index) waiter.who->wake_at(at + Cycles{1});
    return true;
}

void SemaphoreFile::forget(const TimedProcess& who) {
    std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.who == &who; });
}

void SemaphoreFile::clear() {
    for (Cell& cell : cells_) cell = {};
    waiters_.clear();
}

}  // namespace assay::chip
