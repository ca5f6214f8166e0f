// Elementwise layers: chains of arithmetic with broadcasting, activations, comparisons, casts and BatchNormalization as one expression, and
// Quantize and DequantizeLinear.
#include <fmt/core.h>

#include <cmath>
#include <cstring>

#include "workloads/lower/chain.hpp"
#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/vector_job.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;

constexpr std::size_t kMostSources = 8;  // tensors of one layer: their tiles share the scratchpad

/// Binds operands to streams or immediates.
class Binder final : public ChainReader {
public:
    Binder(Lowering& lowering, NodeId id, const Shape& shape) : l_(lowering), id_(id), shape_(shape) {}

    Lane read(ValueId value) override { return bind(l_.operand(id_, value)); }

    /// Quantised operands as fp32, others as they are.
    Lane bind(const Operand& operand) {
        operands.push_back(operand);
        const Value& v = l_.graph.value(operand.device);
        if (operand.constant && v.constant->count() == 1 && !operand.quantization) return lane_of_constant(*v.constant, 0);
        const Expr::Ref x = stream_of(operand);
        if (operand.quantization) return {Lane::Kind::real, emit_dequantize(expr, x, *operand.quantization)};
        return lane_of_stored(expr, x, v.dtype);
    }

    Expr::Ref channel(NodeId id, const std::vector<float>& values, const char* suffix) override {
        std::vector<std::byte> bytes(values.size() * 4);
        std::memcpy(bytes.data(), values.data(), bytes.size());
        simkernel::ConstantSlot slot;
        slot.name = l_.graph.node(id).name + suffix;
        slot.dtype = Dtype::f32;
        JobTensor t{l_.add_constant(std::move(bytes), slot).value, Dtype::f32, std::vector<std::int64_t>(shape_.size(), 0)};
        t.strides[1] = shape_[1] == 1 ? 0 : 1;
        inputs.push_back(t);
        return Expr::stream(static_cast<std::uint32_t>(inputs.size() - 1));
    }

    /// The operand's element as it is stored.
    Expr::Ref stream_of(const Operand& operand) {
        if (operand.constant) l_.place_constant(id_, operand.device);
        const Operand wide = broadcast_to(operand, shape_);
        inputs.push_back({l_.addr_of(wide), l_.type_of(wide), wide.strides});
        return Expr::stream(static_cast<std::uint32_t>(inputs.size() - 1));
    }

    std::vector<JobTensor> inputs;
    std::vector<Operand> operands;
    Expr expr;

private:
    Lowering& l_;
    NodeId id_;
    const Shape& shape_;
};

/// The operand whose layout the result takes: the first that has every element of it.
std::vector<int> output_perm(const std::vector<Operand>& operands, const Shape& shape) {
    for (const bool constants : {false, true})
        for (const Operand& operand : operands)
            if (operand.constant == constants && operand.shape == shape) return perm_like(operand);
    std::vector<int> perm(shape.size());
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int>(i);
    return perm;
}

/// What a chain may read: constants and tensors that the device holds, or can be given.
bool readable(const Lowering& l, ValueId value) {
    const Value& v = l.graph.value(value);
    if (!v.known || v.dynamic || !device_holds(v.dtype)) return false;
    return v.constant || l.has_view(value) || l.on_host(value);
}

/// QuantizeLinear by itself, or DequantizeLinear of int32: the layer's value and, for the first, how it was quantised.
Lane quantizer(Lowering& l, NodeId id, Binder& binder, std::optional<Quantization>& own) {
    const Graph& graph = l.graph;
    const Node& node = graph.node(id);
    const Operand operand = l.operand(id, node.inputs[0]);
    if (node.op == "QuantizeLinear") {
        if (graph.value(node.inputs[0]).dtype != DType::f32)
            throw NodeError(id, fmt::format("QuantizeLinear of {} is not supported; use float32", name_of(graph.value(node.inputs[0]).dtype)));
        own = tensor_quantization(graph, id, node.input(1), node.input(2), graph.value(node.outputs[0]).dtype);
        return {Lane::Kind::integer, emit_quantize(binder.expr, binder.bind(operand).ref, *own)};
    }
    const ValueId scale = node.input(1);
    if (graph.value(node.inputs[0]).dtype != DType::i32 || !graph.is_constant(scale) || graph.value(scale).constant->count() != 1)
        throw NodeError(id, "this DequantizeLinear is not supported; quantise activations by tensor, with constant parameters");
    const Lane x = binder.bind(operand);
    return {Lane::Kind::real, emit_dequantize(binder.expr, x.ref, {static_cast<float>(graph.value(scale).constant->value(0)), 0})};
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
    const Graph& graph = l.graph;
    const Node& node = graph.node(id);
    const Shape& shape = graph.value(node.outputs[0]).shape;
    Binder binder(l, id, shape);
    std::optional<Quantization> own;  // of a QuantizeLinear that is a layer by itself
    const bool quantizes = node.op == "QuantizeLinear" || node.op == "DequantizeLinear";
    Chain chain{{id}, node.outputs[0]};
    std::map<ValueId, Lane> values;
    if (quantizes)
        values[node.outputs[0]] = quantizer(l, id, binder, own);
    else if (node.op == "BatchNormalization")
        (void)batch_norm_factors(graph, id);  // says what is wrong
    else if (const std::string refusal = elementwise_refusal(graph, id); !refusal.empty())
        throw NodeError(id, refusal);
    if (!own) grow_chain(l, chain, [&](ValueId v) { return readable(l, v); }, kMostSources);
    const std::vector<NodeId> computed(chain.nodes.begin() + (quantizes ? 1 : 0), chain.nodes.end());
    const Lane result = computed.empty() ? values[node.outputs[0]] : emit_chain(binder.expr, graph, computed, values, binder);
    Epilogue tail;
    tail.output = chain.output;
    if (!own) tail = follow(l, chain.output);
    Expr::Ref x = result.ref;
    if (!tail.nodes.empty())
        x = emit_epilogue(binder.expr, tail, x);
    else if (!own)
        x = stored_of_lane(binder.expr, result, graph.value(chain.output).dtype);
    if (x.kind == Expr::Ref::Kind::immediate) x = binder.expr.op(Uop::mov, x);  // no copy of what was bound
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
    std::vector<NodeId> nodes = chain.nodes;
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), binder.operands, tail.output);
}

}  // namespace assay::workloads
