// Output types and shapes, operator by operator. An operator absent from the table is unsupported.
#include <fmt/core.h>

#include <functional>
#include <map>

#include "workloads/passes/passes.hpp"
#include "workloads/passes/window.hpp"

namespace assay::workloads {
namespace {

struct Context {
    Graph& graph;
    NodeId id;
    const Node& node;

    const Value& in(std::size_t i) const {
        const ValueId v = node.input(i);
        if (v == kNoValue) throw NodeError(id, fmt::format("input {} is missing; repair the model", i));
        return graph.value(v);
    }
    bool has(std::size_t i) const { return node.input(i) != kNoValue; }
    const Tensor& constant(std::size_t i, const char* what) const {
        if (!in(i).constant)
            throw NodeError(id, fmt::format("{} is computed at run time, which is not supported; make it a constant", what));
        return *in(i).constant;
    }
    std::vector<std::int64_t> integers(std::size_t i, const char* what) const {
        const Tensor& t = constant(i, what);
        std::vector<std::int64_t> values;
        for (std::int64_t k = 0; k < t.count(); ++k) values.push_back(t.integer(k));
        return values;
    }
    void out(std::size_t i, DType dtype, Shape shape) const {
        if (i >= node.outputs.size() || node.outputs[i] == kNoValue) return;
        Value& v = graph.value(node.outputs[i]);
        v.dtype = dtype;
        v.shape = std::move(shape);
        v.known = true;
    }
};

void same_as_input(const Context& c) { c.out(0, c.in(0).dtype, c.in(0).shape); }

void require_rank(const Context& c, std::size_t least) {
    if (c.in(0).shape.size() < least)
        throw NodeError(c.id, fmt::format("input is {}, needs at least {} dimensions; repair the model", to_string(c.in(0).shape), least));
}

void elementwise(const Context& c) {
    Shape shape = c.in(0).shape;
    for (std::size_t i = 1; i < c.node.inputs.size(); ++i) {
        if (c.in(i).dtype != c.in(0).dtype)
            throw NodeError(c.id, fmt::format("input types {} and {} differ; add a Cast", name_of(c.in(0).dtype), name_of(c.in(i).dtype)));
        shape = broadcast_shapes(c.id, shape, c.in(i).shape);
    }
    c.out(0, c.in(0).dtype, shape);
}

void convolution(const Context& c, std::size_t x, std::size_t w, DType out) {
    const Shape& xs = c.in(x).shape;
    const Shape& ws = c.in(w).shape;
    if (xs.size() < 3 || ws.size() != xs.size())
        throw NodeError(c.id, fmt::format("input {} and weight {} do not fit; repair the model", to_string(xs), to_string(ws)));
    const std::int64_t group = c.node.integer("group", 1);
    if (group < 1 || xs[1] % group || ws[0] % group || xs[1] / group != ws[1])
        throw NodeError(c.id,
                        fmt::format("{} channels in {} groups do not fit the weight {}; repair the model", xs[1], group, to_string(ws)));
    const std::vector<std::int64_t> kernel(ws.begin() + 2, ws.end());
    if (const auto given = c.node.integers("kernel_shape", kernel); given != kernel)
        throw NodeError(c.id, fmt::format("kernel_shape {} but the weight is {}; repair the model", to_string(given), to_string(ws)));
    const Window window = window_of(c.graph, c.id, {xs.begin() + 2, xs.end()}, kernel);
    Shape shape{xs[0], ws[0]};
    for (std::size_t i = 4 - xs.size(); i < 2; ++i) shape.push_back(window.out[i]);
    c.out(0, out, shape);
}

void pool(const Context& c) {
    require_rank(c, 3);
    const Shape& xs = c.in(0).shape;
    if (c.node.outputs.size() > 1 && c.node.outputs[1] != kNoValue) throw NodeError(c.id, "output Indices is not supported; remove it");
    if (c.node.integer("storage_order", 0) != 0) throw NodeError(c.id, "storage_order=1 is not supported; use 0");
    const Window window = window_of(c.graph, c.id, {xs.begin() + 2, xs.end()}, c.node.integers("kernel_shape"));
    Shape shape{xs[0], xs[1]};
    for (std::size_t i = 4 - xs.size(); i < 2; ++i) shape.push_back(window.out[i]);
    c.out(0, c.in(0).dtype, shape);
}

void global_pool(const Context& c) {
    require_rank(c, 3);
    Shape shape = c.in(0).shape;
    for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = 1;
    c.out(0, c.in(0).dtype, shape);
}

void gemm(const Context& c) {
    Shape a = c.in(0).shape, b = c.in(1).shape;
    if (a.size() != 2 || b.size() != 2) throw NodeError(c.id, "Gemm takes two matrices; repair the model");
    if (c.node.integer("transA", 0)) std::swap(a[0], a[1]);
    if (c.node.integer("transB", 0)) std::swap(b[0], b[1]);
    if (a[1] != b[0]) throw NodeError(c.id, fmt::format("K is {} in A and {} in B; repair the model", a[1], b[0]));
    const Shape shape{a[0], b[1]};
    if (c.has(2) && broadcast_shapes(c.id, shape, c.in(2).shape) != shape)
        throw NodeError(c.id, fmt::format("C {} does not broadcast to {}; repair the model", to_string(c.in(2).shape), to_string(shape)));
    c.out(0, c.in(0).dtype, shape);
}

void matmul(const Context& c, std::size_t ia, std::size_t ib, DType out) {
    Shape a = c.in(ia).shape, b = c.in(ib).shape;
    if (a.empty() || b.empty()) throw NodeError(c.id, "MatMul of a scalar; repair the model");
    const bool row = a.size() == 1, column = b.size() == 1;
    if (row) a.insert(a.begin(), 1);
    if (column) b.push_back(1);
    const std::int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
    if (b[b.size() - 2] != k) throw NodeError(c.id, fmt::format("K is {} in A and {} in B; repair the model", k, b[b.size() - 2]));
    Shape shape = broadcast_shapes(c.id, {a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
    if (!row) shape.push_back(m);
    if (!column) shape.push_back(n);
    c.out(0, out, shape);
}

void reshape(const Context& c) {
    const Shape& from = c.in(0).shape;
    Shape to = c.integers(1, "the target shape");
    std::int64_t known = 1;
    int open = -1;
    for (std::size_t i = 0; i < to.size(); ++i) {
        if (to[i] == 0 && c.node.integer("allowzero", 0) == 0) {
            if (i >= from.size()) throw NodeError(c.id, "the target shape copies a dimension that the input lacks; repair the model");
            to[i] = from[i];
        }
        if (to[i] == -1)
            open = static_cast<int>(i);
        else
            known *= to[i];
    }
    const std::int64_t count = element_count(from);
    if (open >= 0) to[static_cast<std::size_t>(open)] = known ? count / known : 0;
    if (element_count(to) != count)
        throw NodeError(c.id, fmt::format("{} does not reshape to {}; repair the model", to_string(from), to_string(to)));
    c.out(0, c.in(0).dtype, to);
}

void flatten(const Context& c) {
    const Shape& x = c.in(0).shape;
    std::int64_t axis = c.node.integer("axis", 1);
    if (axis < 0) axis += static_cast<std::int64_t>(x.size());
    if (axis < 0 || axis > static_cast<std::int64_t>(x.size())) throw NodeError(c.id, "axis is out of range; repair the model");
    const Shape head(x.begin(), x.begin() + axis), tail(x.begin() + axis, x.end());
    c.out(0, c.in(0).dtype, {element_count(head), element_count(tail)});
}

void transpose(const Context& c) {
    const Shape& x = c.in(0).shape;
    std::vector<std::int64_t> perm = c.node.integers("perm");
    if (perm.empty())
        for (std::size_t i = x.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
    Shape y;
    std::vector<bool> seen(x.size(), false);
    for (const std::int64_t p : perm) {
        if (p < 0 || p >= static_cast<std::int64_t>(x.size()) || seen[static_cast<std::size_t>(p)] || perm.size() != x.size())
            throw NodeError(c.id, "perm is not a permutation of the dimensions; repair the model");
        seen[static_cast<std::size_t>(p)] = true;
        y.push_back(x[static_cast<std::size_t>(p)]);
    }
    c.out(0, c.in(0).dtype, y);
}

void concat(const Context& c) {
    Shape shape = c.in(0).shape;
    const auto axis = static_cast<std::size_t>(normal_axis(c.id, c.node.integer("axis", 0), shape.size()));
    for (std::size_t i = 1; i < c.node.inputs.size(); ++i) {
        Shape other = c.in(i).shape;
        if (other.size() != shape.size()) throw NodeError(c.id, "inputs differ in rank; repair the model");
        shape[axis] += other[axis];
        other[axis] = shape[axis];
        if (other != shape)
            throw NodeError(c.id, fmt::format("input {} is {}, which does not fit; repair the model", i, to_string(c.in(i).shape)));
    }
    c.out(0, c.in(0).dtype, shape);
}

std::vector<std::int64_t> axes_of(const Context& c) {
    return c.node.has("axes") ? c.node.integers("axes") : c.has(1) ? c.integers(1, "axes") : std::vector<std::int64_t>{};
}

void squeeze(const Context& c) {
    const Shape& x = c.in(0).shape;
    std::vector<bool> drop(x.size(), false);
    const auto axes = axes_of(c);
    for (const std::int64_t axis : axes) drop[static_cast<std::size_t>(normal_axis(c.id, axis, x.size()))] = true;
    Shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (axes.empty() ? x[i] == 1 : drop[i]) {
            if (x[i] != 1) throw NodeError(c.id, fmt::format("dimension {} is {}, not 1; repair the model", i, x[i]));
            continue;
        }
        y.push_back(x[i]);
    }
    c.out(0, c.in(0).dtype, y);
}

void unsqueeze(const Context& c) {
    const auto axes = axes_of(c);
    const std::size_t rank = c.in(0).shape.size() + axes.size();
    std::vector<bool> added(rank, false);
    for (const std::int64_t axis : axes) added[static_cast<std::size_t>(normal_axis(c.id, axis, rank))] = true;
    Shape y;
    std::size_t from = 0;
    for (std::size_t i = 0; i < rank; ++i) {
        if (!added[i] && from >= c.in(0).shape.size()) throw NodeError(c.id, "axes repeats a dimension; repair the model");
        y.push_back(added[i] ? 1 : c.in(0).shape[from++]);
    }
    c.out(0, c.in(0).dtype, y);
}

void pad(const Context& c) {
    if (const auto mode = c.node.text("mode", "constant"); mode != "constant")
        throw NodeError(c.id, fmt::format("mode=\"{}\" is not supported; use \"constant\"", mode));
    if (c.has(3)) throw NodeError(c.id, "input axes is not supported; give pads for every dimension");
    const auto pads = c.node.has("pads") ? c.node.integers("pads") : c.integers(1, "pads");
    Shape shape = c.in(0).shape;
    if (pads.size() != 2 * shape.size()) throw NodeError(c.id, "pads needs two entries a dimension; repair the model");
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (pads[i] < 0 || pads[shape.size() + i] < 0) throw NodeError(c.id, "negative pads are not supported; use Slice");
        shape[i] += pads[i] + pads[shape.size() + i];
    }
    c.out(0, c.in(0).dtype, shape);
}

void quantize(const Context& c) {
    if (c.node.integer("block_size", 0) != 0) throw NodeError(c.id, "block_size is not supported; quantise by tensor or by axis");
    c.out(0, c.has(2) ? c.in(2).dtype : DType::u8, c.in(0).shape);
}

void dequantize(const Context& c) {
    if (c.node.integer("block_size", 0) != 0) throw NodeError(c.id, "block_size is not supported; quantise by tensor or by axis");
    c.out(0, c.in(1).dtype, c.in(0).shape);
}

void normalization(const Context& c) {
    if (c.node.integer("training_mode", 0) != 0) throw NodeError(c.id, "training_mode=1 is not supported; export for inference");
    require_rank(c, 2);
    same_as_input(c);
}

const std::map<std::string, std::function<void(const Context&)>>& rules() {
    static const std::map<std::string, std::function<void(const Context&)>> table{
        {"Add", elementwise},
        {"Sub", elementwise},
        {"Mul", elementwise},
        {"Div", elementwise},
        {"Min", elementwise},
        {"Max", elementwise},
        {"Relu", same_as_input},
        {"Clip", same_as_input},
        {"Sigmoid", same_as_input},
        {"HardSigmoid", same_as_input},
        {"LeakyRelu", same_as_input},
        {"Tanh", same_as_input},
        {"Softmax", same_as_input},
        {"Identity", same_as_input},
        {"Dropout", same_as_input},
        {"BatchNormalization", normalization},
        {"Conv", [](const Context& c) { convolution(c, 0, 1, c.in(0).dtype); }},
        {"QLinearConv", [](const Context& c) { convolution(c, 0, 3, c.in(7).dtype); }},
        {"Gemm", gemm},
        {"MatMul", [](const Context& c) { matmul(c, 0, 1, c.in(0).dtype); }},
        {"QLinearMatMul", [](const Context& c) { matmul(c, 0, 3, c.in(7).dtype); }},
        {"MaxPool", pool},
        {"AveragePool", pool},
        {"GlobalAveragePool", global_pool},
        {"GlobalMaxPool", global_pool},
        {"LpPool", pool},
        {"GlobalLpPool", global_pool},
        {"Reshape", reshape},
        {"Flatten", flatten},
        {"Transpose", transpose},
        {"Concat", concat},
        {"Squeeze", squeeze},
        {"Unsqueeze", unsqueeze},
        {"Pad", pad},
        {"QuantizeLinear", quantize},
        {"DequantizeLinear", dequantize},
    };
    return table;
}

}  // namespace

std::int64_t normal_axis(NodeId id, std::int64_t axis, std::size_t rank) {
    const auto r = static_cast<std::int64_t>(rank);
    if (axis < -r || axis >= r) throw MalformedNode(id, fmt::format("axis {} is out of range for {} dimensions; repair the model", axis, rank));
    return axis < 0 ? axis + r : axis;
}

Shape broadcast_shapes(NodeId id, const Shape& a, const Shape& b) {
    Shape out(std::max(a.size(), b.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {  // from the last dimension
        const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            throw MalformedNode(id, fmt::format("{} and {} do not broadcast; repair the model", to_string(a), to_string(b)));
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

void infer_node(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    if (node.domain.empty() && infer_movement(graph, id)) return;
    const auto rule = rules().find(node.op);
    if (!node.domain.empty() || rule == rules().end()) return infer_on_host(graph, id);
    rule->second(Context{graph, id, node});
}

}  // namespace assay::workloads
