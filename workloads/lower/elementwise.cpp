// Elementwise layers: arithmetic with broadcasting, activations, BatchNormalization on its own, Quantize and DequantizeLinear.
#include <fmt/core.h>

#include <cmath>
#include <cstring>

#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/vector_job.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;

/// Binds operands to streams or immediates and turns what is read into fp32.
class Binder {
public:
    Binder(Lowering& lowering, NodeId id, const Shape& shape) : l_(lowering), id_(id), shape_(shape) {}

    Expr::Ref bind(const Operand& operand) {
        operands.push_back(operand);
        const Value& v = l_.graph.value(operand.device);
        Expr::Ref x;
        if (operand.constant && v.constant->count() == 1) {
            x = v.dtype == DType::f32 ? Expr::imm(static_cast<float>(v.constant->value(0)))
                                      : Expr::imm_i(static_cast<std::int32_t>(v.constant->integer(0)) - (v.dtype == DType::u8 ? 128 : 0));
        } else {
            if (operand.constant) l_.place_constant(id_, operand.device);
            const Operand wide = broadcast_to(operand, shape_);
            inputs.push_back({l_.addr_of(wide), l_.type_of(wide), wide.strides});
            x = Expr::stream(static_cast<std::uint32_t>(inputs.size() - 1));
        }
        return operand.quantization ? emit_dequantize(expr, x, *operand.quantization) : x;
    }

    std::vector<JobTensor> inputs;
    std::vector<Operand> operands;
    Expr expr;

private:
    Lowering& l_;
    NodeId id_;
    const Shape& shape_;
};

std::optional<Uop> binary_uop(const std::string& op) {
    if (op == "Add") return Uop::add_f32;
    if (op == "Sub") return Uop::sub_f32;
    if (op == "Mul") return Uop::mul_f32;
    if (op == "Div") return Uop::div_f32;
    if (op == "Min") return Uop::min_f32;
    if (op == "Max") return Uop::max_f32;
    return std::nullopt;
}

/// The operand whose layout the result takes: the first that has every element of it.
std::vector<int> output_perm(const std::vector<Operand>& operands, const Shape& shape) {
    for (const bool constants : {false, true})
        for (const Operand& operand : operands)
            if (operand.constant == constants && operand.shape == shape) return perm_like(operand);
    std::vector<int> perm(shape.size());
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int>(i);
    return perm;
}

/// y = x*s + t with s = scale/sqrt(var + eps) and t = bias - mean*s, both rounded once from double.
void batch_normalization(Lowering& l, NodeId id, Binder& binder, const Operand& x, const Shape& shape) {
    const auto [scale, shift] = batch_norm_factors(l.graph, id);
    const auto channel = [&](const std::vector<float>& values, const char* suffix) {
        std::vector<std::byte> bytes(values.size() * 4);
        std::memcpy(bytes.data(), values.data(), bytes.size());
        simkernel::ConstantSlot slot;
        slot.name = l.graph.node(id).name + suffix;
        slot.dtype = Dtype::f32;
        JobTensor t{l.add_constant(std::move(bytes), slot).value, Dtype::f32, std::vector<std::int64_t>(shape.size(), 0)};
        t.strides[1] = shape[1] == 1 ? 0 : 1;
        binder.inputs.push_back(t);
        return Expr::stream(static_cast<std::uint32_t>(binder.inputs.size() - 1));
    };
    const auto v = binder.bind(x);
    const auto s = channel(scale, "#scale"), t = channel(shift, "#shift");
    binder.expr.op(Uop::fma_f32, v, s, t);
}

}  // namespace

