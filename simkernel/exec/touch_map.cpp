#include "simkernel/exec/touch_map.hpp"

#include <algorithm>
#include <iterator>

namespace assay::simkernel {
namespace {

/// Readers of one segment that are kept before finished ones are looked for.
constexpr std::size_t kManyReaders = 8;

}  // namespace

std::pair<std::uint64_t, std::uint64_t> bounds(const AccessRange& range) {
    __extension__ typedef __int128 Wide;
    Wide low = static_cast<Wide>(range.base), high = low + static_cast<Wide>(range.run);
    for (const auto& [count, stride] : range.dims) {
        const Wide reach = static_cast<Wide>(stride) * (static_cast<Wide>(count) - 1);
        (reach < 0 ? low : high) += reach;
    }
    if (low < 0 || high > static_cast<Wide>(UINT64_MAX)) return {0, UINT64_MAX};
    return {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)};
}

TouchMap::TouchMap(const ChipConfig& config, std::size_t most_unfinished)
    : named_(most_unfinished, kNobody), memories_(static_cast<std::size_t>(1 + 2 * config.cores)) {}

TouchMap::Memory& TouchMap::memory_of(std::uint32_t core, const AccessRange& range) {
    if (range.space == AccessRange::Space::ext) return memories_[0];
    return memories_[1 + 2 * core + (range.space == AccessRange::Space::acc ? 1 : 0)];
}

TouchMap::Memory::iterator TouchMap::first_overlap(Memory& memory, std::uint64_t low) {
    auto at = memory.upper_bound(low);
    if (at != memory.begin() && std::prev(at)->second.high > low) --at;
    return at;
}

void TouchMap::followed(std::uint32_t core, const std::vector<AccessRange>& ranges, Id id, Id oldest, std::vector<Id>& before) {
    const auto add = [&](Id other) {
        if (other == kNobody || other < oldest) return;
        Id& named = named_[other % named_.size()];
        if (named == id) return;
        named = id;
        before.push_back(other);
    };
    for (const AccessRange& range : ranges) {
        const auto [low, high] = bounds(range);
        Memory& memory = memory_of(core, range);
        for (auto at = first_overlap(memory, low); at != memory.end() && at->first < high; ++at) {
            add(at->second.writer);
            if (range.write)
                for (const Id reader : at->second.readers) add(reader);
        }
    }
}

void TouchMap::note(std::uint32_t core, const std::vector<AccessRange>& ranges, Id id, Id oldest) {
    for (const AccessRange& range : ranges) {
        const auto [low, high] = bounds(range);
        Memory& memory = memory_of(core, range);
        range.write ? write(memory, low, high, id) : read(memory, low, high, id, oldest);
    }
}

/// Makes `at` the border of two segments if it lies inside one.
void TouchMap::split(Memory& memory, std::uint64_t at) {
    const auto inside = first_overlap(memory, at);
    if (inside == memory.end() || inside->first >= at) return;
    Segment upper = inside->second;
    inside->second.high = at;
    memory.emplace_hint(std::next(inside), at, std::move(upper));
}

void TouchMap::write(Memory& memory, std::uint64_t low, std::uint64_t high, Id id) {
    split(memory, low);
    split(memory, high);
    const auto first = memory.lower_bound(low);
    if (first != memory.end() && first->first == low) {  // the usual case: a buffer is written again
        memory.erase(std::next(first), memory.lower_bound(high));
        first->second.high = high;
        first->second.writer = id;
        first->second.readers.clear();
        return;
    }
    const auto next = memory.erase(first, memory.lower_bound(high));
    memory.emplace_hint(next, low, Segment{high, id, {}});
}

void TouchMap::read(Memory& memory, std::uint64_t low, std::uint64_t high, Id id, Id oldest) {
    split(memory, low);
    split(memory, high);
    std::uint64_t covered = low;
    for (auto at = memory.lower_bound(low); covered < high;) {
        if (at == memory.end() || at->first > covered) {  // bytes that nobody touched before
            const std::uint64_t end = at == memory.end() ? high : std::min(high, at->first);
            at = std::next(memory.emplace_hint(at, covered, Segment{end, kNobody, {id}}));
            covered = end;
            continue;
        }
        std::vector<Id>& readers = at->second.readers;
        if (at->second.writer != id && (readers.empty() || readers.back() != id)) {
            if (readers.size() >= kManyReaders) std::erase_if(readers, [&](Id reader) { return reader < oldest; });
            readers.push_back(id);
        }
        covered = at->second.high;
        ++at;
    }
}

}  // namespace assay::simkernel
