#include <fmt/core.h>

#include <algorithm>

#include "support/error.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

bool inputs_known(const Graph& graph, const Node& node) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v == kNoValue || graph.value(v).known; });
}

bool foldable(const Graph& graph, const Node& node) {
    if (!node.domain.empty()) return false;
    if (node.op == "Shape" || node.op == "Size") return true;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v == kNoValue || graph.is_constant(v); });
}

bool keeps_order(const std::string& op) {
    return op == "Reshape" || op == "Identity" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Dropout";
}

bool fold(Graph& graph, NodeId id) {
    std::vector<Tensor> results = fold_node(graph, id);
    if (results.empty()) return false;
    Node& node = graph.node(id);
    for (std::size_t i = 0; i < results.size() && i < node.outputs.size(); ++i) {
        if (node.outputs[i] == kNoValue) continue;
        Value& v = graph.value(node.outputs[i]);
        v.dtype = results[i].dtype;
        v.shape = results[i].shape;
        v.known = true;
        v.constant = std::make_shared<const Tensor>(std::move(results[i]));
        if (node.op == "Constant")
            v.origin = v.name;
        else if (keeps_order(node.op))
            v.origin = graph.value(node.inputs[0]).origin;
    }
    node.folded = true;
    return true;
}

}  // namespace

void infer_and_fold(Graph& graph, std::vector<NodeError>& errors) {
    for (const NodeId id : graph.topological_order()) {
        const Node& node = graph.node(id);
        if (!inputs_known(graph, node)) continue;
        try {
            if (foldable(graph, node)) {
                if (node.op == "DequantizeLinear") {
                    fold_dequantize(graph, id);
                    continue;
                }
                if (!node.outputs.empty() && fold(graph, id)) continue;
            }
            infer_node(graph, id);
            for (const ValueId out : node.outputs)
                if (out != kNoValue && graph.value(out).known && element_count(graph.value(out).shape) == 0)
                    throw NodeError(
                        id, fmt::format("output is {}, which has no elements; nothing can be computed", to_string(graph.value(out).shape)));
            if (node.outputs.empty() || node.outputs[0] == kNoValue) throw NodeError(id, "the node has no output; repair the model");
        } catch (const NodeError& error) {
            errors.push_back(error);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::bad_input) throw;
            errors.emplace_back(id, error.what());
        }
    }
}

}  // namespace assay::workloads
