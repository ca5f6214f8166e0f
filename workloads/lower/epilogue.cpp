#include "workloads/lower/epilogue.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "workloads/lower/math.hpp"

namespace assay::workloads {
namespace {

using simkernel::Uop;

float scalar_input(const Graph& graph, NodeId id, std::size_t index, const char* attribute, float otherwise) {
    const Node& node = graph.node(id);
    if (node.has(attribute)) return node.real(attribute, otherwise);
    const ValueId v = node.input(index);
    if (v == kNoValue) return otherwise;
    if (!graph.is_constant(v) || graph.value(v).constant->count() != 1)
        throw NodeError(id, fmt::format("{} is not a constant scalar, which is not supported; use Min or Max", attribute));
    return static_cast<float>(graph.value(v).constant->value(0));
}

}  // namespace

std::optional<Activation> activation_of(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    using Kind = Activation::Kind;
    if (node.op == "Relu") return Activation{Kind::relu, 0, 0};
    if (node.op == "LeakyRelu") return Activation{Kind::leaky, node.real("alpha", 0.01f), 0};
    if (node.op == "Sigmoid") return Activation{Kind::sigmoid, 0, 0};
    if (node.op == "HardSigmoid") return Activation{Kind::hard_sigmoid, node.real("alpha", 0.2f), node.real("beta", 0.5f)};
    if (node.op == "Tanh") return Activation{Kind::tanh, 0, 0};
    if (node.op == "Clip")
        return Activation{Kind::clip, scalar_input(graph, id, 1, "min", std::numeric_limits<float>::lowest()),
                          scalar_input(graph, id, 2, "max", std::numeric_limits<float>::max())};
    return std::nullopt;
}

NodeId only_reader(const Graph& graph, ValueId value) {
    if (graph.value(value).is_output) return -1;
    const auto readers = graph.consumers(value);
    return readers.size() == 1 ? readers[0] : -1;
}

Epilogue follow(const Lowering& lowering, ValueId value) {
    const Graph& graph = lowering.graph;
    const auto& probes = lowering.options.probes;
    Epilogue e;
    e.output = value;
    while (true) {
        if (std::find(probes.begin(), probes.end(), graph.value(e.output).name) != probes.end()) return e;
        const NodeId next = only_reader(graph, e.output);
        if (next < 0 || graph.node(next).inputs[0] != e.output || graph.value(e.output).dtype != DType::f32) return e;
        if (const auto activation = activation_of(graph, next)) {
            e.activations.push_back(*activation);
        } else if (graph.node(next).op == "QuantizeLinear") {
            const Node& node = graph.node(next);
            e.quantization = tensor_quantization(graph, next, node.input(1), node.input(2), graph.value(node.outputs[0]).dtype);
        } else {
            return e;
        }
        e.nodes.push_back(next);
        e.output = graph.node(next).outputs[0];
        if (e.quantization) return e;
    }
}

Expr::Ref emit_activation(Expr& e, const Activation& activation, Expr::Ref x) {
    using Kind = Activation::Kind;
    switch (activation.kind) {
        case Kind::relu:
            return e.op(Uop::max_f32, x, Expr::imm(0.0f));
        case Kind::clip:
            return e.op(Uop::min_f32, e.op(Uop::max_f32, x, Expr::imm(activation.a)), Expr::imm(activation.b));
        case Kind::leaky: {
            const auto negative = e.op(Uop::lt_f32, x, Expr::imm(0.0f));
            const auto scaled = e.op(Uop::mul_f32, x, Expr::imm(activation.a));
            return e.op(Uop::select, negative, scaled, x);
        }
        case Kind::hard_sigmoid: {
            const auto line = e.op(Uop::fma_f32, x, Expr::imm(activation.a), Expr::imm(activation.b));
            return e.op(Uop::min_f32, e.op(Uop::max_f32, line, Expr::imm(0.0f)), Expr::imm(1.0f));
        }
        case Kind::sigmoid:
            return emit_sigmoid(e, x);
        case Kind::tanh:
            return emit_tanh(e, x);
    }
    return x;
}

Expr::Ref emit_dequantize(Expr& e, Expr::Ref x, const Quantization& q) {
    if (q.zero_point != 0) x = e.op(Uop::sub_i32, x, Expr::imm_i(q.zero_point));
    return e.op(Uop::mul_f32, e.op(Uop::i32_to_f32, x), Expr::imm(q.scale));
}

Expr::Ref emit_round(Expr& e, Expr::Ref x, std::int32_t zero_point) {
    // The zero point is added in fp32, after rounding: exact for every value that does not saturate, and an infinite x cannot wrap around.
    if (zero_point != 0) x = e.op(Uop::add_f32, e.op(Uop::round_f32, x), Expr::imm(static_cast<float>(zero_point)));
    return e.op(Uop::f32_to_i32, x);
}

Expr::Ref emit_quantize(Expr& e, Expr::Ref x, const Quantization& q) {
    return emit_round(e, e.op(Uop::div_f32, x, Expr::imm(q.scale)), q.zero_point);
}

Expr::Ref emit_epilogue(Expr& e, const Epilogue& epilogue, Expr::Ref x) {
    for (const Activation& activation : epilogue.activations) x = emit_activation(e, activation, x);
    return epilogue.quantization ? emit_quantize(e, x, *epilogue.quantization) : x;
}

}  // namespace assay::workloads
