// Operators that make values from attributes and shapes, and Cast.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "golden/emulation/rounding.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden::ops {

Outputs constant(const Node& node) {
    if (auto value = node.tensor("value")) return {std::move(*value)};
    if (const auto* a = node.attribute("value_float")) {
        Value y(DType::f32, {});
        y.f[0] = static_cast<double>(a->f());
        return {std::move(y)};
    }
    if (const auto* a = node.attribute("value_int")) {
        Value y(DType::i64, {});
        y.n[0] = a->i();
        return {std::move(y)};
    }
    if (const auto* a = node.attribute("value_floats")) {
        Value y(DType::f32, {a->floats_size()});
        std::copy(a->floats().begin(), a->floats().end(), y.f.begin());
        return {std::move(y)};
    }
    if (const auto ints = node.integers("value_ints")) {
        Value y(DType::i64, {static_cast<std::int64_t>(ints->size())});
        y.n = *ints;
        return {std::move(y)};
    }
    node.fail("holds no numeric value; use value, value_float(s) or value_int(s)");
}

Outputs constant_of_shape(const Node& node) {
    Value fill(DType::f32, {1});
    if (auto value = node.tensor("value")) fill = std::move(*value);
    if (fill.count() != 1) node.fail("attribute 'value' must hold one element");
    Value y(fill.dtype, node.integers(0));
    for (std::int64_t i = 0; i < y.count(); ++i) y.set(i, fill.at(0));
    return {std::move(y)};
}

Outputs shape(const Node& node) {
    const Shape& shape = node.in(0).shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto bound = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const std::int64_t start = bound(node.integer("start", 0)), end = bound(node.integer("end", rank));
    Value y(DType::i64, {std::max<std::int64_t>(0, end - start)});
    std::copy_n(shape.begin() + start, y.count(), y.n.begin());
    return {std::move(y)};
}

Outputs size(const Node& node) {
    Value y(DType::i64, {});
    y.n[0] = node.in(0).count();
    return {std::move(y)};
}

Outputs range(const Node& node) {
    const Value& start = node.in(0);
    for (std::size_t i = 0; i < 3; ++i)
        if (node.in(i).dtype != start.dtype || node.in(i).count() != 1) node.fail("start, limit and delta must be scalars of one type");
    const double a = node.scalar(0), step = node.scalar(2);
    if (step == 0 || !std::isfinite(step)) node.fail("delta must be finite and not 0");
    double count = 0;
    if (start.floating()) {
        count = std::ceil((node.scalar(1) - a) / step);
    } else {
        const std::int64_t from = start.n[0], to = node.in(1).n[0], by = node.in(2).n[0];
        // The distance as an unsigned number: it may be longer than int64.
        const std::uint64_t distance = by > 0 ? static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)
                                              : static_cast<std::uint64_t>(from) - static_cast<std::uint64_t>(to);
        const std::uint64_t stride = by > 0 ? static_cast<std::uint64_t>(by) : 0 - static_cast<std::uint64_t>(by);
        if (by > 0 ? to > from : to < from) count = static_cast<double>((distance - 1) / stride) + 1;
    }
    if (!(count > 0)) count = 0;
    if (count > 0x1p31) node.fail(fmt::format("from {} to {} by {} makes too many elements", a, node.scalar(1), step));
    Value y(start.dtype, {static_cast<std::int64_t>(count)});
    const Numerics& num = node.numerics();
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (y.floating())
            y.f[at] = num.round(a + num.round(static_cast<double>(i) * step));
        else
            y.n[at] = wrap(y.dtype, start.n[0] + i * node.in(2).n[0]);
    }
    if (node.bounds() && y.floating()) {
        y.err.resize(y.f.size());
        // Product and sum round once each; or each element is the one before plus delta, i sums of at most the largest magnitude.
        for (std::size_t i = 0; i < y.err.size(); ++i)
            y.err[i] = start.error(0) + static_cast<double>(i) * (node.in(2).error(0) + rounding(std::max(std::fabs(a), std::fabs(y.f[i]))));
    }
    return {std::move(y)};
}

