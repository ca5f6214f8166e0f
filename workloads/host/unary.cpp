// Elementwise operators of one input: activations, rounding, trigonometry, tests of floats, Clip.
#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

template <class F>
Results reals(const Call& c, F&& f) {
    Tensor out = c.make(c.in(0).dtype, c.in(0).shape);
    map_reals(c.in(0), out, f);
    return one(std::move(out));
}

/// f on doubles or on 64-bit integers, as the input's type is.
template <class F>
Results numbers(const Call& c, F&& f) {
    Tensor out = c.make(c.in(0).dtype, c.in(0).shape);
    if (is_float(out.dtype))
        map_reals(c.in(0), out, [&](double v) { return f(v); });
    else
        map_integers(c.in(0), out, [&](std::int64_t v) { return f(v); });
    return one(std::move(out));
}

template <double (*F)(double)>
Results real_function(const Call& c) {
    return reals(c, F);
}

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double softsign(double x) { return x / (1 + std::fabs(x)); }
double hard_swish(double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double reciprocal(double x) { return 1 / x; }

Results abs_(const Call& c) {
    Tensor out = c.make(c.in(0).dtype, c.in(0).shape);
    if (is_float(out.dtype))
        map_reals(c.in(0), out, [](double v) { return std::fabs(v); });
    else if (out.dtype == DType::u64)
        return one(c.in(0));
    else  // negation through unsigned: -INT64_MIN wraps as the narrower types do
        map_integers(c.in(0), out, [](std::int64_t v) { return v < 0 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v)) : v; });
    return one(std::move(out));
}

Results neg(const Call& c) {
    Tensor out = c.make(c.in(0).dtype, c.in(0).shape);
    if (is_float(out.dtype))
        map_reals(c.in(0), out, [](double v) { return -v; });
    else
        map_integers(c.in(0), out, [](std::int64_t v) { return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(v)); });
    return one(std::move(out));
}

Results sign(const Call& c) {
    if (c.in(0).dtype == DType::u64) {
        Tensor out = c.make(DType::u64, c.in(0).shape);
        map_integers(c.in(0), out, [](std::int64_t v) { return std::int64_t{v != 0}; });
        return one(std::move(out));
    }
    return numbers(c, [](auto v) { return static_cast<decltype(v)>(v > 0 ? 1 : v < 0 ? -1 : v * 0); });
}

Results relu(const Call& c) {
    return numbers(c, [](auto v) { return v < 0 ? decltype(v){0} : v; });
}

Results leaky_relu(const Call& c) {
    const double alpha = c.real("alpha", 0.01f);
    return reals(c, [=](double v) { return v < 0 ? alpha * v : v; });
}

Results elu(const Call& c) {
    const double alpha = c.real("alpha", 1.0f);
    return reals(c, [=](double v) { return v < 0 ? alpha * std::expm1(v) : v; });
}

Results celu(const Call& c) {
    const double alpha = c.real("alpha", 1.0f);
    return reals(c, [=](double v) { return v < 0 ? alpha * std::expm1(v / alpha) : v; });
}

Results selu(const Call& c) {
    const double alpha = c.real("alpha", 1.67326319217681884765625f), gamma = c.real("gamma", 1.05070102214813232421875f);
    return reals(c, [=](double v) { return gamma * (v <= 0 ? alpha * std::expm1(v) : v); });
}

Results gelu(const Call& c) {
    const std::string mode = c.text("approximate", "none");
    if (mode == "tanh")  // Gelu-20: sqrt(2 / pi) and 0.044715
        return reals(c, [](double v) { return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))); });
    c.require(mode == "none", "approximate must be \"none\" or \"tanh\"; repair the model");
    return reals(c, [](double v) { return 0.5 * v * std::erfc(-v * 0.7071067811865476); });
}

Results hard_sigmoid(const Call& c) {
    const double alpha = c.real("alpha", 0.2f), beta = c.real("beta", 0.5f);
    return reals(c, [=](double v) { return std::isnan(v) ? v : std::max(0.0, std::min(1.0, alpha * v + beta)); });
}

Results swish(const Call& c) {
    const double alpha = c.real("alpha", 1.0f);
    return reals(c, [=](double v) { return v * sigmoid(alpha * v); });
}

Results shrink(const Call& c) {
    const double bias = c.real("bias", 0.0f), lambd = c.real("lambd", 0.5f);
    return reals(c, [=](double v) { return v < -lambd ? v + bias : v > lambd ? v - bias : std::isnan(v) ? v : 0.0; });
}

Results thresholded_relu(const Call& c) {
    const double alpha = c.real("alpha", 1.0f);
    return reals(c, [=](double v) { return v > alpha ? v : 0.0; });
}

Results is_nan(const Call& c) {
    Tensor out = c.make(DType::boolean, c.in(0).shape);
    map_reals(c.in(0), out, [](double v) { return std::isnan(v) ? 1.0 : 0.0; });
    return one(std::move(out));
}

