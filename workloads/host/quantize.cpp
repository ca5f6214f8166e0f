// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include "workloads/host/quantize.hpp"

#include <fmt/core.h>

#include <cmath>

#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// For each element of x the index of its scale: one for all, by `axis`, or by blocks of `block_size` along it (QuantizeLinear-21).
class ScaleIndex {
public:
    ScaleIndex(const Call& c, const Shape& x, const Tensor& scale) {
        const I64 block = c.integer("block_size", 0);
        if (block < 0) c.fail("block_size must not be negative; repair the model");
        if (scale.count() == 1 && block == 0) return;
        const std::size_t axis = c.axis(c.integer("axis", 1), x.size());
        inner_ = extent(x, axis + 1, x.size());
        length_ = x[axis];
        block_ = std::max<I64>(block, 1);
        blocks_ = (length_ + block_ - 1) / block_;
        by_block_ = block > 0;
        Shape expected = by_block_ ? x : Shape{length_};
        if (by_block_) expected[axis] = blocks_;
        if (scale.shape != expected)
            c.fail(fmt::format("scale is {}, {} is expected for an input of {}; repair the model", to_string(scale.shape), to_string(expected), to_string(x)));
    }
    I64 operator()(I64 i) const {
        if (length_ == 0) return 0;
        const I64 k = i / inner_ % length_;
        return by_block_ ? (i / inner_ / length_ * blocks_ + k / block_) * inner_ + i % inner_ : k;
    }

private:
    I64 inner_ = 1, length_ = 0, block_ = 1, blocks_ = 1;
    bool by_block_ = false;
};

DType quantized_type(const Call& c) {
    if (c.has(2)) return c.in(2).dtype;
    const I64 given = c.integer("output_dtype", 0);
    return given ? dtype_from_onnx(static_cast<int>(given), "attribute 'output_dtype'") : DType::u8;
}

/// saturate(round half to even(x / scale) + zero point). The quotient is one of x's own precision, as every implementation has it.
Results quantize(const Call& c) {
    const Tensor &x = c.in(0), &scale = c.in(1);
    const ScaleIndex index(c, x.shape, scale);
    if (c.has(2) && c.in(2).shape != scale.shape && c.in(2).count() != scale.count()) c.bad_shape(2, "the scale has another shape; repair the model");
    Tensor out = c.make(quantized_type(c), x.shape);
    if (is_float(out.dtype)) c.fail(fmt::format("quantising to {} is not supported; use an integer type", name_of(out.dtype)));
    const auto v = reals_of(x), s = reals_of(scale);
    const auto z = c.has(2) ? integers_of(c.in(2)) : std::vector<I64>(s.size(), 0);
    std::vector<double> q(v.size());
    const bool narrow = x.dtype != DType::f64;
    for (std::size_t i = 0; i < v.size(); ++i) {
        const auto k = static_cast<std::size_t>(index(static_cast<I64>(i)));
        const double quotient = narrow ? static_cast<double>(static_cast<float>(v[i]) / static_cast<float>(s[k])) : v[i] / s[k];
        q[i] = std::nearbyint(quotient) + static_cast<double>(z[k]);
    }
    store(out, 0, std::span<const double>(q));  // which saturates
    return one(std::move(out));
}

Results dequantize(const Call& c) {
    const Tensor &x = c.in(0), &scale = c.in(1);
    const ScaleIndex index(c, x.shape, scale);
    if (c.has(2) && c.in(2).count() != scale.count()) c.bad_shape(2, "the scale has another shape; repair the model");
    const I64 type = c.integer("output_dtype", 0);
    Tensor out = c.make(type ? dtype_from_onnx(static_cast<int>(type), "attribute 'output_dtype'") : scale.dtype, x.shape);
    const auto v = integers_of(x);
    const auto s = reals_of(scale);
    const auto z = c.has(2) ? integers_of(c.in(2)) : std::vector<I64>(s.size(), 0);
    std::vector<double> y(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) {
        const auto k = static_cast<std::size_t>(index(static_cast<I64>(i)));
        y[i] = static_cast<double>(v[i] - z[k]) * s[k];
    }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// DynamicQuantizeLinear-11: uint8 over the range of x widened to hold 0; outputs y, y_scale, y_zero_point. In float32, as it is defined.
Results dynamic_quantize(const Call& c) {
    const Tensor& x = c.in(0);
    const auto v = reals_of(x);
    float low = 0, high = 0;
    for (const double e : v) {
        low = std::min(low, static_cast<float>(e));
        high = std::max(high, static_cast<float>(e));
    }
    const float scale = (high - low) / 255.0f;
    const float zero = scale == 0 ? 0.0f : std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
    std::vector<double> q(v.size());
    for (std::size_t i = 0; i < v.size(); ++i)
        q[i] = scale == 0 ? static_cast<double>(zero) : static_cast<double>(std::nearbyint(static_cast<float>(v[i]) / scale) + zero);
    Results out = one(tensor_of(c, DType::u8, x.shape, std::span<const double>(q)));
    out.push_back(make_tensor<float>(DType::f32, {}, std::vector<float>{scale}));
    out.push_back(make_tensor<std::uint8_t>(DType::u8, {}, std::vector<std::uint8_t>{static_cast<std::uint8_t>(zero)}));
    return out;
}

}  // namespace

double requantized(double sum, double scale, std::int64_t zero_point) { return std::nearbyint(sum * scale) + static_cast<double>(zero_point); }

std::span<const Operator> quantize_operators() {
    static constexpr Operator table[] = {
        {"DequantizeLinear", dequantize, 10}, {"DynamicQuantizeLinear", dynamic_quantize, 11}, {"QuantizeLinear", quantize, 10}};
    return table;
}

}  // namespace assay::workloads::hostops