std::pair<std::vector<float>, std::vector<float>> batch_norm_factors(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const Shape& shape = graph.value(node.inputs[0]).shape;
    std::array<const Tensor*, 4> p{};
    for (std::size_t i = 0; i < 4; ++i) {
        const ValueId v = node.input(i + 1);
        if (!graph.is_constant(v)) throw NodeError(id, "scale, bias, mean and variance must be constants; export for inference");
        p[i] = graph.value(v).constant.get();
        if (p[i]->count() != shape[1])
            throw MalformedNode(id, fmt::format("a parameter has {} elements for {} channels; repair the model", p[i]->count(), shape[1]));
    }
    const double epsilon = static_cast<double>(node.real("epsilon", 1e-5f));
    std::vector<float> scale, shift;
    for (std::int64_t c = 0; c < shape[1]; ++c) {
        const double s = p[0]->value(c) / std::sqrt(p[3]->value(c) + epsilon);
        const double t = p[1]->value(c) - p[2]->value(c) * s;
        if (!std::isfinite(s) || !std::isfinite(t))
            throw MalformedNode(id, fmt::format("the parameters of channel {} are not finite; repair the model", c));
        scale.push_back(static_cast<float>(s));
        shift.push_back(static_cast<float>(t));
    }
    return {scale, shift};
}

void lower_elementwise(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const ValueId result = node.outputs[0];
    const Shape& shape = l.graph.value(result).shape;
    Binder binder(l, id, shape);
    std::optional<Quantization> own;  // of a QuantizeLinear that is a layer by itself
    Expr::Ref x;
    std::vector<ValueId> sources = node.inputs;
    if (binary_uop(node.op)) {
        if (sources.size() > 3)
            throw NodeError(id, fmt::format("{} inputs are not supported, allowed: 3; chain several nodes", sources.size()));
    } else {
        sources.resize(1);
    }
    for (const ValueId source : sources) {
        const Operand operand = l.operand(id, source);
        const bool integer = l.type_of(operand) != Dtype::f32 && !operand.quantization;
        if (integer && node.op != "DequantizeLinear")
            throw NodeError(id, fmt::format("arithmetic on {} is not supported; use float32 or dequantise first",
                                            name_of(l.graph.value(source).dtype)));
    }
    if (node.op == "BatchNormalization") {
        batch_normalization(l, id, binder, l.operand(id, node.inputs[0]), shape);
        x = binder.expr.result;
    } else if (node.op == "DequantizeLinear") {  // of int32, or of what is quantised twice
        const Operand operand = l.operand(id, node.inputs[0]);
        x = binder.bind(operand);
        const ValueId scale = node.input(1);
        if (l.graph.value(node.inputs[0]).dtype != DType::i32 || !l.graph.is_constant(scale) || l.graph.value(scale).constant->count() != 1)
            throw NodeError(id, "this DequantizeLinear is not supported; quantise activations by tensor, with constant parameters");
        x = emit_dequantize(binder.expr, x, {static_cast<float>(l.graph.value(scale).constant->value(0)), 0});
    } else {
        x = binder.bind(l.operand(id, sources[0]));
        if (const auto uop = binary_uop(node.op)) {
            for (std::size_t i = 1; i < sources.size(); ++i) x = binder.expr.op(*uop, x, binder.bind(l.operand(id, sources[i])));
        } else if (const auto activation = activation_of(l.graph, id)) {
            x = emit_activation(binder.expr, *activation, x);
        } else if (node.op == "QuantizeLinear") {
            own = tensor_quantization(l.graph, id, node.input(1), node.input(2), l.graph.value(result).dtype);
            x = emit_quantize(binder.expr, x, *own);
        }
    }
    Epilogue tail;
    tail.output = result;
    if (!own) tail = follow(l, result);
    x = emit_epilogue(binder.expr, tail, x);
    binder.expr.result = x;

    const Operand& out = l.materialize(id, tail.output, output_perm(binder.operands, shape));
    VectorJob job;
    const Ordered order = memory_order(out.shape, out.strides);
    job.extents = order.extents;
    for (JobTensor& t : binder.inputs) job.inputs.push_back({t.addr, t.type, pick(t.strides, order.dims)});
    job.output = {l.addr_of(out), l.type_of(out), pick(out.strides, order.dims)};
    job.expr = binder.expr;
    l.begin_layer();
    emit_job(l, std::move(job));
    simkernel::Layer layer;
    layer.precision = tail.quantization || own ? "int8" : "fp32";
    layer.mapping =
        fmt::format("{} elements on {} lanes, {} micro-operations", element_count(shape), l.chip.vpu_lanes, binder.expr.ops().size());
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), binder.operands, tail.output);
}

}  // namespace assay::workloads
