#pragma once
// Cycles of one `vector` descriptor on the behavioural vector unit. A model (uncalibrated until the VPU exists in RTL): the micro-program is
// issued for one vector of L lanes at a time, streams have scratchpad ports of their own, reductions run beside the micro-program, and
// results leave through the lane tree.
#include "aurum_contract.hpp"
#include "simkernel/types.hpp"

namespace assay::chip {

/// Issue slots of one micro-operation for one vector: 1 for what a pipelined lane does every cycle; iterative divide and square root, and the
/// table-and-polynomial functions, hold the lane longer (one slot for each exact step of their algorithm in docs/numerics.md).
std::uint64_t uop_slots(simkernel::Uop op);

/// From decode to the last element written, without vpu.setup_cycles; at least 1. Saturates at 2^62 for absurd extents.
simkernel::Cycles vector_cycles(const simkernel::VectorFields& f, std::int64_t lanes);

inline constexpr std::uint64_t kVpuPipelineCycles = 8;   ///< read, convert, two-cycle multiply-add, round, convert, saturate, write
inline constexpr std::uint64_t kVpuDivideSlots = 12;     ///< radix-4: 24 quotient bits of fp32, two a cycle
inline constexpr std::uint64_t kVpuSqrtSlots = 12;       ///< as divide
inline constexpr std::uint64_t kVpuFunctionSlots = 4;    ///< recip, rsqrt, exp2, log2: table, then three dependent multiply-adds
inline constexpr std::uint64_t kVpuTreeLevelCycles = 2;  ///< one level of the lane tree

}  // namespace assay::chip
