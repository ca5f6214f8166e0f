#pragma once
// Lowering of each operator family. Each function plans and emits one layer for the node and what follows it, and marks what it ran as
// done.
#include "workloads/lower/lowering.hpp"

namespace assay::workloads {

void lower_conv(Lowering& lowering, NodeId id);         ///< Conv, QLinearConv
void lower_matmul(Lowering& lowering, NodeId id);       ///< Gemm, MatMul, QLinearMatMul
void lower_elementwise(Lowering& lowering, NodeId id);  ///< arithmetic, activations, BatchNormalization, Quantize and DequantizeLinear
void lower_move(Lowering& lowering, NodeId id);         ///< Transpose, Reshape and the like that are no views; Concat
void lower_mapped(Lowering& lowering, NodeId id);       ///< Pad, Tile, nearest Resize and the like that are no views
void lower_interpolation(Lowering& lowering, NodeId id);  ///< Resize, Upsample: linear and cubic
void lower_block(Lowering& lowering, NodeId id);        ///< DepthToSpace, SpaceToDepth
void lower_reverse_sequence(Lowering& lowering, NodeId id);
void lower_trilu(Lowering& lowering, NodeId id);
void lower_gather(Lowering& lowering, NodeId id);        ///< Gather by constants, or by indices computed at run time
void lower_gather_list(Lowering& lowering, NodeId id);   ///< GatherElements, GatherND
void lower_scatter_list(Lowering& lowering, NodeId id);  ///< ScatterElements, ScatterND, Scatter
void lower_pool(Lowering& lowering, NodeId id);         ///< Max, Average, Lp and global pooling
void lower_reduce(Lowering& lowering, NodeId id);       ///< sums, means, extremes and norms over any dimensions
void lower_softmax(Lowering& lowering, NodeId id);

/// Copies a graph output that is only a view into a tensor of its own.
void lower_output_view(Lowering& lowering, ValueId value);

/// Runs the lowering that fits the node, or records it as a view of its input.
void lower_node(Lowering& lowering, NodeId id);

}  // namespace assay::workloads
