// Output types and shapes of elementwise operators, normalisations that keep the shape, and reductions.
#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <functional>
#include <map>

#include "support/onnx/onnx_file.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

struct Call {
    Graph& graph;
    NodeId id;
    const Node& node;

    const Value& in(std::size_t i) const {
        const ValueId v = node.input(i);
        if (v == kNoValue) throw MalformedNode(id, fmt::format("input {} is missing; repair the model", i));
        return graph.value(v);
    }
    void out(DType dtype, Shape shape, std::size_t i = 0) const {
        if (i >= node.outputs.size() || node.outputs[i] == kNoValue) return;
        Value& v = graph.value(node.outputs[i]);
        v.dtype = dtype;
        v.shape = std::move(shape);
        v.known = true;
    }
    /// All inputs, broadcast; from `first` on they must have one type.
    Shape broadcast(std::size_t first = 0) const {
        Shape shape = in(0).shape;
        for (std::size_t i = 1; i < node.inputs.size(); ++i) {
            if (node.inputs[i] == kNoValue) continue;
            if (i > first && in(i).dtype != in(first).dtype)
                throw MalformedNode(
                    id, fmt::format("input types {} and {} differ; add a Cast", name_of(in(first).dtype), name_of(in(i).dtype)));
            shape = broadcast_shapes(id, shape, in(i).shape);
        }
        return shape;
    }
};

void same(const Call& c) { c.out(c.in(0).dtype, c.in(0).shape); }
void arithmetic(const Call& c) { c.out(c.in(0).dtype, c.broadcast()); }
void comparison(const Call& c) { c.out(DType::boolean, c.broadcast()); }
void power(const Call& c) { c.out(c.in(0).dtype, broadcast_shapes(c.id, c.in(0).shape, c.in(1).shape)); }
void where(const Call& c) { c.out(c.in(1).dtype, c.broadcast(1)); }
void test(const Call& c) { c.out(DType::boolean, c.in(0).shape); }

void slope(const Call& c) {
    if (broadcast_shapes(c.id, c.in(0).shape, c.in(1).shape) != c.in(0).shape)
        throw MalformedNode(c.id, fmt::format("slope {} does not broadcast to {}; repair the model", to_string(c.in(1).shape),
                                              to_string(c.in(0).shape)));
    same(c);
}

void cast(const Call& c) {
    if (!c.node.has("to")) throw MalformedNode(c.id, "attribute to is missing; repair the model");
    c.out(dtype_from_onnx(static_cast<int>(c.node.integer("to", 0)), "attribute to"), c.in(0).shape);
}

/// Dimensions to reduce: attribute or constant input; none given: all, unless noop_with_empty_axes.
std::vector<bool> reduced_axes(const Call& c) {
    const std::size_t rank = c.in(0).shape.size();
    std::vector<std::int64_t> axes = c.node.integers("axes");
    if (c.node.input(1) != kNoValue) {
        if (!c.in(1).constant) throw NodeError(c.id, "axes are computed at run time, which is not supported; make them a constant");
        axes.clear();
        for (std::int64_t i = 0; i < c.in(1).constant->count(); ++i) axes.push_back(c.in(1).constant->integer(i));
    }
    std::vector<bool> reduced(rank, axes.empty() && c.node.integer("noop_with_empty_axes", 0) == 0);
    for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>(normal_axis(c.id, axis, rank))] = true;
    return reduced;
}

void shrink(const Call& c, DType type, const std::vector<bool>& reduced) {
    Shape shape;
    for (std::size_t d = 0; d < reduced.size(); ++d) {
        if (!reduced[d])
            shape.push_back(c.in(0).shape[d]);
        else if (c.node.integer("keepdims", 1) != 0)
            shape.push_back(1);
    }
    c.out(type, std::move(shape));
}

void reduce(const Call& c) { shrink(c, c.in(0).dtype, reduced_axes(c)); }

void arg(const Call& c) {
    std::vector<bool> reduced(c.in(0).shape.size(), false);
    reduced[static_cast<std::size_t>(normal_axis(c.id, c.node.integer("axis", 0), reduced.size()))] = true;
    shrink(c, DType::i64, reduced);
}

/// Y [T, D, B, H] (batch first: [B, T, D, H]), Y_h and Y_c [D, B, H] ([B, D, H]).
void recurrent(const Call& c) {
    const Shape &x = c.in(0).shape, &r = c.in(2).shape;
    if (x.size() != 3 || r.size() != 3) throw MalformedNode(c.id, "X and R must have 3 dimensions; repair the model");
    const bool batch_first = c.node.integer("layout", 0) != 0;
    const DType type = c.in(0).dtype;
    c.out(type, batch_first ? Shape{x[0], x[1], r[0], r[2]} : Shape{x[0], r[0], x[1], r[2]});
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
        c.out(type, batch_first ? Shape{x[0], r[0], r[2]} : Shape{r[0], x[1], r[2]}, i);
}

