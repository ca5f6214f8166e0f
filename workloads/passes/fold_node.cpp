// Constants made of constants, by the host evaluator.
#include <onnx/onnx_pb.h>

#include "support/error.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

/// Shape and Size read no element: a stand-in of the value's shape would cost its memory.
std::vector<Tensor> fold_shape(const Node& node, const Shape& all) {
    if (node.op == "Size") return {make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{element_count(all)})};
    const auto rank = static_cast<std::int64_t>(all.size());
    const auto bound = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const std::int64_t start = bound(node.integer("start", 0)), end = std::max(start, bound(node.integer("end", rank)));
    return {make_tensor<std::int64_t>(DType::i64, {end - start}, std::vector(all.begin() + start, all.begin() + end))};
}

}  // namespace

std::vector<Tensor> fold_node(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    if (!hostops::supports(node.op, graph.opset)) return {};
    if (node.op == "Shape" || node.op == "Size") {
        if (node.input(0) == kNoValue) throw NodeError(id, "input 0 is missing; repair the model");
        return fold_shape(node, graph.value(node.inputs[0]).shape);
    }
    std::vector<const Tensor*> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(input == kNoValue ? nullptr : graph.value(input).constant.get());
    for (const ValueId capture : node.captures) inputs.push_back(graph.value(capture).constant.get());
    try {
        return hostops::evaluate(*node.proto, graph.opset, inputs);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
        throw NodeError(id, error.what());
    }
}

}  // namespace assay::workloads
