#include <algorithm>
#include <functional>
#include <map>

#include "workloads/lower/lower.hpp"

namespace assay::workloads {
namespace {

bool wanted(const Lowering& l, ValueId value) {
    const auto& probes = l.options.probes;
    const Value& v = l.graph.value(value);
    return v.is_output || std::find(probes.begin(), probes.end(), v.name) != probes.end();
}

}  // namespace

void lower_node(Lowering& l, NodeId id) {
    static const std::map<std::string, std::function<void(Lowering&, NodeId)>> table{
        {"Conv", lower_conv},        {"QLinearConv", lower_conv},       {"Gemm", lower_matmul},
        {"MatMul", lower_matmul},    {"QLinearMatMul", lower_matmul},   {"MaxPool", lower_pool},
        {"AveragePool", lower_pool}, {"GlobalAveragePool", lower_pool}, {"GlobalMaxPool", lower_pool},
        {"Softmax", lower_softmax},  {"Reshape", lower_move},           {"Flatten", lower_move},
        {"Squeeze", lower_move},     {"Unsqueeze", lower_move},         {"Identity", lower_move},
        {"Dropout", lower_move},     {"Transpose", lower_move},         {"Concat", lower_move},
        {"Pad", lower_move},
    };
    const Node& node = l.graph.node(id);
    if (node.folded || l.done.contains(id)) return;
    if (const ValueId source = node.inputs[0]; source != kNoValue) {
        if (const auto view = view_through(l.graph, id, l.operand(id, source))) {
            l.set_view(node.outputs[0], *view);
            if (wanted(l, node.outputs[0])) lower_output_view(l, node.outputs[0]);
            return;
        }
    }
    const auto rule = table.find(node.op);
    if (rule != table.end())
        rule->second(l, id);
    else
        lower_elementwise(l, id);
}

}  // namespace assay::workloads
