// QLinearConv-10, QLinearMatMul-10 and -21, ConvInteger-10, MatMulInteger-10: products of integers, exact.
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/convolution.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/matrix_product.hpp"
#include "golden/reference/ops/quantization.hpp"

namespace assay::golden::ops {
namespace {

const Value& integer_input(const Node& node, std::size_t i) {
    const Value& x = node.in(i);
    if (x.dtype != DType::i8 && x.dtype != DType::u8) node.fail(fmt::format("input {} is {}, must be int8 or uint8", i, name_of(x.dtype)));
    return x;
}

const Value* optional(const Node& node, std::size_t i) { return node.has(i) ? &node.in(i) : nullptr; }

/// Sums of integer products fit a double exactly up to 2^53: K up to 2^36.
Numerics integers(const Node& node) {
    Numerics out = node.numerics();
    out.mode = Mode::exact;
    return out;
}

Outputs to_int32(Value sums) {
    Value y(DType::i32, sums.shape);
    for (std::size_t i = 0; i < y.n.size(); ++i) y.n[i] = wrap(DType::i32, static_cast<std::int64_t>(sums.f[i]));
    return {std::move(y)};
}

/// int32 sum to fp32, times one combined scale rounded once, rounded to the output type.
void requantise(const Node& node, Value& y, std::int64_t i, double sum, double scale, double zero_point) {
    const Numerics& num = node.numerics();
    const double scaled = num.round(num.round(sum) * num.round(scale));
    quantise(y, i, scaled, 3 * rounding(scaled), zero_point, node.bounds());
}

}  // namespace

Outputs conv_integer(const Node& node) {
    const Value &x = integer_input(node, 0), &w = integer_input(node, 1);
    const ConvolutionShape s = check_convolution(node, x, w);
    const PerAxis x_zero(node, optional(node, 2), 0, x.shape, 0, "x_zero_point"),
        w_zero(node, optional(node, 3), 0, w.shape, 0, "w_zero_point");
    return to_int32(convolve(centred(x, x_zero), centred(w, w_zero), {}, {}, s, integers(node)));
}

Outputs matmul_integer(const Node& node) {
    const Value &a = integer_input(node, 0), &b = integer_input(node, 1);
    const PerAxis a_zero(node, optional(node, 2), 0, a.shape, std::max<std::int64_t>(0, a.rank() - 2), "a_zero_point");
    const PerAxis b_zero(node, optional(node, 3), 0, b.shape, b.rank() - 1, "b_zero_point");
    return to_int32(matrix_product(node, centred(a, a_zero), centred(b, b_zero), integers(node)));
}

Outputs qlinear_conv(const Node& node) {
    const Value &x = integer_input(node, 0), &w = integer_input(node, 3);
    const ConvolutionShape s = check_convolution(node, x, w);
    const PerAxis x_zero(node, &node.in(2), 0, x.shape, 0, "x_zero_point"), w_zero(node, &node.in(5), 0, w.shape, 0, "w_zero_point");
    const double x_scale = node.scalar(1), y_scale = node.scalar(6), y_zero = node.scalar(7);
    std::vector<double> bias;
    if (node.has(8)) {
        if (node.in(8).dtype != DType::i32 || node.in(8).count() != s.filters)
            node.fail(fmt::format("bias is {} of shape {}, must be int32 with {} elements", name_of(node.in(8).dtype),
                                  to_string(node.in(8).shape), s.filters));
        bias.assign(node.in(8).n.begin(), node.in(8).n.end());
    }
    const Value sums = convolve(centred(x, x_zero), centred(w, w_zero), bias, {}, s, integers(node));
    Value y = quantised_value(node, node.in(7).dtype, sums.shape);
    const PerAxis w_scale(node, &node.real(4), 1, sums.shape, 1, "w_scale");  // one a filter, which is axis 1 of the output
    for (std::int64_t i = 0; i < y.count(); ++i) requantise(node, y, i, sums.at(i), x_scale * w_scale.at(i) / y_scale, y_zero);
    return {std::move(y)};
}

Outputs qlinear_matmul(const Node& node) {
    const Value &a = integer_input(node, 0), &b = integer_input(node, 3);
    const std::int64_t row_axis = std::max<std::int64_t>(0, a.rank() - 2);
    const PerAxis a_zero(node, &node.in(2), 0, a.shape, row_axis, "a_zero_point"),
        b_zero(node, &node.in(5), 0, b.shape, b.rank() - 1, "b_zero_point");
    const Value sums = matrix_product(node, centred(a, a_zero), centred(b, b_zero), integers(node));
    Value y = quantised_value(node, node.in(7).dtype, sums.shape);
    const PerAxis a_scale(node, &node.real(1), 1, sums.shape, std::max<std::int64_t>(0, sums.rank() - 2), "a_scale");
    const PerAxis b_scale(node, &node.real(4), 1, sums.shape, sums.rank() - 1, "b_scale");
    const double y_scale = node.scalar(6), y_zero = node.scalar(7);
    for (std::int64_t i = 0; i < y.count(); ++i) requantise(node, y, i, sums.at(i), a_scale.at(i) * b_scale.at(i) / y_scale, y_zero);
    return {std::move(y)};
}

}  // namespace assay::golden::ops
