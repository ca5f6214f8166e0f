#pragma once
// Passes over the graph, in the order in which compile.cpp runs them.
#include <vector>

#include "workloads/graph/graph.hpp"

namespace assay::workloads {

/// Shapes, types and constants of every value, in topological order. A node whose inputs are all constants, or whose result depends only on
/// shapes, is folded: its outputs become constants. DequantizeLinear of a constant keeps the integers beside the result. Control flow whose
/// course is known is written out (flatten.hpp). Where a condition, a trip count or a shape depends only on inputs whose values are given
/// (Graph::input_values), these become constants and are recorded in Graph::bound_inputs. A shape that only the run decides makes its value
/// `dynamic`, and what reads it. Each node that fails is appended to `errors`; nodes that depend on it are skipped in silence.
void infer_and_fold(Graph& graph, std::vector<NodeError>& errors);

/// Output type and shape of one node whose inputs are known. Throws NodeError.
void infer_node(Graph& graph, NodeId id);

/// The same for operators that only move data (Slice, Gather, Resize, …). False: of another family, or the shape needs values that are
/// computed at run time.
bool infer_movement(Graph& graph, NodeId id);

/// The same for whatever the host evaluator runs, dynamic shapes included. Throws NodeError: an operator that nothing runs, inputs that do
/// not fit it.
void infer_on_host(Graph& graph, NodeId id);

/// Inputs of the node, not constant, whose values decide its course or the shape of its outputs.
std::vector<ValueId> deciding_inputs(const Graph& graph, NodeId id);

/// The node's outputs, all of whose inputs are constant (Shape and Size: known); empty when the operator is not one that is folded.
/// Throws NodeError.
std::vector<Tensor> fold_node(Graph& graph, NodeId id);

/// DequantizeLinear-10 of a constant: (x - zero point) * scale in fp32, by tensor or along `axis`. Throws NodeError.
void fold_dequantize(Graph& graph, NodeId id);

/// ONNX multidirectional broadcasting. Throws NodeError when the shapes do not broadcast.
Shape broadcast_shapes(NodeId id, const Shape& a, const Shape& b);

/// A negative axis counted from the end. Throws NodeError outside [-rank, rank).
std::int64_t normal_axis(NodeId id, std::int64_t axis, std::size_t rank);

}  // namespace assay::workloads
