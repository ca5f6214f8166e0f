// Gemm, MatMul and QLinearMatMul as matrix layers: rows of A are pixels, K its channels.
#include <fmt/core.h>

#include "workloads/lower/bias.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/matrix.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

std::vector<int> identity_perm(std::size_t rank) {
    std::vector<int> perm(rank);
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<int>(i);
    return perm;
}

/// Lays the rows of A (all dimensions but the last) out as n, h, w. Throws NodeError when their strides need more than three dimensions.
void bind_rows(NodeId id, MatrixSpec& s, const Shape& extents, const std::vector<std::int64_t>& strides) {
    Shape e;
    std::vector<std::int64_t> t;
    for (std::size_t d = 0; d < extents.size(); ++d) {
        if (extents[d] == 1) continue;
        if (!e.empty() && t.back() == strides[d] * extents[d]) {
            e.back() *= extents[d];
            t.back() = strides[d];
        } else {
            e.push_back(extents[d]);
            t.push_back(strides[d]);
        }
    }
    if (e.size() > 3)
        throw NodeError(id, fmt::format("the rows of A lie in {} strided dimensions, allowed: 3; reshape to a matrix first", e.size()));
    while (e.size() < 3) {
        e.insert(e.begin(), 1);
        t.insert(t.begin(), 0);
    }
    s.batch = e[0];
    s.window.in = s.window.out = {e[1], e[2]};
    s.x_strides = {t[0], t[1], t[2], s.x.strides.back()};
    s.out_strides = {e[1] * e[2] * s.outputs, e[2] * s.outputs, s.outputs, 1};
}

struct Product {
    ValueId b = kNoValue;
    bool transpose_b = false;
    double alpha = 1.0;
};

/// The right-hand side: packed at compile time when constant, else read as an activation.
void bind_rhs(Lowering& l, NodeId id, MatrixSpec& s, const Product& p, bool qlinear) {
    const Graph& graph = l.graph;
    const Node& node = graph.node(id);
    const Value& b = graph.value(p.b);
    const std::size_t rank = b.shape.size();
    if (graph.is_constant(p.b) && element_count(b.shape) == s.channels * s.outputs) {
        ConstantWeights w;
        w.value = p.b;
        w.strides = p.transpose_b ? std::array<std::int64_t, 4>{s.channels, 1, 0, 0} : std::array<std::int64_t, 4>{1, s.outputs, 0, 0};
        if (rank == 1) w.strides = {0, 1, 0, 0};
        if (qlinear) bind_qlinear_weights(graph, id, w, s.outputs, 4, 5);
        s.integer = qlinear || (s.x.quantization &&
                                bind_integer_weights(graph, w, s.outputs, static_cast<std::int64_t>(p.transpose_b ? rank - 2 : rank - 1)));
        s.weights = std::move(w);
        return;
    }
    DynamicWeights d;
    d.operand = l.operand(id, p.b);
    if (qlinear) d.operand.quantization = tensor_quantization(graph, id, node.input(4), node.input(5), b.dtype);
    s.integer = s.x.quantization && d.operand.quantization;
    if (d.operand.constant) l.place_constant(id, p.b);
    const auto& t = d.operand.strides;
    d.n_stride = rank == 1 ? 0 : t[p.transpose_b ? rank - 2 : rank - 1];
    d.k_stride = t[p.transpose_b || rank == 1 ? rank - 1 : rank - 2];
    s.dynamic = std::move(d);
}

void finish(Lowering& l, NodeId id, MatrixSpec& s, bool qlinear) {
    const Graph& graph = l.graph;
    const Node& node = graph.node(id);
    if (!s.integer && l.type_of(s.x) != simkernel::Dtype::f32 && !s.x.quantization)
        throw NodeError(id, "integer input without quantisation is not supported; use DequantizeLinear or QLinearMatMul");
    if (qlinear) {
        s.tail.output = node.outputs[0];
        s.tail.quantization = tensor_quantization(graph, id, node.input(6), node.input(7), graph.value(node.outputs[0]).dtype);
    } else {
        const std::size_t rank = graph.value(node.outputs[0]).shape.size();
        if (rank > 0)
            follow_matrix(l, s, node.outputs[0], rank - 1, [&](const Operand& o) -> std::optional<std::array<std::int64_t, 4>> {
                // Rows of one stride, or else as the result lies.
                const auto matrix = reshape_strides(o.shape, o.strides, {element_count(o.shape) / s.outputs, s.outputs});
                if (!matrix) return std::nullopt;
                if (s.repeats.size() == 1 && s.batch == 1 && s.window.out[0] == 1) return std::array<std::int64_t, 4>{0, 0, (*matrix)[0], (*matrix)[1]};
                const bool plain = (*matrix)[1] == 1 && (*matrix)[0] == s.outputs;
                return plain ? std::optional(s.out_strides) : std::nullopt;
            });
        else
            s.tail.output = node.outputs[0];
    }
    s.out = l.materialize(id, s.tail.output, identity_perm(graph.value(s.tail.output).shape.size()));
    emit_matrix_layer(l, std::move(s));
}

