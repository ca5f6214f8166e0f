// A matrix layer from its normal form to its record in the program.
#include <algorithm>
#include <cmath>

#include "workloads/lower/matrix_emit.hpp"
#include "workloads/lower/matrix_weights.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::workloads {
namespace {

std::uint64_t macs_of(const MatrixSpec& s) {
    return static_cast<std::uint64_t>(s.repeats.size()) *
           static_cast<std::uint64_t>(s.batch * s.window.out[0] * s.window.out[1] * s.outputs * (s.channels / s.groups) *
                                      s.window.kernel[0] * s.window.kernel[1]);
}

/// Largest magnitude of a matrix operand that is an activation: calibrated, or counted when it is a constant. Nothing when not known.
std::optional<double> largest_of(const Lowering& l, ValueId value) {
    const Value& v = l.graph.value(value);
    if (v.constant && v.constant->dtype == DType::f32) {
        double largest = 0;
        for (const float x : v.constant->as<float>()) largest = std::fmax(largest, std::fabs(static_cast<double>(x)));
        return largest;
    }
    const auto found = l.options.ranges.find(v.name);
    if (found == l.options.ranges.end()) return std::nullopt;
    return std::max(std::fabs(found->second.low), std::fabs(found->second.high));
}

/// The policy's format for this layer. A scaled one needs the range of every activation that it reads: a layer without (a step of a node that
/// was taken apart, which no calibration sees) runs in bf16, and its record says so.
ArrayFormat format_of(const Lowering& l, const MatrixSpec& spec) {
    const Policy& policy = find_policy(l.options.precision);
    ArrayFormat format{policy.array, policy.planes, std::string(policy.layer), 1, {}};
    if (!policy.scaled || spec.integer) return format;
    const Node& node = l.graph.node(spec.main);
    const auto x = largest_of(l, node.input(0));
    const auto w = spec.dynamic ? largest_of(l, node.input(1)) : std::optional<double>(0);
    if (!x || !w) {
        const Policy& plain = find_policy("bf16");
        return {plain.array, plain.planes, std::string(plain.layer), 1, {}};
    }
    format.x_scale = scale_for(format.type, *x);
    if (spec.dynamic)
        format.w_scale = {scale_for(format.type, *w)};
    else
        for (const double largest : weight_magnitudes(l, spec)) format.w_scale.push_back(scale_for(format.type, largest));
    return format;
}

}  // namespace

void emit_matrix_layer(Lowering& l, MatrixSpec spec) {
    Window& w = spec.window;
    if (w.kernel[0] == 1 && w.kernel[1] == 1 && !w.pad_begin[0] && !w.pad_begin[1] && !w.pad_end[0] && !w.pad_end[1]) {
        // A strided 1x1 window reads only every stride-th pixel: load just those.
        for (const std::size_t d : {std::size_t{0}, std::size_t{1}}) {
            spec.x_strides[d + 1] *= w.stride[d];
            w.in[d] = w.out[d];
            w.stride[d] = w.dilation[d] = 1;
        }
    }
    if (spec.integer && spec.weights) {
        const auto sums = weight_sums(spec);
        const auto zero = static_cast<std::uint32_t>(spec.x.quantization->zero_point);
        for (std::size_t o = 0; o < sums.size(); ++o)
            spec.integer_bias[o] =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(spec.integer_bias[o]) - zero * static_cast<std::uint32_t>(sums[o]));
    }
    spec.format = format_of(l, spec);
    for (std::size_t o = 0; o < spec.affine.scale.size() && !spec.format.w_scale.empty(); ++o)
        spec.affine.scale[o] *= spec.format.x_scale * spec.format.w_scale[spec.dynamic ? 0 : o];
    const Drain drain = build_drain(spec);
    const std::size_t segments = drain.expr.ops().empty() ? 1 : split(drain.expr).size();
    const MatrixPlan plan = plan_matrix(l, spec, static_cast<std::int64_t>(drain.params.size()), segments);
    l.begin_layer();
    emit_matrix_tiles(l, spec, plan, drain);
    simkernel::Layer layer;
    layer.precision = spec.integer ? "int8" : spec.format.precision;
    if (!spec.integer && !spec.format.w_scale.empty()) {
        layer.x_scale = spec.format.x_scale;
        layer.w_scale = spec.dynamic ? spec.format.w_scale[0] : 0;
    }
    layer.macs = macs_of(spec);
    layer.k_slab = plan.slab;
    if (plan.blocks[0].group_k) layer.k_slab = spec.channels / spec.groups;
    layer.mapping = describe(spec, plan, l.chip);
    std::vector<Operand> inputs{spec.x};
    if (spec.dynamic) inputs.push_back(spec.dynamic->operand);
    l.end_layer(std::move(layer), spec.main, spec.nodes, inputs, spec.tail.output);
}

}  // namespace assay::workloads
