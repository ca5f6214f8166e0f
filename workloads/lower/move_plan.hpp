#pragma once
// Movement that no single strided copy does: index lists cut into few strided pieces, and the copies and fills that carry them out.
#include <bit>
#include <span>

#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/vector_job.hpp"

namespace assay::workloads {

/// One strided box of a movement, in elements: index i of `extents` goes from from_offset + sum(i*from) to to_offset + sum(i*to).
struct Piece {
    Shape extents;  ///< none: one element
    std::vector<std::int64_t> from, to;
    std::int64_t from_offset = 0, to_offset = 0;
};

/// Strided pieces that together move element from[i] to to[i] for every i, in few pieces rather than the fewest: arithmetic progressions,
/// their repetition, and interleaved ones with a period of at most 16.
/// Example: from 0 0 1 1 2 2 to 0 1 2 3 4 5 is one piece of extents {3, 2}, from {1, 0}, to {2, 1}.
std::vector<Piece> cut_into_pieces(std::span<const std::int64_t> from, std::span<const std::int64_t> to);

/// Every combination of the parts' pieces: the parts are independent dimensions. Throws NodeError past 4096 of them.
std::vector<Piece> combine(NodeId id, const std::vector<std::vector<Piece>>& parts);

/// Value for value; integers stay integers when they would be quantised again as they were.
Expr passthrough(const Operand& operand, const Epilogue& tail);

/// The job that carries `piece` of `operand` (placing it when constant) to `out`.
VectorJob piece_job(Lowering& lowering, NodeId id, const Operand& operand, const Epilogue& tail, const Operand& out, const Piece& piece);

/// All of `operand` to the box of `out` that starts at element `out_offset` and has `out_strides` along the operand's dimensions.
VectorJob move_job(Lowering& lowering, NodeId id, const Operand& operand, const Epilogue& tail, const Operand& out, std::int64_t out_offset,
                   const std::vector<std::int64_t>& out_strides);

/// Ends the layer: "N elements by DMA".
void end_move(Lowering& lowering, NodeId id, const Epilogue& tail, const std::vector<Operand>& operands);

/// The bits of one element of `out` that hold `value`, quantised as `tail` says.
std::uint32_t element_bits(const Lowering& lowering, const Operand& out, const Epilogue& tail, double value);

/// Stores the pattern to every element of a box of `out`. Returns a step whose loads stand after everything of this.
std::int64_t emit_fill_box(Lowering& lowering, const Operand& out, std::int64_t offset, const Shape& extents, std::vector<std::int64_t> strides,
                           std::uint32_t pattern, std::int64_t step);

struct IndexMap;
/// The result's layout after the input's: the maps' dimensions in the order in which the input's lie, new ones outermost.
std::vector<int> perm_of_maps(const std::vector<IndexMap>& maps, const Operand& x);

std::vector<int> identity_perm(std::size_t rank);

}  // namespace assay::workloads