MatrixSpec start(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    MatrixSpec s;
    s.main = id;
    s.nodes = {id};
    s.x = l.operand(id, node.inputs[0]);
    if (s.x.constant) l.place_constant(id, s.x.device);
    return s;
}

void gemm(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    MatrixSpec s = start(l, id);
    if (node.integer("transA", 0)) {
        std::swap(s.x.shape[0], s.x.shape[1]);
        std::swap(s.x.strides[0], s.x.strides[1]);
    }
    s.channels = s.x.shape[1];
    s.outputs = l.graph.value(node.outputs[0]).shape[1];
    s.affine = Affine(static_cast<std::size_t>(s.outputs));
    s.integer_bias.assign(static_cast<std::size_t>(s.outputs), 0);
    Product p{node.inputs[1], node.integer("transB", 0) != 0, static_cast<double>(node.real("alpha", 1.0f))};
    bind_rhs(l, id, s, p, false);
    start_affine(s);
    for (double& v : s.affine.scale) v *= p.alpha;
    add_bias(l.graph, id, s, node.input(2), static_cast<double>(node.real("beta", 1.0f)));
    bind_rows(id, s, {s.x.shape[0]}, {s.x.strides[0]});
    finish(l, id, s, false);
}

/// Batch dimensions of a MatMul that its right-hand side has too: one problem each.
std::vector<Repeat> repeats_of(const Shape& batch, const Operand& a, const Operand& b, std::int64_t out_step) {
    const Operand x = broadcast_to(a, batch), w = broadcast_to(b, batch);
    std::vector<Repeat> repeats;
    Shape index(batch.size(), 0);
    do {
        Repeat r{0, 0, static_cast<std::int64_t>(repeats.size()) * out_step};
        for (std::size_t d = 0; d < batch.size(); ++d) {
            r.x += index[d] * x.strides[d];
            r.w += index[d] * w.strides[d];
        }
        repeats.push_back(r);
    } while (next_index(index, batch));
    return repeats;
}

void matmul(Lowering& l, NodeId id, bool qlinear) {
    const Node& node = l.graph.node(id);
    MatrixSpec s = start(l, id);
    if (qlinear) s.x.quantization = tensor_quantization(l.graph, id, node.input(1), node.input(2), l.graph.value(node.inputs[0]).dtype);
    const ValueId rhs = node.inputs[qlinear ? 3 : 1];
    const Shape& b = l.graph.value(rhs).shape;
    s.channels = s.x.shape.back();
    s.outputs = b.size() == 1 ? 1 : b.back();
    s.affine = Affine(static_cast<std::size_t>(s.outputs));
    s.integer_bias.assign(static_cast<std::size_t>(s.outputs), 0);
    bind_rhs(l, id, s, {rhs, false, 1.0}, qlinear);
    start_affine(s);
    const std::size_t rank = s.x.shape.size();
    const Shape b_batch(b.begin(), b.size() > 2 ? b.end() - 2 : b.begin());
    if (element_count(b_batch) == 1) {
        bind_rows(id, s, {s.x.shape.begin(), s.x.shape.end() - 1}, {s.x.strides.begin(), s.x.strides.end() - 1});
    } else {
        const std::int64_t rows = rank > 1 ? s.x.shape[rank - 2] : 1;
        const auto batch_of = [](const Operand& o) {
            Operand part = o;
            const std::size_t keep = o.shape.size() > 2 ? o.shape.size() - 2 : 0;
            part.shape.resize(keep);
            part.strides.resize(keep);
            return part;
        };
        const Operand xa = batch_of(s.x), wb = batch_of(s.dynamic->operand);
        s.repeats = repeats_of(broadcast_shapes(id, xa.shape, wb.shape), xa, wb, rows * s.outputs);
        bind_rows(id, s, {rows}, {rank > 1 ? s.x.strides[rank - 2] : 0});
    }
    finish(l, id, s, qlinear);
}

}  // namespace

void lower_matmul(Lowering& l, NodeId id) {
    const std::string& op = l.graph.node(id).op;
    if (op == "Gemm")
        gemm(l, id);
    else
        matmul(l, id, op == "QLinearMatMul");
}

}  // namespace assay::workloads
