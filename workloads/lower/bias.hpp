#pragma once
// Scales and bias of a matrix operator, as it is given them.
#include "workloads/lower/matrix.hpp"

namespace assay::workloads {

/// Integer layers start at scale sx * sw[o]; float ones at 1.
void start_affine(MatrixSpec& spec);

/// Adds the bias input (factor times it) if there is one: exactly, to the accumulator, when it is int32 in units of the scale so far; else
/// to the shift. Throws NodeError when it is not a constant for each output.
void add_bias(const Graph& graph, NodeId id, MatrixSpec& spec, ValueId bias, double factor);

/// Weights of QLinearConv and QLinearMatMul: integers, with scale and zero point at inputs `scale` and `zero`.
void bind_qlinear_weights(const Graph& graph, NodeId id, ConstantWeights& weights, std::int64_t outputs, std::size_t scale,
                          std::size_t zero);

}  // namespace assay::workloads
