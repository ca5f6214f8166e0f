// Conv and QLinearConv as matrix layers.
#include <fmt/core.h>

#include <cmath>

#include "workloads/lower/bias.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/matrix.hpp"

namespace assay::workloads {
namespace {

/// [N, C, spatial…] as n, h, w, c.
std::array<std::int64_t, 4> image_strides(const Operand& t) {
    if (t.shape.size() == 3) return {t.strides[0], 0, t.strides[2], t.strides[1]};
    return {t.strides[0], t.strides[2], t.strides[3], t.strides[1]};
}

}  // namespace

void lower_conv(Lowering& l, NodeId id) {
    const Graph& graph = l.graph;
    const Node& node = graph.node(id);
    const bool qlinear = node.op == "QLinearConv";
    MatrixSpec s;
    s.main = id;
    s.nodes = {id};
    s.x = l.operand(id, node.inputs[0]);
    if (qlinear) s.x.quantization = tensor_quantization(graph, id, node.input(1), node.input(2), graph.value(node.inputs[0]).dtype);
    s.x_strides = image_strides(s.x);
    const ValueId weight = node.inputs[qlinear ? 3 : 1];
    if (!graph.is_constant(weight)) throw NodeError(id, "a weight computed at run time is not supported; make it an initialiser");
    const Shape& ws = graph.value(weight).shape;
    const std::size_t rank = s.x.shape.size();
    s.batch = s.x.shape[0];
    s.channels = s.x.shape[1];
    s.outputs = ws[0];
    s.groups = node.integer("group", 1);
    s.window = window_of(graph, id, {s.x.shape.begin() + 2, s.x.shape.end()}, {ws.begin() + 2, ws.end()});
    s.affine = Affine(static_cast<std::size_t>(s.outputs));
    s.integer_bias.assign(static_cast<std::size_t>(s.outputs), 0);
    ConstantWeights w;
    w.value = weight;
    const auto strides = row_major_strides(ws);
    w.strides = {strides[0], strides[1], rank == 4 ? strides[2] : 0, strides[rank - 1]};
    if (qlinear) {
        bind_qlinear_weights(graph, id, w, s.outputs, 4, 5);
        s.integer = true;
    } else {
        s.integer = s.x.quantization && bind_integer_weights(graph, w, s.outputs, 0);
    }
    if (!s.integer && l.type_of(s.x) != simkernel::Dtype::f32 && !s.x.quantization)
        throw NodeError(id, "integer input without quantisation is not supported; use DequantizeLinear or QLinearConv");
    s.weights = std::move(w);
    start_affine(s);
    add_bias(graph, id, s, node.input(qlinear ? 8 : 2), 1.0);
    if (qlinear) {
        s.tail.output = node.outputs[0];
        s.tail.quantization = tensor_quantization(graph, id, node.input(6), node.input(7), graph.value(node.outputs[0]).dtype);
    } else {
        follow_matrix(l, s, node.outputs[0], 1, [](const Operand& o) { return std::optional(image_strides(o)); });
    }
    std::vector<int> perm{0, 2, 1};
    if (rank == 4) perm = {0, 2, 3, 1};
    s.out = l.materialize(id, s.tail.output, perm);
    s.out_strides = image_strides(s.out);
    emit_matrix_layer(l, std::move(s));
}

}  // namespace assay::workloads
