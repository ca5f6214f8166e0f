#pragma once
// ONNX protobuf to Graph: names, attributes, constants and bound input shapes. No operator semantics.
#include "workloads/compile.hpp"
#include "workloads/graph/graph.hpp"

namespace assay::workloads {

/// Throws Error(bad_input): opset out of range, an unbound dynamic dimension, an input shape that contradicts the model, a value defined
/// twice or never.
Graph import_model(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options);

/// Adds a node and, when it has subgraphs, what they capture. `index` and `name` are those that reports and layers carry; the protobuf's own
/// name is set to `name`. Throws Error(bad_input): a value defined twice, a malformed attribute.
NodeId import_node(Graph& graph, onnx::NodeProto proto, int index, const std::string& name);

/// "Conv-11": the operator with the version of its schema under the model's opset ("com.microsoft.Gelu" outside ai.onnx).
std::string op_with_version(const Node& node, int opset);

}  // namespace assay::workloads
