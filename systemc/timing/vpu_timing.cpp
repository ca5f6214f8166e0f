#include "systemc/timing/vpu_timing.hpp"

#include <algorithm>
#include <bit>

namespace assay::chip {
namespace {

using simkernel::Uop;

std::uint64_t multiply_saturating(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    return a != 0 && b > kMost / a ? kMost : std::min(a * b, kMost);
}

/// Slots of micro-operations [first, first + count).
std::uint64_t program_slots(const simkernel::VectorFields& f, std::uint32_t first, std::uint32_t count) {
    std::uint64_t slots = 0;
    for (std::uint32_t i = first; i < first + count && i < f.uop.size(); ++i) slots += uop_slots(static_cast<Uop>(f.uop[i] & 0xFFu));
    return slots;
}

}  // namespace

std::uint64_t uop_slots(Uop op) {
    switch (op) {
        case Uop::div_f32: return kVpuDivideSlots;
        case Uop::sqrt_f32: return kVpuSqrtSlots;
        case Uop::recip_f32:
        case Uop::rsqrt_f32:
        case Uop::exp2_f32:
        case Uop::log2_f32: return kVpuFunctionSlots;
        default: return 1;
    }
}

simkernel::Cycles vector_cycles(const simkernel::VectorFields& f, std::int64_t lanes) {
    const auto width = static_cast<std::uint64_t>(lanes);
    const std::uint64_t row_vectors = (f.count[0] + width - 1) / width;
    std::uint64_t vectors = row_vectors;
    for (std::size_t d = 1; d < f.count.size(); ++d) vectors = multiply_saturating(vectors, f.count[d]);
    std::uint64_t cycles = multiply_saturating(vectors, std::max<std::uint64_t>(1, program_slots(f, 0, f.pre_count)));

    if (f.reduce != 0 && f.carry_out == 0) {
        // Results: one a lane (vectors of them) when dimension 0 stays, one for the whole row when it is reduced.
        std::uint64_t results = f.reduce_lanes != 0 ? 1 : row_vectors;
        for (std::size_t d = 1 + f.reduce_dims; d < f.count.size(); ++d) results = multiply_saturating(results, f.count[d]);
        std::uint64_t each = std::max<std::uint64_t>(1, program_slots(f, f.pre_count, f.post_count));
        if (f.reduce_lanes != 0) each += kVpuTreeLevelCycles * static_cast<std::uint64_t>(std::bit_width(width) - 1);
        cycles += multiply_saturating(results, each);
    }
    return {std::min(cycles + kVpuPipelineCycles, std::uint64_t{1} << 62)};
}

}  // namespace assay::chip
