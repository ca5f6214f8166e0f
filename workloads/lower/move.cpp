// Layers that move data: Reshape and the like when no view does, Concat, constant Pad, and graph outputs that are views.
#include <fmt/core.h>

#include <bit>

#include "simkernel/exec/decode.hpp"
#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/vector_job.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

/// Value for value; integers stay integers when they would be quantised again as they were.
Expr passthrough(const Operand& operand, const Epilogue& tail) {
    Expr expr;
    expr.result = Expr::stream(0);
    if (operand.quantization && tail.quantization == operand.quantization && tail.activations.empty()) return expr;
    if (!operand.quantization && tail.activations.empty() && !tail.quantization) return expr;
    Expr::Ref x = Expr::stream(0);
    if (operand.quantization) x = emit_dequantize(expr, x, *operand.quantization);
    emit_epilogue(expr, tail, x);
    return expr;
}

/// A job that writes `operand` to the box of `out` that starts at `out_offset`, where the box has the operand's shape and `out_strides`.
VectorJob move_job(Lowering& l, NodeId id, const Operand& operand, const Epilogue& tail, const Operand& out, std::int64_t out_offset,
                   const std::vector<std::int64_t>& out_strides) {
    if (operand.constant) l.place_constant(id, operand.device);
    const Ordered order = memory_order(operand.shape, out_strides);
    VectorJob job;
    job.extents = order.extents;
    job.inputs.push_back({l.addr_of(operand), l.type_of(operand), pick(operand.strides, order.dims)});
    job.output = {l.addr_of(out, out_offset), l.type_of(out), pick(out_strides, order.dims)};
    job.expr = passthrough(operand, tail);
    return job;
}

void finish(Lowering& l, NodeId id, const Epilogue& tail, const std::vector<Operand>& operands) {
    simkernel::Layer layer;
    layer.precision = tail.activations.empty() && !tail.quantization ? "move" : tail.quantization ? "int8" : "fp32";
    layer.mapping = fmt::format("{} elements by DMA", element_count(l.graph.value(tail.output).shape));
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), operands, tail.output);
}

std::vector<int> identity_perm(std::size_t rank) {
    std::vector<int> perm(rank);
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<int>(i);
    return perm;
}

void concat(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Epilogue tail = follow(l, node.outputs[0]);
    std::vector<Operand> operands;
    std::optional<std::vector<int>> perm;
    for (const ValueId source : node.inputs) {
        operands.push_back(l.operand(id, source));
        if (!perm && !operands.back().constant) perm = perm_like(operands.back());
    }
    const Operand out = l.materialize(id, tail.output, perm.value_or(identity_perm(operands[0].shape.size())));
    std::int64_t axis = node.integer("axis", 0);
    if (axis < 0) axis += static_cast<std::int64_t>(out.shape.size());
    l.begin_layer();
    std::int64_t step = 0, at = 0;
    for (const Operand& operand : operands) {
        step = emit_job(l, move_job(l, id, operand, tail, out, at * out.strides[static_cast<std::size_t>(axis)], out.strides), step);
        at += operand.shape[static_cast<std::size_t>(axis)];
    }
    finish(l, id, tail, operands);
}

void pad(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand operand = l.operand(id, node.inputs[0]);
    std::vector<std::int64_t> pads = node.integers("pads");
    double value = static_cast<double>(node.real("value", 0.0f));
    if (!node.has("pads")) {
        const Tensor& t = *l.graph.value(node.inputs[1]).constant;
        for (std::int64_t i = 0; i < t.count(); ++i) pads.push_back(t.integer(i));
        if (const ValueId v = node.input(2); v != kNoValue) {
            if (!l.graph.is_constant(v))
                throw NodeError(id, "the padding value is computed at run time, which is not supported; make it a constant");
            value = l.graph.value(v).constant->value(0);
        }
    }
    // The constant goes through the same arithmetic as the data; here only the cases that leave it exact are taken.
    if (tail.quantization && !(tail.quantization == operand.quantization && value == 0.0))
        throw NodeError(id, "Pad between different quantisations is not supported; pad with 0 and keep scale and zero point");
    if (!tail.activations.empty()) throw NodeError(id, "an activation right after Pad is not supported; put it before");
    if (operand.quantization && !tail.quantization) throw NodeError(id, "Pad of a dequantised tensor must be followed by QuantizeLinear");
    const Operand out = l.materialize(id, tail.output, perm_like(operand));
    const auto size = static_cast<std::uint32_t>(simkernel::size_of(l.type_of(out)));
    const std::uint32_t pattern =
        tail.quantization                         ? static_cast<std::uint8_t>(tail.quantization->zero_point)
        : l.type_of(out) == simkernel::Dtype::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
        : size == 1 ? static_cast<std::uint8_t>(static_cast<int>(value) - (l.graph.value(out.device).dtype == DType::u8 ? 128 : 0))
                    : static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    l.begin_layer();
    // First the constant everywhere, then the data over it: both are stores, which one engine keeps in order.
    const std::int64_t total = element_count(out.shape), chunk = std::min<std::int64_t>(total, l.chip.spm_bytes / 4 / size);
    const std::uint32_t base = l.scratchpad_base(static_cast<std::uint64_t>(l.chip.spm_bytes / 2));
    l.emitter.at(Stage::load, 0);
    emit_fill(l.emitter, base, pattern, size, {{chunk, 0, size}});
    l.emitter.at(Stage::store, 0);
    for (std::int64_t at = 0; at < total; at += chunk)
        emit_store(l.emitter, l.addr_of(out, at), base, size, {{std::min(chunk, total - at), size, size}});
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < out.shape.size(); ++d) offset += pads[d] * out.strides[d];
    // The copy reuses the filled buffer: the loads of step 2 stand after the stores of step 0, those of step 1 would not.
    emit_job(l, move_job(l, id, operand, tail, out, offset, out.strides), 2);
    finish(l, id, tail, {operand});
}

}  // namespace

void lower_move(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    if (node.op == "Concat") return concat(l, id);
    if (node.op == "Pad") return pad(l, id);
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand operand = l.operand(id, node.inputs[0]);
    const Operand out = l.materialize(id, tail.output, identity_perm(l.graph.value(tail.output).shape.size()));
    l.begin_layer();
    emit_job(l, move_job(l, id, operand, tail, out, 0, row_major_strides(operand.shape)));
    finish(l, id, tail, {operand});
}

void lower_output_view(Lowering& l, ValueId value) {
    const NodeId id = l.graph.value(value).producer;
    Operand operand = l.operand(id, value);
    const NodeId main = operand.path.empty() ? id : operand.path.back();
    if (main < 0)
        throw NodeError(-1,
                        fmt::format("output '{}' is an input or a constant; a model must compute its outputs", l.graph.value(value).name));
    Epilogue tail;
    tail.output = value;
    const Operand out = l.materialize(main, value, perm_like(operand));
    l.begin_layer();
    emit_job(l, move_job(l, main, operand, tail, out, 0, out.strides));
    finish(l, main, tail, {operand});
}

}  // namespace assay::workloads
