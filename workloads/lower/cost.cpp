#include "workloads/lower/cost.hpp"

#include <algorithm>
#include <set>

namespace assay::workloads {
namespace {

std::uint64_t elements(const Graph& graph, ValueId value) {
    if (value == kNoValue || !graph.value(value).known || graph.value(value).dynamic) return 0;
    return static_cast<std::uint64_t>(element_count(graph.value(value).shape));
}

std::int64_t dim(const Graph& graph, ValueId value, std::size_t i) {
    if (value == kNoValue) return 0;
    const Shape& shape = graph.value(value).shape;
    return i < shape.size() ? shape[i] : 1;
}

bool moves_only(const std::string& op) {
    static const std::set<std::string> movement{
        "Cast",        "CastLike",     "CenterCropPad",  "Compress",   "Concat",     "Constant", "ConstantOfShape", "DepthToSpace", "Dropout",
        "Expand",      "EyeLike",      "Flatten",        "Gather",     "GatherElements", "GatherND", "Identity",    "OneHot",       "Pad",
        "Range",       "Reshape",      "ReverseSequence", "Scatter",   "ScatterElements", "ScatterND", "Shape",    "Size",         "Slice",
        "SpaceToDepth", "Split",       "Squeeze",        "Tile",       "Transpose",  "Trilu",    "Unsqueeze",       "TensorScatter"};
    return movement.contains(op);
}

}  // namespace

std::uint64_t macs_of(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const std::string& op = node.op;
    const auto out = node.outputs.empty() ? 0 : elements(graph, node.outputs[0]);
    const auto per_output = [&](ValueId weight) {
        const std::uint64_t outputs = static_cast<std::uint64_t>(std::max<std::int64_t>(dim(graph, weight, 0), 1));
        return elements(graph, weight) / outputs;
    };
    if (op == "Conv" || op == "ConvInteger" || op == "DeformConv") return out * per_output(node.input(1));
    if (op == "QLinearConv") return out * per_output(node.input(3));
    if (op == "ConvTranspose") return elements(graph, node.input(0)) * per_output(node.input(1));  // [C][M/g][K...]: each input meets M/g x K weights
    if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul") {
        const ValueId a = node.input(0);
        if (a == kNoValue || graph.value(a).shape.empty()) return 0;
        return out * static_cast<std::uint64_t>(graph.value(a).shape.back());
    }
    if (op == "Gemm") return out * static_cast<std::uint64_t>(dim(graph, node.input(0), node.integer("transA", 0) ? 0 : 1));
    if (op == "LSTM" || op == "GRU" || op == "RNN") {
        // X [seq, batch, input] (or batch first), W [directions, gates x hidden, input], R [directions, gates x hidden, hidden].
        const auto steps = static_cast<std::uint64_t>(dim(graph, node.input(0), 0) * dim(graph, node.input(0), 1));
        return steps * (elements(graph, node.input(1)) + elements(graph, node.input(2)));
    }
    if (op == "Attention") {
        // Scores and the weighted sum: each query meets each key over the head's width, twice.
        const ValueId q = node.input(0), k = node.input(1);
        const std::size_t sequence = q == kNoValue ? 0 : graph.value(q).shape.size() - 2;
        return 2 * elements(graph, q) * static_cast<std::uint64_t>(std::max<std::int64_t>(dim(graph, k, sequence), 0));
    }
    return 0;
}

std::uint64_t operations_of(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    if (node.folded || moves_only(node.op)) return 0;
    if (const std::uint64_t macs = macs_of(graph, id)) return 2 * macs;
    std::uint64_t most = 0;
    for (const ValueId output : node.outputs) most = std::max(most, elements(graph, output));
    if (!node.inputs.empty()) most = std::max(most, elements(graph, node.inputs[0]));
    return most;
}

}  // namespace assay::workloads
