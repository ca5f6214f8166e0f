// Compound reductions.
//
//     LogSoftmax       d = x - max(x); y = d - log(sum(exp(d)))
//     ReduceLogSumExp  m = max(x); y = log(sum(exp(x - m))) + m, reshaped when the dimensions are not kept
//     CumSum           the axis moved last, times a triangle of ones
#include "workloads/passes/decompose/families.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kLongestSum = 1024;  // of a CumSum: the triangle has its square

void log_softmax(Rewriter& r) {
    const Shape shape = r.in(0).shape;
    if (shape.empty()) throw NotTakenApart{};
    const bool single = r.graph.opset >= 13;
    const std::int64_t axis = normal_axis(r.id, r.original.integer("axis", single ? -1 : 1), shape.size());
    std::vector<std::int64_t> axes{axis};
    if (!single)
        for (std::int64_t d = axis + 1; d < static_cast<std::int64_t>(shape.size()); ++d) axes.push_back(d);
    const ValueId x = r.original.inputs[0], d = r.add("Sub", {x, r.reduce("ReduceMax", x, axes)});
    const ValueId s = r.add("Log", {r.reduce("ReduceSum", r.add("Exp", {d}), axes)});
    r.add("Sub", {d, s}, {}, r.original.outputs[0]);
}

void log_sum_exp(Rewriter& r) {
    const Node& n = r.original;
    const Shape shape = r.in(0).shape;
    std::vector<std::int64_t> axes = n.integers("axes");
    if (r.has(1)) {
        if (!r.in(1).constant) throw NotTakenApart{};
        axes.clear();
        for (std::int64_t i = 0; i < r.in(1).constant->count(); ++i) axes.push_back(r.in(1).constant->integer(i));
    }
    if (axes.empty() && n.integer("noop_with_empty_axes", 0) != 0) throw NotTakenApart{};
    for (std::int64_t& a : axes) a = normal_axis(r.id, a, shape.size());
    if (axes.empty())
        for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.size()); ++d) axes.push_back(d);
    if (axes.empty()) throw NotTakenApart{};
    const ValueId m = r.reduce("ReduceMax", n.inputs[0], axes);
    const ValueId s = r.reduce("ReduceSum", r.add("Exp", {r.add("Sub", {n.inputs[0], m})}), axes);
    const bool keep = n.integer("keepdims", 1) != 0;
    const ValueId y = r.add("Add", {r.add("Log", {s}), m}, {}, keep ? n.outputs[0] : kNoValue);
    if (!keep) r.reshape(y, r.graph.value(n.outputs[0]).shape, n.outputs[0]);
}

void cumulative(Rewriter& r) {
    const Node& n = r.original;
    const Shape shape = r.in(0).shape;
    if (!r.has(1) || !r.in(1).constant || r.in(1).constant->count() != 1 || shape.empty()) throw NotTakenApart{};
    const auto axis = static_cast<std::size_t>(normal_axis(r.id, r.in(1).constant->integer(0), shape.size()));
    const std::int64_t length = shape[axis];
    if (length > kLongestSum) throw NotTakenApart{};
    const bool exclusive = n.integer("exclusive", 0) != 0, reverse = n.integer("reverse", 0) != 0;
    std::vector<double> triangle(static_cast<std::size_t>(length * length), 0.0);
    for (std::int64_t k = 0; k < length; ++k)
        for (std::int64_t i = 0; i < length; ++i) {
            const std::int64_t ahead = reverse ? k - i : i - k;  // how far the sum's end lies past the term
            if (ahead > 0 || (ahead == 0 && !exclusive)) triangle[static_cast<std::size_t>(k * length + i)] = 1.0;
        }
    const ValueId ones = r.constant(float_tensor({length, length}, triangle));
    if (axis + 1 == shape.size()) {
        r.add("MatMul", {n.inputs[0], ones}, {}, n.outputs[0]);
        return;
    }
    std::vector<std::int64_t> swap(shape.size());
    for (std::size_t d = 0; d < swap.size(); ++d) swap[d] = static_cast<std::int64_t>(d);
    std::swap(swap[axis], swap.back());
    r.transpose(r.add("MatMul", {r.transpose(n.inputs[0], swap), ones}), swap, n.outputs[0]);
}

}  // namespace

void take_apart_reduction(Rewriter& r) {
    if (r.in(0).dtype != DType::f32 || r.original.outputs[0] == kNoValue) throw NotTakenApart{};
    if (r.original.op == "LogSoftmax") return log_softmax(r);
    if (r.original.op == "ReduceLogSumExp") return log_sum_exp(r);
    cumulative(r);
}

}  // namespace assay::workloads
