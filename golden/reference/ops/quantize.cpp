// QuantizeLinear and DequantizeLinear, versions 10 to 25: a tensor at a time, along an axis or by blocks of it; int8, uint8, int16, uint16, int32.
// DynamicQuantizeLinear-11.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "golden/emulation/rounding.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/quantization.hpp"

namespace assay::golden::ops {
namespace {

/// Where per-axis and blocked parameters lie; version 10 has neither and any axis serves, as its parameters are scalars.
struct Granularity {
    std::int64_t axis = 0, block = 0;
};

Granularity granularity(const Node& node, const Value& x) {
    Granularity g;
    g.block = node.version() >= 21 ? node.integer("block_size", 0) : 0;
    if (g.block < 0) node.fail(fmt::format("block_size={}; 0 (none) or more is expected", g.block));
    if (node.version() < 13) return g;
    const std::int64_t axis = node.integer("axis", 1);
    // A scalar parameter ignores the axis, which may then be out of range (the default 1 of a vector).
    g.axis = node.in(1).count() == 1 && g.block == 0 ? 0 : node.axis(axis, x.rank());
    return g;
}

/// Attribute `name`, a code of TensorProto.DataType; `otherwise` when it is absent or 0.
DType type_attribute(const Node& node, const char* name, DType otherwise) {
    const std::int64_t code = node.integer(name, 0);
    switch (code) {
        case 0: return otherwise;
        case 1: return DType::f32;
        case 2: return DType::u8;
        case 3: return DType::i8;
        case 4: return DType::u16;
        case 5: return DType::i16;
        case 10: return DType::f16;
        case 16: return DType::bf16;
        default: node.fail(fmt::format("{}={} is not supported", name, code));
    }
}

}  // namespace

PerAxis::PerAxis(const Node& node, const Value* parameter, double otherwise, const Shape& shape, std::int64_t axis, const char* what, std::int64_t block) {
    if (!parameter) {
        values_ = {otherwise};
        return;
    }
    const auto count = parameter->count();
    const bool has_axis = axis < static_cast<std::int64_t>(shape.size());
    for (std::int64_t i = 0; i < count; ++i) values_.push_back(parameter->at(i));
    if (block > 0 && has_axis) {
        length_ = shape[static_cast<std::size_t>(axis)];
        block_ = block;
        blocks_ = (length_ + block - 1) / block;
        Shape expected = shape;
        expected[static_cast<std::size_t>(axis)] = blocks_;
        if (parameter->shape != expected)
            node.fail(fmt::format("{} of shape {} for a tensor of shape {} in blocks of {} on axis {}: {} is expected", what, to_string(parameter->shape),
                                  to_string(shape), block, axis, to_string(expected)));
    } else {
        const bool fits = count == 1 || (parameter->rank() == 1 && has_axis && count == shape[static_cast<std::size_t>(axis)]);
        if (!fits)
            node.fail(fmt::format("{} of shape {} for a tensor of shape {}, axis {}: must be one element or one an index", what,
                                  to_string(parameter->shape), to_string(shape), axis));
    }
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
    const Granularity g = granularity(node, x);
    const PerAxis scale(node, &node.real(1), 1, x.shape, g.axis, "y_scale", g.block);
    const PerAxis zero(node, node.has(2) ? &node.in(2) : nullptr, 0, x.shape, g.axis, "y_zero_point", g.block);
    node.integer("saturate", 1);  // only the fp8 types look at it
    const DType told = node.version() >= 21 ? type_attribute(node, "output_dtype", DType::u8) : DType::u8;
    const DType type = node.has(2) ? node.in(2).dtype : told;
    if (node.has(2) && told != type && node.attribute("output_dtype") && node.integer("output_dtype", 0) != 0)
        node.fail(fmt::format("output_dtype is {}, y_zero_point is {}", name_of(told), name_of(type)));
    // The division's precision: fp32, which the chip has.
    if (node.version() >= 23 && type_attribute(node, "precision", DType::f32) != DType::f32) node.fail("precision is not float (1), which alone is supported");
    Value y = quantised_value(node, type, x.shape);
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
    const Granularity g = granularity(node, x);
    const DType type = node.version() >= 23 ? type_attribute(node, "output_dtype", node.real(1).dtype) : node.real(1).dtype;
    if (!is_float(type)) node.fail(fmt::format("output_dtype is {}; a float type is expected", name_of(type)));
    const PerAxis scale(node, &node.real(1), 1, x.shape, g.axis, "x_scale", g.block);
    const PerAxis zero(node, node.has(2) ? &node.in(2) : nullptr, 0, x.shape, g.axis, "x_zero_point", g.block);
    Value y(type, x.shape);
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

/// DynamicQuantizeLinear-11: uint8 over the range of x widened to hold 0. A function of fp32 operations by its definition: y_scale is an fp32
/// tensor, by whose value the elements are divided in fp32 (a range of 5 puts 0.5 on a tie that the real quotient by the rounded scale misses).
Outputs dynamic_quantize_linear(const Node& node) {
    const Value& x = node.real(0);
    double low = 0, high = 0, low_err = 0, high_err = 0;
    for (std::int64_t i = 0; i < x.count(); ++i) {
        low = std::min(low, x.at(i));
        high = std::max(high, x.at(i));
        // An element that may be the least moves it by its own error at most; the largest error of all holds for both ends.
        low_err = high_err = std::max(low_err, x.error(i));
    }
    const bool bounds = node.bounds();
    const double exact = (high - low) / 255, s = round_f32(exact), s_err = (low_err + high_err) / 255 + 3 * rounding(exact);
    Value scale(DType::f32, {}), zero = quantised_value(node, DType::u8, {}), y = quantised_value(node, DType::u8, x.shape);
    scale.f[0] = s;
    if (bounds) scale.err = {s_err};
    // The quotient of v: its own error, that of the scale, and the division's rounding. A range of 0 has no scale: all is 0.
    const auto quotient = [&](double v, double v_err, double& err) {
        err = s > 0 ? v_err / s + std::fabs(v / s) * s_err / s + 2 * rounding(v / s) : 0.0;
        return s > 0 ? round_f32(v / s) : 0.0;
    };
    double err = 0;
    const double at_zero = quotient(-low, low_err, err);
    quantise(zero, 0, at_zero, err, 0, bounds);
    const auto z = static_cast<double>(zero.n[0]);
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const double q = quotient(x.at(i), x.error(i), err);
        quantise(y, i, q, err, z, bounds);
        // Another zero point moves every element with it.
        if (bounds) y.err[static_cast<std::size_t>(i)] += zero.err[0];
    }
    return {std::move(y), std::move(scale), std::move(zero)};
}

}  // namespace assay::golden::ops
