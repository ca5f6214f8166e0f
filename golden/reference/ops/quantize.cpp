// QuantizeLinear and DequantizeLinear, versions 10 to 23: a tensor at a time or along an axis; int8, uint8, int16, uint16, int32.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/quantization.hpp"

namespace assay::golden::ops {
namespace {

/// The axis of per-axis parameters; version 10 has none and any value serves, as its parameters are scalars.
std::int64_t parameter_axis(const Node& node, const Value& x) {
    if (node.version() >= 21) node.require("block_size", 0);
    if (node.version() < 13) return 0;
    const std::int64_t axis = node.integer("axis", 1);
    // A scalar parameter ignores the axis, which may then be out of range (the default 1 of a vector).
    return node.in(1).count() == 1 ? 0 : node.axis(axis, x.rank());
}

}  // namespace

PerAxis::PerAxis(const Node& node, const Value* parameter, double otherwise, const Shape& shape, std::int64_t axis, const char* what) {
    if (!parameter) {
        values_ = {otherwise};
        return;
    }
    const auto count = parameter->count();
    const bool fits = count == 1 || (parameter->rank() == 1 && axis < static_cast<std::int64_t>(shape.size()) &&
                                     count == shape[static_cast<std::size_t>(axis)]);
    if (!fits)
        node.fail(fmt::format("{} of shape {} for a tensor of shape {}, axis {}: must be one element or one an index", what,
                              to_string(parameter->shape), to_string(shape), axis));
    for (std::int64_t i = 0; i < count; ++i) values_.push_back(parameter->at(i));
    if (count > 1)
        for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) inner_ *= shape[d];
}

Value quantised_value(const Node& node, DType type, Shape shape) {
    if (is_float(type) || size_of(type) > 2 || type == DType::boolean)
        node.fail(fmt::format("quantised type {} is not supported", name_of(type)));
    Value out(type, std::move(shape));
    out.unrounded.resize(out.n.size());
    if (node.bounds()) {
        out.err.resize(out.n.size());
        out.unrounded_err.resize(out.n.size());
    }
    return out;
}

void quantise(Value& out, std::int64_t i, double scaled, double scaled_err, double zero_point, bool bounds) {
    const auto low = static_cast<double>(lowest(out.dtype)), high = static_cast<double>(highest(out.dtype));
    const auto round = [&](double v) {
        return std::isnan(v) ? std::clamp(zero_point, low, high) : std::clamp(std::nearbyint(v) + zero_point, low, high);
    };
    const auto at = static_cast<std::size_t>(i);
    const double q = round(scaled);
    out.n[at] = static_cast<std::int64_t>(q);
    out.unrounded[at] = std::isnan(scaled) ? scaled : std::clamp(scaled + zero_point, low, high);
    if (!bounds) return;
    out.unrounded_err[at] = scaled_err;
    out.err[at] = std::max(round(scaled + scaled_err) - q, q - round(scaled - scaled_err));
}

Value centred(const Value& x, const PerAxis& zero_point) {
    Value out(DType::f32, x.shape);
    for (std::int64_t i = 0; i < x.count(); ++i) out.f[static_cast<std::size_t>(i)] = x.at(i) - zero_point.at(i);
    return out;
}

Outputs quantize_linear(const Node& node) {
    const Value& x = node.in(0);
    if (!x.floating() && x.dtype != DType::i32) node.fail(fmt::format("input is {}, must be a float or int32 tensor", name_of(x.dtype)));
    const std::int64_t axis = parameter_axis(node, x);
    const PerAxis scale(node, &node.real(1), 1, x.shape, axis, "y_scale");
    const PerAxis zero(node, node.has(2) ? &node.in(2) : nullptr, 0, x.shape, axis, "y_zero_point");
    node.integer("saturate", 1);  // only the fp8 types look at it
    if (node.version() >= 21) node.require("output_dtype", 0);
    if (node.version() >= 23) node.require("precision", 0);
    Value y = quantised_value(node, node.has(2) ? node.in(2).dtype : DType::u8, x.shape);
    const Numerics& num = node.numerics();
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const double s = scale.at(i), scaled = num.round(x.at(i) / s);
        // Division, or multiplication by a rounded reciprocal: two roundings at most.
        quantise(y, i, scaled, node.bounds() ? x.error(i) / std::fabs(s) + 2 * rounding(scaled) : 0.0, zero.at(i), node.bounds());
    }
    return {std::move(y)};
}

Outputs dequantize_linear(const Node& node) {
    const Value& x = node.in(0);
    if (x.floating() || size_of(x.dtype) > 4)
        node.fail(fmt::format("input is {}, must be an integer of at most 32 bits", name_of(x.dtype)));
    const std::int64_t axis = parameter_axis(node, x);
    if (node.version() >= 23) node.require("output_dtype", 0);
    const PerAxis scale(node, &node.real(1), 1, x.shape, axis, "x_scale");
    const PerAxis zero(node, node.has(2) ? &node.in(2) : nullptr, 0, x.shape, axis, "x_zero_point");
    Value y(node.in(1).dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double s = scale.at(i), centre = x.at(i) - zero.at(i);
        // Not rounded when emulating: under the int8 rule the chip never forms this product, else the consumer rounds its operands.
        y.f[at] = centre * s;
        // int32 beyond 24 bits rounds on conversion, the product rounds once.
        if (node.bounds()) y.err[at] = std::fabs(s) * x.error(i) + (std::fabs(centre) > 0x1p24 ? 2 : 1) * rounding(y.f[at]);
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
