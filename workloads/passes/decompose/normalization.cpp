// Normalisations as reductions and elementwise nodes.
//
//     Layer (17)     m = mean(x); d = x - m; s = sqrt(sum(d d)/n + epsilon); y = d / s * scale + bias          over the axes from `axis` on
//     RMS (23)       y = x / sqrt(sum(x x)/n + epsilon) * scale
//     Instance (6)   as Layer, over the image; scale and bias by channel
//     Group (18, 21) as Layer, over [C/groups, image]; scale and bias by channel (21) or by group (18)
//     MeanVariance   y = (x - m) / (sqrt(sum(d d)/n) + 1e-9), over `axes`
//     Lp             y = x / norm(x), over `axis`
#include <cmath>
#include <numeric>

#include "workloads/passes/decompose/families.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

std::vector<std::int64_t> axes_from(std::int64_t first, std::size_t rank) {
    std::vector<std::int64_t> axes;
    for (auto d = first; d < static_cast<std::int64_t>(rank); ++d) axes.push_back(d);
    return axes;
}

float count_of(const Shape& shape, const std::vector<std::int64_t>& axes) {
    std::int64_t n = 1;
    for (const std::int64_t a : axes) n *= shape[static_cast<std::size_t>(a)];
    return static_cast<float>(n);
}

/// sqrt(sum(v v)/n + epsilon), keeping the dimensions.
ValueId deviation(Rewriter& r, ValueId v, const Shape& shape, const std::vector<std::int64_t>& axes, float epsilon) {
    ValueId s = r.add("Div", {r.reduce("ReduceSumSquare", v, axes), r.scalar(count_of(shape, axes))});
    if (epsilon != 0) s = r.add("Add", {s, r.scalar(epsilon)});
    return r.add("Sqrt", {s});
}

ValueId scaled(Rewriter& r, ValueId v, ValueId scale, ValueId bias, ValueId output) {
    if (bias == kNoValue) return r.add("Mul", {v, scale}, {}, output);
    return r.add("Add", {r.add("Mul", {v, scale}), bias}, {}, output);
}

void layer(Rewriter& r, bool centred) {
    const Node& n = r.original;
    const Shape shape = r.in(0).shape;
    const std::int64_t axis = normal_axis(r.id, n.integer("axis", -1), shape.size());
    if (r.in(0).dtype != DType::f32 || n.integer("stash_type", 1) != 1) throw NotTakenApart{};
    const auto axes = axes_from(axis, shape.size());
    const float epsilon = n.real("epsilon", 1e-5f);
    ValueId d = n.inputs[0];
    if (centred) {
        const ValueId mean = r.reduce("ReduceMean", d, axes, r.output(1));
        d = r.add("Sub", {d, mean});
    }
    const ValueId s = deviation(r, d, shape, axes, epsilon);
    if (centred && r.output(2) != kNoValue) r.add("Reciprocal", {s}, {}, r.output(2));
    scaled(r, r.add("Div", {d, s}), n.inputs[1], centred ? n.input(2) : kNoValue, n.outputs[0]);
}

/// A per-channel vector as it broadcasts to [N, C, 1, …].
ValueId by_channel(Rewriter& r, ValueId v, std::size_t rank) {
    Shape shape(rank - 1, 1);
    shape[0] = r.graph.value(v).shape.empty() ? 1 : r.graph.value(v).shape[0];
    return r.reshape(v, shape);
}

void instance(Rewriter& r) {
    const Shape shape = r.in(0).shape;
    if (shape.size() < 3 || r.in(0).dtype != DType::f32) throw NotTakenApart{};
    const auto axes = axes_from(2, shape.size());
    const ValueId x = r.original.inputs[0], d = r.add("Sub", {x, r.reduce("ReduceMean", x, axes)});
    const ValueId s = deviation(r, d, shape, axes, r.original.real("epsilon", 1e-5f));
    scaled(r, r.add("Div", {d, s}), by_channel(r, r.original.inputs[1], shape.size()), by_channel(r, r.original.inputs[2], shape.size()),
           r.original.outputs[0]);
}

void group(Rewriter& r) {
    const Shape shape = r.in(0).shape;
    const std::int64_t groups = r.original.integer("num_groups", 0);
    if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
        throw MalformedNode(r.id, "num_groups does not divide the channels; repair the model");
    if (r.in(0).dtype != DType::f32 || r.original.integer("stash_type", 1) != 1) throw NotTakenApart{};
    const bool each_group = r.in(1).shape == Shape{groups} && groups != shape[1];  // version 18
    const Shape grouped{shape[0], groups, element_count(shape) / (shape[0] * groups)};
    const ValueId x = r.reshape(r.original.inputs[0], grouped), d = r.add("Sub", {x, r.reduce("ReduceMean", x, {2})});
    const ValueId n = r.add("Div", {d, deviation(r, d, grouped, {2}, r.original.real("epsilon", 1e-5f))});
    if (each_group) {
        const ValueId scale = r.reshape(r.original.inputs[1], {groups, 1}), bias = r.reshape(r.original.inputs[2], {groups, 1});
        r.reshape(scaled(r, n, scale, bias, kNoValue), shape, r.original.outputs[0]);
    } else {
        scaled(r, r.reshape(n, shape), by_channel(r, r.original.inputs[1], shape.size()), by_channel(r, r.original.inputs[2], shape.size()),
               r.original.outputs[0]);
    }
}

void mean_variance(Rewriter& r) {
    const Shape shape = r.in(0).shape;
    std::vector<std::int64_t> axes = r.original.integers("axes", {0, 2, 3});
    for (std::int64_t& a : axes) a = normal_axis(r.id, a, shape.size());
    if (r.in(0).dtype != DType::f32) throw NotTakenApart{};
    const ValueId x = r.original.inputs[0], d = r.add("Sub", {x, r.reduce("ReduceMean", x, axes)});
    const ValueId s = r.add("Add", {deviation(r, d, shape, axes, 0), r.scalar(1e-9f)});
    r.add("Div", {d, s}, {}, r.original.outputs[0]);
}

void lp(Rewriter& r) {
    const std::int64_t axis = normal_axis(r.id, r.original.integer("axis", -1), r.in(0).shape.size()), p = r.original.integer("p", 2);
    if (r.in(0).dtype != DType::f32 || (p != 1 && p != 2)) throw NotTakenApart{};
    const ValueId norm = r.reduce(p == 1 ? "ReduceL1" : "ReduceL2", r.original.inputs[0], {axis});
    r.add("Div", {r.original.inputs[0], norm}, {}, r.original.outputs[0]);
}

}  // namespace

void take_apart_normalization(Rewriter& r) {
    const std::string& op = r.original.op;
    if (r.original.outputs[0] == kNoValue) throw NotTakenApart{};
    if (op == "LayerNormalization") return layer(r, true);
    if (op == "RMSNormalization") return layer(r, false);
    if (op == "InstanceNormalization") return instance(r);
    if (op == "GroupNormalization") return group(r);
    if (op == "MeanVarianceNormalization") return mean_variance(r);
    lp(r);
}

}  // namespace assay::workloads
