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
        {"LpPool", lower_pool},      {"GlobalLpPool", lower_pool},
        {"Softmax", lower_softmax},  {"Reshape", lower_move},           {"Flatten", lower_move},
        {"Squeeze", lower_move},     {"Unsqueeze", lower_move},         {"Identity", lower_move},
        {"Dropout", lower_move},     {"Transpose", lower_move},         {"Concat", lower_move},
        {"ReduceSum", lower_reduce}, {"ReduceMean", lower_reduce},      {"ReduceMax", lower_reduce},
        {"ReduceMin", lower_reduce}, {"ReduceL1", lower_reduce},        {"ReduceL2", lower_reduce},
        {"ReduceLogSum", lower_reduce}, {"ReduceSumSquare", lower_reduce},
        {"Pad", lower_mapped},       {"Tile", lower_mapped},            {"Gather", lower_gather},
        {"Slice", lower_mapped},     {"Split", lower_mapped},           {"Expand", lower_mapped},
        {"Resize", lower_mapped},    {"Upsample", lower_mapped},        {"DepthToSpace", lower_block},
        {"SpaceToDepth", lower_block}, {"ReverseSequence", lower_reverse_sequence}, {"Trilu", lower_trilu},
        {"GatherElements", lower_gather_list}, {"GatherND", lower_gather_list}, {"ScatterND", lower_scatter_list},
        {"ScatterElements", lower_scatter_list}, {"Scatter", lower_scatter_list},
    };
    const Node& node = l.graph.node(id);
    if (node.folded || l.done.contains(id)) return;
    if (const ValueId source = node.inputs[0]; source != kNoValue) {
        bool all_views = true;
        for (std::size_t o = 0; o < node.outputs.size(); ++o) {
            if (node.outputs[o] == kNoValue) continue;
            const auto view = view_through(l.graph, id, l.operand(id, source), o);
            if (!(all_views = view.has_value())) break;
            l.set_view(node.outputs[o], *view);
            if (wanted(l, node.outputs[o])) lower_output_view(l, node.outputs[o]);
        }
        if (all_views) return;
    }
    const auto rule = table.find(node.op);
    if (rule != table.end())
        rule->second(l, id);
    else
        lower_elementwise(l, id);
}

}  // namespace assay::workloads