Outputs eye_like(const Node& node) {
    const Value& x = node.in(0);
    if (x.rank() != 2) node.fail(fmt::format("input of shape {} is no matrix", to_string(x.shape)));
    DType type = x.dtype;
    if (node.attribute("dtype")) type = dtype_from_onnx(static_cast<int>(node.integer("dtype", 0)), "attribute 'dtype'");
    const std::int64_t k = node.integer("k", 0);
    Value y(type, x.shape);
    if (k <= -x.shape[0] || k >= x.shape[1]) return {std::move(y)};
    for (std::int64_t row = std::max<std::int64_t>(0, -k); row < x.shape[0] && row + k < x.shape[1]; ++row) y.set(row * x.shape[1] + row + k, 1);
    return {std::move(y)};
}

namespace {

Outputs cast_to(const Node& node, DType to) {
    const Value& x = node.in(0);
    node.integer("saturate", 1);  // only the fp8 types, which dtype_from_onnx refuses, look at it
    node.text("round_mode", "up");  // only float8e8m0, refused as well
    Value y(to, x.shape);
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (!x.floating() && !y.floating()) {
            y.n[at] = wrap(to, x.n[at]);
        } else if (y.floating()) {
            const double v = x.at(i);
            Tensor narrow(to == DType::bf16 || to == DType::f16 ? to : DType::f64, {1});
            if (to == DType::f16)
                narrow.as<std::uint16_t>()[0] = encode_f16(v);
            else if (to == DType::bf16)
                narrow.as<std::uint16_t>()[0] = encode_bf16(v);
            else
                narrow.as<double>()[0] = v;
            y.f[at] = narrow.value(0);
        } else if (to == DType::boolean) {
            y.n[at] = x.f[at] != 0;
        } else {
            // Truncation toward zero; what does not fit is undefined in ONNX and saturates on this chip (DESIGN section 4).
            const double v = std::isnan(x.f[at]) ? 0.0 : std::trunc(x.f[at]);
            y.n[at] = v >= static_cast<double>(highest(to))  ? highest(to)
                      : v <= static_cast<double>(lowest(to)) ? lowest(to)
                                                             : static_cast<std::int64_t>(v);
        }
    }
    // An integer of more than 24 bits rounds when it becomes fp32; a float that becomes an integer may land on its neighbour.
    if (node.bounds()) {
        y.err.resize(static_cast<std::size_t>(y.count()));
        for (std::int64_t i = 0; i < y.count(); ++i) {
            const double e = x.error(i), v = x.at(i);
            double& out = y.err[static_cast<std::size_t>(i)];
            if (y.floating())
                out = e + (!x.floating() && std::fabs(v) > 0x1p24 ? rounding(v) : 0.0);
            else
                out =
                    x.floating() ? std::max(std::fabs(std::trunc(v + e) - std::trunc(v)), std::fabs(std::trunc(v - e) - std::trunc(v))) : e;
        }
    }
    return {std::move(y)};
}

}  // namespace

Outputs cast(const Node& node) {
    DType to = DType::f32;
    try {
        to = dtype_from_onnx(static_cast<int>(node.integer("to", 0)), "attribute 'to'");
    } catch (const Error& error) {
        node.fail(error.what());
    }
    return cast_to(node, to);
}

Outputs cast_like(const Node& node) { return cast_to(node, node.in(1).dtype); }

Outputs dropout(const Node& node) {
    node.real("ratio", 0.5f);
    node.integer("seed", 0);
    if (node.has(2) && node.scalar(2) != 0) node.fail("training_mode is true: a random mask is no inference; export the model for inference");
    Value mask(node.version() < 10 ? node.in(0).dtype : DType::boolean, node.in(0).shape);
    for (std::int64_t i = 0; i < mask.count(); ++i) mask.set(i, 1);
    return {node.in(0), std::move(mask)};
}

}  // namespace assay::golden::ops
