#pragma once
// Control flow whose course is known, and model-local functions, written out as plain nodes. Inner values of a node N (its name, or
// "Op_index" by its place in its graph) are named N/then/v, N/else/v, N/body.i/v (Loop and Scan, iteration i) and N/fn/v; the outputs of N
// are Identity of inner values. The golden reference writes the same names by code of its own.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/graph/graph.hpp"

namespace onnx {
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace assay::workloads {


/// A copy of the model's graph without calls of model-local functions, at any depth, and the original index of each of its nodes.
/// Throws Error(bad_input): functions that call themselves, or more than 2^17 nodes.
std::vector<int> inline_functions(const onnx::ModelProto& model, onnx::GraphProto& graph);

/// Replaces an If whose condition is constant, or a Loop or Scan whose trip count is, by the nodes it executes (at most 4096 of them).
/// False: the node stays. The caller connects the graph again. Throws NodeError.
bool flatten_control(Graph& graph, NodeId id);

}  // namespace assay::workloads
