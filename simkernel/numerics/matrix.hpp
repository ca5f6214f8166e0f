#pragma once
// The matrix unit's arithmetic at host-vector speed (docs/numerics.md §matrix): int8 x int8 -> int32 (wrapping), and
// bf16 x bf16 -> fp32, one flushed fused multiply-add a step, sequential in k. Bit-exact with the RTL on every dispatch path.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aurum_contract.hpp"

namespace assay::simkernel {

/// Computes one `matmul` descriptor whose addresses have been checked. `a`, `w` and `acc` are host pointers to a_addr, w_addr and acc_addr.
/// May use the worker threads (simkernel/numerics/workers.hpp); returns when all values are written.
void run_matmul(const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc);

/// A `matmul` whose addresses have been checked, with host pointers to a_addr and w_addr.
struct MatmulCall {
    const MatmulFields* fields;
    const std::byte* a;
    const std::byte* w;
};
/// True if `next` adds to exactly the sums that `first` writes, so that both may be members of one chain.
bool continues(const MatmulFields& first, const MatmulFields& next);
/// The calls in order, each of which but the first continues it; bit for bit as one by one, and faster. `acc`: host pointer to their acc_addr.
void run_matmul_chain(std::span<const MatmulCall> calls, std::byte* acc);
/// The same by the definition, one scalar step at a time: the reference that the fast path is tested against.
void run_matmul_scalar(const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc);

/// Multiply-accumulates that the descriptor performs (grouped pairs that take no part are not counted).
std::uint64_t matmul_macs(const MatmulFields& f);

}  // namespace assay::simkernel
