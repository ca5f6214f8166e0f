#include "workloads/lower/array_format.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/lower/matrix_weights.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::workloads {
namespace {

/// The values that an operand takes: calibrated, or counted when it is a constant. Nothing when not known.
std::optional<Range> range_of(const Lowering& l, ValueId value) {
    const Value& v = l.graph.value(value);
    if (v.constant && v.constant->dtype == DType::f32) {
        Range range;
        for (const float x : v.constant->as<float>()) range = {std::fmin(range.low, static_cast<double>(x)), std::fmax(range.high, static_cast<double>(x))};
        return range;
    }
    const auto found = l.options.ranges.find(v.name);
    if (found == l.options.ranges.end()) return std::nullopt;
    return found->second;
}

double magnitude(const Range& range) { return std::max(std::fabs(range.low), std::fabs(range.high)); }

/// A step of a node that was taken apart: golden judges the whole node, by one rule and without a range for what lies between.
bool is_step(const Lowering& l, const MatrixSpec& spec) {
    const Node& node = l.graph.node(spec.main);
    const auto internal = [&](ValueId v) { return v != kNoValue && l.graph.value(v).internal; };
    return std::any_of(node.inputs.begin(), node.inputs.end(), internal) || std::any_of(node.outputs.begin(), node.outputs.end(), internal);
}

void multiply_back(MatrixSpec& spec) {
    for (std::size_t o = 0; o < spec.affine.scale.size(); ++o)
        spec.affine.scale[o] *= spec.format.x_scale * spec.format.w_scale[spec.dynamic ? 0 : o];
}

ArrayFormat plain(const Policy& policy) { return {policy.array, policy.planes, policy.scaling, std::string(policy.layer), 1, 0, {}}; }

bool scale_by_powers(const Lowering& l, MatrixSpec& spec, const Policy& policy) {
    const Node& node = l.graph.node(spec.main);
    const auto x = range_of(l, node.input(0));
    const auto w = spec.dynamic ? range_of(l, node.input(1)) : std::optional<Range>(Range{});
    if (is_step(l, spec) || !x || !w) return false;
    spec.format = plain(policy);
    spec.format.x_scale = scale_for(policy.array, magnitude(*x));
    if (spec.dynamic)
        spec.format.w_scale = {scale_for(policy.array, magnitude(*w))};
    else
        for (const double largest : weight_magnitudes(l, spec)) spec.format.w_scale.push_back(scale_for(policy.array, largest));
    multiply_back(spec);
    return true;
}

/// Constant weights as integers of -most .. most, each output in steps of its own.
void quantise_weights(const Lowering& l, MatrixSpec& spec, int most) {
    ConstantWeights& w = *spec.weights;
    const Tensor& values = *l.graph.value(w.value).constant;
    Tensor integers(DType::i8, values.shape);
    for (const double largest : weight_magnitudes(l, spec)) w.scale.push_back(weight_step(largest, most, false));
    w.zero_point.assign(w.scale.size(), 0);
    for_each_weight(spec, [&](std::int64_t o, std::int64_t, std::int64_t at) {
        const double steps = static_cast<double>(values.as<float>()[at]) / static_cast<double>(w.scale[static_cast<std::size_t>(o)]);
        integers.as<std::int8_t>()[at] = static_cast<std::int8_t>(std::clamp(std::nearbyint(steps), -static_cast<double>(most), static_cast<double>(most)));
    });
    w.integers = std::make_shared<const Tensor>(std::move(integers));
    spec.format.w_scale.assign(w.scale.begin(), w.scale.end());
}

bool make_integer(const Lowering& l, MatrixSpec& spec, const Policy& policy) {
    const Node& node = l.graph.node(spec.main);
    const auto x = range_of(l, node.input(0));
    const auto w = spec.dynamic ? range_of(l, node.input(1)) : std::optional<Range>(Range{});
    // An operand that the model itself dequantises keeps its own steps: a mixture stays in fp32.
    if (is_step(l, spec) || !x || !w || spec.x.quantization || (spec.dynamic && spec.dynamic->operand.quantization)) return false;
    spec.format = plain(policy);
    const IntegerSteps steps = steps_for(x->low, x->high, spec.dynamic.has_value());
    spec.x.quantization = Quantization{steps.step, steps.zero};
    spec.format.x_scale = static_cast<double>(steps.step);
    spec.format.x_zero = steps.zero;
    if (spec.dynamic) {
        const IntegerSteps other = steps_for(w->low, w->high, true);
        spec.dynamic->operand.quantization = Quantization{other.step, 0};
        spec.format.w_scale = {static_cast<double>(other.step)};
    } else {
        quantise_weights(l, spec, 127);
    }
    spec.integer = true;
    multiply_back(spec);
    return true;
}

bool narrow_weights(const Lowering& l, MatrixSpec& spec, const Policy& policy) {
    if (!spec.weights || is_step(l, spec)) return false;
    if (policy.scaling == Scaling::weights_4) {
        // Groups of K follow one another in the array's order only where a window is one pixel and every output reads all channels.
        if (spec.groups != 1 || spec.window.kernel[0] * spec.window.kernel[1] != 1) return false;
        if (l.chip.mxu_rows % kW4Group != 0 && kW4Group % l.chip.mxu_rows != 0) return false;  // a chunk of K could begin inside a group
        spec.format = plain(policy);
        return true;
    }
    spec.format = plain(policy);
    quantise_weights(l, spec, 127);
    multiply_back(spec);
    return true;
}

}  // namespace

void choose_format(const Lowering& l, MatrixSpec& spec) {
    const Policy* policy = &find_policy(l.options.precision);
    if (spec.integer) {
        spec.format = {simkernel::Dtype::i8, 1, Scaling::none, "int8", 1, 0, {}};
        return;
    }
    while (true) {
        switch (policy->scaling) {
            case Scaling::none: spec.format = plain(*policy); return;
            case Scaling::powers:
                if (scale_by_powers(l, spec, *policy)) return;
                break;
            case Scaling::integers:
                if (make_integer(l, spec, *policy)) return;
                break;
            case Scaling::weights_8:
            case Scaling::weights_4:
                if (narrow_weights(l, spec, *policy)) return;
                break;
        }
        policy = &find_policy(policy->otherwise);
    }
}

void describe_format(const MatrixSpec& spec, simkernel::Layer& layer) {
    layer.precision = spec.format.precision;
    if (spec.format.scaling != Scaling::powers && spec.format.scaling != Scaling::integers) return;
    layer.x_scale = spec.format.x_scale;
    layer.x_zero = spec.format.x_zero;
    layer.w_scale = spec.dynamic ? spec.format.w_scale[0] : 0;
}

}  // namespace assay::workloads