Results is_inf(const Call& c) {
    const bool positive = c.integer("detect_positive", 1) != 0, negative = c.integer("detect_negative", 1) != 0;
    Tensor out = c.make(DType::boolean, c.in(0).shape);
    map_reals(c.in(0), out, [=](double v) { return std::isinf(v) && (v > 0 ? positive : negative) ? 1.0 : 0.0; });
    return one(std::move(out));
}

Results logical_not(const Call& c) {
    Tensor out = c.make(DType::boolean, c.in(0).shape);
    map_integers(c.in(0), out, [](std::int64_t v) { return std::int64_t{v == 0}; });
    return one(std::move(out));
}

Results bitwise_not(const Call& c) {
    Tensor out = c.make(c.in(0).dtype, c.in(0).shape);
    map_integers(c.in(0), out, [](std::int64_t v) { return ~v; });
    return one(std::move(out));
}

/// Clip-6 has its bounds as attributes, Clip-11 as optional inputs. min(max(x, low), high), so high wins where they cross; NaN stays.
Results clip(const Call& c) {
    const Tensor& x = c.in(0);
    Tensor out = c.make(x.dtype, x.shape);
    if (c.opset >= 11) {
        c.same_types(0, 3);
        for (const std::size_t i : {1u, 2u})
            if (c.has(i) && c.in(i).count() != 1) c.bad_shape(i, "a bound is one number; repair the model");
    }
    if (is_float(x.dtype)) {
        const double low = c.opset < 11 ? c.real("min", std::numeric_limits<float>::lowest()) : c.has(1) ? c.real(1) : -HUGE_VAL;
        const double high = c.opset < 11 ? c.real("max", std::numeric_limits<float>::max()) : c.has(2) ? c.real(2) : HUGE_VAL;
        map_reals(x, out, [=](double v) { return std::isnan(v) ? v : std::min(std::max(v, low), high); });
    } else if (x.dtype == DType::u64) {
        const std::uint64_t low = c.has(1) ? static_cast<std::uint64_t>(c.integer(1)) : 0,
                            high = c.has(2) ? static_cast<std::uint64_t>(c.integer(2)) : ~std::uint64_t{0};
        map_integers(x, out, [=](std::int64_t v) {
            return static_cast<std::int64_t>(std::min(std::max(static_cast<std::uint64_t>(v), low), high));
        });
    } else {
        const std::int64_t low = c.has(1) ? c.integer(1) : std::numeric_limits<std::int64_t>::min(),
                           high = c.has(2) ? c.integer(2) : std::numeric_limits<std::int64_t>::max();
        map_integers(x, out, [=](std::int64_t v) { return std::min(std::max(v, low), high); });
    }
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> unary_operators() {
    static constexpr Operator table[] = {
        {"Abs", abs_},
        {"Acos", real_function<std::acos>, 7},
        {"Acosh", real_function<std::acosh>, 9},
        {"Asin", real_function<std::asin>, 7},
        {"Asinh", real_function<std::asinh>, 9},
        {"Atan", real_function<std::atan>, 7},
        {"Atanh", real_function<std::atanh>, 9},
        {"BitwiseNot", bitwise_not, 18},
        {"Ceil", real_function<std::ceil>},
        {"Celu", celu, 12},
        {"Clip", clip},
        {"Cos", real_function<std::cos>, 7},
        {"Cosh", real_function<std::cosh>, 9},
        {"Elu", elu},
        {"Erf", real_function<std::erf>, 9},
        {"Exp", real_function<std::exp>},
        {"Floor", real_function<std::floor>},
        {"Gelu", gelu, 20},
        {"HardSigmoid", hard_sigmoid},
        {"HardSwish", real_function<hard_swish>, 14},
        {"IsInf", is_inf, 10},
        {"IsNaN", is_nan, 9},
        {"LeakyRelu", leaky_relu},
        {"Log", real_function<std::log>},
        {"Mish", real_function<mish>, 18},
        {"Neg", neg},
        {"Not", logical_not},
        {"Reciprocal", real_function<reciprocal>},
        {"Relu", relu},
        {"Round", real_function<std::nearbyint>, 11},  // half to even, the mode in force outside the chip's kernels
        {"Selu", selu},
        {"Shrink", shrink, 9},
        {"Sigmoid", real_function<sigmoid>},
        {"Sign", sign, 9},
        {"Sin", real_function<std::sin>, 7},
        {"Sinh", real_function<std::sinh>, 9},
        {"Softplus", real_function<softplus>},
        {"Softsign", real_function<softsign>},
        {"Sqrt", real_function<std::sqrt>},
        {"Swish", swish, 24},
        {"Tan", real_function<std::tan>, 7},
        {"Tanh", real_function<std::tanh>},
        {"ThresholdedRelu", thresholded_relu, 10},
    };
    return table;
}

}  // namespace assay::workloads::hostops
