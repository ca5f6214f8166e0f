#include "workloads/host/evaluate.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "support/error.hpp"
#include "workloads/host/call.hpp"
#include "workloads/host/control.hpp"

namespace assay::workloads::hostops {
namespace {

const std::unordered_map<std::string, Operator>& operators() {
    static const std::unordered_map<std::string, Operator> table = [] {
        std::unordered_map<std::string, Operator> all;
        for (const auto family : {unary_operators(), binary_operators(), cast_operators(), shape_operators(), move_operators(), control_operators(),
                                  reduce_operators(), sort_operators(), gather_operators(), normalize_operators(),
                                  quantize_operators(), matrix_operators(), einsum_operators(), conv_operators(), pool_operators(),
                                  recurrent_operators(), resize_operators(), grid_operators(), detection_operators(), signal_operators(),
                                  attention_operators(), loss_operators()})
            for (const Operator& op : family) ASSAY_CHECK(all.try_emplace(op.name, op).second, "an operator belongs to one family");
        return all;
    }();
    return table;
}

/// Classes of operators that no tensor program can hold, by name.
const char* class_of(const std::string& op) {
    static const std::set<std::string> random{"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    static const std::set<std::string> text{"LabelEncoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"};
    static const std::set<std::string> training{"Adagrad", "Adam", "Gradient", "Momentum"};
    static const std::set<std::string> sequence{"ConcatFromSequence", "SplitToSequence"};
    if (random.contains(op)) return "a random operator: its result is not a function of its inputs";
    if (text.contains(op)) return "a string operator: tensors of text have no place on the chip or in its inputs";
    if (training.contains(op)) return "a training operator: export the model for inference";
    if (op.starts_with("Sequence") || sequence.contains(op)) return "a sequence operator: only tensors are supported; export with tensors";
    if (op.starts_with("Optional")) return "an optional-value operator: only tensors are supported; export with tensors";
    if (op == "ImageDecoder") return "a media operator: decode images before the model";
    return nullptr;
}

void collect_captured(const onnx::GraphProto& graph, std::set<std::string> defined, std::vector<std::string>& out, std::set<std::string>& seen) {
    for (const auto& input : graph.input()) defined.insert(input.name());
    for (const auto& init : graph.initializer()) defined.insert(init.name());
    for (const auto& init : graph.sparse_initializer()) defined.insert(init.values().name());
    const auto read = [&](const std::string& name) {
        if (!name.empty() && !defined.contains(name) && seen.insert(name).second) out.push_back(name);
    };
    for (const auto& node : graph.node()) {
        for (const auto& input : node.input()) read(input);
        for (const auto& attribute : node.attribute()) {
            if (attribute.has_g()) collect_captured(attribute.g(), defined, out, seen);
            for (const auto& inner : attribute.graphs()) collect_captured(inner, defined, out, seen);
        }
        for (const auto& output : node.output()) defined.insert(output);
    }
    for (const auto& output : graph.output()) read(output.name());
}

}  // namespace

bool supports(const std::string& op, int opset) {
    const auto it = operators().find(op);
    return it != operators().end() && opset >= it->second.since;
}

std::string unsupported_reason(const std::string& op) {
    if (const char* reason = class_of(op)) return reason;
    if (const auto it = operators().find(op); it != operators().end())
        return fmt::format("the operator is defined from opset {} on; convert the model", it->second.since);
    return "the operator is not supported; rewrite the model without it";
}

std::vector<std::string> captured_names(const onnx::NodeProto& node) {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) collect_captured(attribute.g(), {}, out, seen);
        for (const auto& graph : attribute.graphs()) collect_captured(graph, {}, out, seen);
    }
    return out;
}

std::vector<Tensor> evaluate(const onnx::NodeProto& node, int opset, std::span<const Tensor* const> inputs) {
    return evaluate_in(node, opset, inputs, nullptr);
}

Results evaluate_in(const onnx::NodeProto& node, int opset, std::span<const Tensor* const> inputs, const Scope* scope) {
    if (!node.domain().empty() && node.domain() != "ai.onnx")
        throw Error(ErrorKind::bad_input, fmt::format("domain '{}' is not known; rewrite the model without it", node.domain()));
    const auto it = operators().find(node.op_type());
    if (it == operators().end() || opset < it->second.since) throw Error(ErrorKind::bad_input, unsupported_reason(node.op_type()));
    const Call call(node, opset, inputs, scope);
    Results results = it->second.kernel(call);
    ASSAY_CHECK(results.size() <= static_cast<std::size_t>(std::max(node.output_size(), 8)), "a kernel gives the outputs of its operator");
    results.resize(static_cast<std::size_t>(node.output_size()));
    return results;
}

}  // namespace assay::workloads::hostops
