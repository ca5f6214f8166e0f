#include "workloads/passes/decompose/decompose.hpp"

#include <map>

#include "support/error.hpp"
#include "workloads/passes/decompose/families.hpp"

namespace assay::workloads {

void decompose(Graph& graph, std::vector<NodeError>& errors) {
    static const std::map<std::string, void (*)(Rewriter&)> families{
        {"LSTM", take_apart_recurrent},
        {"GRU", take_apart_recurrent},
        {"RNN", take_apart_recurrent},
        {"LayerNormalization", take_apart_normalization},
        {"RMSNormalization", take_apart_normalization},
        {"GroupNormalization", take_apart_normalization},
        {"InstanceNormalization", take_apart_normalization},
        {"MeanVarianceNormalization", take_apart_normalization},
        {"LpNormalization", take_apart_normalization},
        {"LogSoftmax", take_apart_reduction},
        {"ReduceLogSumExp", take_apart_reduction},
        {"CumSum", take_apart_reduction},
        {"ConvTranspose", take_apart_conv_transpose},
        {"Attention", take_apart_attention},
        {"RotaryEmbedding", take_apart_attention},
    };
    bool changed = false;
    const int count = graph.node_count();
    for (NodeId id = 0; id < count; ++id) {
        const Node& node = graph.node(id);
        const auto family = families.find(node.op);
        if (family == families.end() || node.folded || !node.domain.empty()) continue;
        bool ready = true;
        for (const auto* list : {&node.inputs, &node.outputs})
            for (const ValueId v : *list)
                if (v != kNoValue && (!graph.value(v).known || graph.value(v).dynamic || element_count(graph.value(v).shape) == 0)) ready = false;
        if (!ready) continue;
        try {
            Rewriter rewriter(graph, id);
            family->second(rewriter);
            rewriter.commit();
            changed = true;
        } catch (const NotTakenApart&) {
            continue;  // it stays whole
        } catch (const NodeError& error) {
            errors.push_back(error);
        }
    }
    if (changed) graph.connect();
}

}  // namespace assay::workloads