void layer_normalization(const Call& c) {
    same(c);
    Shape kept = c.in(0).shape;
    for (auto d = static_cast<std::size_t>(normal_axis(c.id, c.node.integer("axis", -1), kept.size())); d < kept.size(); ++d) kept[d] = 1;
    c.out(DType::f32, kept, 1);
    c.out(DType::f32, kept, 2);
}

void conv_transpose(const Call& c) {
    const Shape &x = c.in(0).shape, &w = c.in(1).shape;
    if (x.size() < 3 || w.size() != x.size() || x[1] != w[0]) throw MalformedNode(c.id, "the weight does not fit the input; repair the model");
    const std::size_t spatial = x.size() - 2;
    const auto list = [&](const char* name, std::size_t count, std::int64_t otherwise) {
        auto v = c.node.integers(name, std::vector<std::int64_t>(count, otherwise));
        if (v.size() != count) throw MalformedNode(c.id, fmt::format("{} needs {} entries; repair the model", name, count));
        return v;
    };
    const auto stride = list("strides", spatial, 1), dilation = list("dilations", spatial, 1), more = list("output_padding", spatial, 0),
               pads = list("pads", 2 * spatial, 0), given = list("output_shape", spatial, 0);
    const std::string auto_pad = c.node.text("auto_pad", "NOTSET");
    Shape y{x[0], w[1] * c.node.integer("group", 1)};
    for (std::size_t d = 0; d < spatial; ++d) {
        const std::int64_t whole = stride[d] * (x[d + 2] - 1) + more[d] + (w[d + 2] - 1) * dilation[d] + 1;
        const bool same_size = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
        y.push_back(given[d] > 0 ? given[d] : same_size ? x[d + 2] * stride[d] : whole - pads[d] - pads[spatial + d]);
        if (y.back() < 0) throw MalformedNode(c.id, "the pads are larger than the output; repair the model");
    }
    c.out(c.in(0).dtype, y);
}

const std::map<std::string, std::function<void(const Call&)>>& rules() {
    static const auto table = [] {
        std::map<std::string, std::function<void(const Call&)>> t;
        const auto add = [&](std::function<void(const Call&)> rule, std::initializer_list<const char*> names) {
            for (const char* name : names) t[name] = rule;
        };
        add(arithmetic, {"Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean", "Mod", "And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr",
                         "BitwiseXor"});
        add(comparison, {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"});
        add(same, {"Abs",        "Neg",     "Sign",       "Floor",  "Ceil",       "Round",      "Sqrt",      "Reciprocal",  "Exp",
                   "Log",        "Erf",     "Sin",        "Cos",    "Tan",        "Asin",       "Acos",      "Atan",        "Sinh",
                   "Cosh",       "Asinh",   "Acosh",      "Atanh",  "Elu",        "Selu",       "Celu",      "Gelu",        "HardSwish",
                   "Swish",      "Mish",    "Softplus",   "Softsign", "ThresholdedRelu", "Shrink", "Not",    "BitwiseNot",  "LogSoftmax",
                   "Hardmax",    "CumSum",  "LRN",        "InstanceNormalization", "LpNormalization", "MeanVarianceNormalization",
                   "GroupNormalization", "RMSNormalization"});
        add(power, {"Pow"});
        add(where, {"Where"});
        add(test, {"IsNaN", "IsInf"});
        add(slope, {"PRelu"});
        add(cast, {"Cast"});
        add([](const Call& c) { c.out(c.in(1).dtype, c.in(0).shape); }, {"CastLike"});
        add(reduce, {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                     "ReduceLogSumExp", "ReduceSumSquare"});
        add(arg, {"ArgMax", "ArgMin"});
        add(recurrent, {"LSTM", "GRU", "RNN"});
        add(layer_normalization, {"LayerNormalization"});
        add(conv_transpose, {"ConvTranspose"});
        return t;
    }();
    return table;
}

}  // namespace

bool infer_compute(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const auto rule = rules().find(node.op);
    if (rule == rules().end()) return false;
    for (const ValueId input : node.inputs)
        if (input != kNoValue && graph.value(input).dynamic) return false;
    rule->second(Call{graph, id, node});
    return true;
}

}  // namespace assay::workloads
