#pragma once
// Who touched which bytes last: finds for each new descriptor the earlier ones whose order with it matters to some byte. A strided access counts
// as the interval that bounds it, so the answer is conservative and never wrong.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "simkernel/exec/decode.hpp"

namespace assay::simkernel {

class TouchMap {
public:
    using Id = std::uint64_t;

    /// `most_unfinished`: an id less the oldest unfinished one stays below it.
    TouchMap(const ChipConfig& config, std::size_t most_unfinished);

    /// Appends to `before` whom descriptor `id` of `core` with these accesses must follow among those noted with ids of at least `oldest`: writers
    /// of what it touches, and readers of what it writes. Once for each id.
    void followed(std::uint32_t core, const std::vector<AccessRange>& ranges, Id id, Id oldest, std::vector<Id>& before);
    /// Notes that `id` touches the ranges, after all that were noted before. Readers older than `oldest` may be forgotten.
    void note(std::uint32_t core, const std::vector<AccessRange>& ranges, Id id, Id oldest);

private:
    static constexpr Id kNobody = ~Id{0};
    struct Segment {
        std::uint64_t high = 0;
        Id writer = kNobody;
        std::vector<Id> readers;  ///< since it wrote
    };
    /// Segments of one memory by their first byte. They do not overlap; bytes in none were never touched.
    using Memory = std::map<std::uint64_t, Segment>;

    Memory& memory_of(std::uint32_t core, const AccessRange& range);
    static Memory::iterator first_overlap(Memory& memory, std::uint64_t low);
    static void split(Memory& memory, std::uint64_t at);
    static void write(Memory& memory, std::uint64_t low, std::uint64_t high, Id id);
    static void read(Memory& memory, std::uint64_t low, std::uint64_t high, Id id, Id oldest);

    std::vector<Id> named_;         ///< by id, modulo its size: for whom followed() named it last
    std::vector<Memory> memories_;  ///< external, then scratchpad and accumulator of each core
};

/// Bytes [low, high) that hold the whole range; everything when it leaves the address space.
std::pair<std::uint64_t, std::uint64_t> bounds(const AccessRange& range);

}  // namespace assay::simkernel
