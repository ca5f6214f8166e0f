#pragma once
// The host evaluator: ONNX operators as the specification has them, on host tensors. What the chip has no instruction for runs here;
// the passes fold constants and infer shapes with it. It shares no code with golden/, which judges it.
//
// Arithmetic: float operators compute in double and round once to the element type; integers are exact and wrap. A node makes at most
// 2^28 elements and a graph executes a bounded number of nodes, whatever a model asks for.
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace assay::workloads::hostops {

/// A node or value may not hold more elements than this.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

/// True when `evaluate` knows the ai.onnx operator under this opset (7 to the newest; a newer opset is taken as the newest known).
bool supports(const std::string& op, int opset);

/// Why `supports` is false: "a random operator: its result is not a function of its inputs", …; never empty.
std::string unsupported_reason(const std::string& op);

/// The node's outputs, node.output_size() of them; an output without a name may be an empty tensor. `inputs` are those of the node in
/// order, null for an absent optional one; for If, Loop and Scan the values named by `captured_names` follow, in that order.
/// Throws Error(bad_input) that says what is wrong; the caller knows file and node and puts them before it.
std::vector<Tensor> evaluate(const onnx::NodeProto& node, int opset, std::span<const Tensor* const> inputs);

/// Values of outer graphs that the subgraphs of a node read, each once, in order of first use; empty for a node without subgraphs.
std::vector<std::string> captured_names(const onnx::NodeProto& node);

/// Runs a whole graph, model-local functions included. `inputs` holds graph inputs by name (those with an initialiser may be absent);
/// the result, the graph's outputs by name. Throws Error(bad_input) naming the node.
std::map<std::string, Tensor> evaluate_model(const onnx::ModelProto& model, const std::map<std::string, Tensor>& inputs);

}  // namespace assay::workloads::hostops
