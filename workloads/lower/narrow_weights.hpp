#pragma once
// Constant weights that lie in device memory as 8- or 4-bit integers and become bf16 on their way to the array.
//
// 8 bits: the elements of the block in the array's order, a byte each; the drain multiplies by the output's step.
// 4 bits: rows of K in pairs, row 2j in the low half of byte (j, n) and row 2j + 1 in the high one, then the steps as bf16, one for each output and
// kW4Group rows. Both parts of a block start at multiples of 64 bytes.
#include "workloads/lower/matrix_weights.hpp"

namespace assay::workloads {

/// Bytes of `rows` rows of `columns` outputs in 4 bits, and of their steps.
std::int64_t nibble_bytes(std::int64_t rows, std::int64_t columns);
std::int64_t step_bytes(std::int64_t rows, std::int64_t columns);

PackedWeights pack_w8(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan);
PackedWeights pack_w4(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan);

/// The vector unit's part, in the scratchpad: `elements` bytes at `from` to bf16 at `to`.
void widen_w8(Emitter& emitter, std::uint32_t from, std::uint32_t to, std::int64_t elements);
/// `rows` rows of `columns` outputs, packed at `from` with steps at `steps`, to bf16 at `to`; the first row begins a group.
void widen_w4(Emitter& emitter, std::uint32_t from, std::uint32_t steps, std::uint32_t to, std::int64_t rows, std::int64_t columns);

}  // namespace assay::workloads
