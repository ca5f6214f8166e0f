// Operators of one operand, element by element: value, and how an operand's error and the chip's own roundings reach the result.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

/// value(x) gives y; bound(x, e, y) the error of y when the chip holds x to within e.
template <class F, class E>
Outputs map(const Node& node, F value, E bound) {
    const Value& x = node.real(0);
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        y.f[i] = value(x.f[i]);
        if (node.bounds()) y.err[i] = bound(x.f[i], x.error(static_cast<std::int64_t>(i)), y.f[i]);
    }
    return {std::move(y)};
}

double keep(double, double e, double) { return e; }

/// Integer operand: exact, wrapped to its type.
template <class F>
Outputs map_integers(const Node& node, F value) {
    Value y = node.in(0);
    for (auto& v : y.n) v = wrap(y.dtype, value(v));
    y.unrounded.clear();
    y.unrounded_err.clear();
    return {std::move(y)};
}

double exact_sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace

Outputs relu(const Node& node) {
    if (!node.in(0).floating()) return map_integers(node, [](std::int64_t v) { return std::max<std::int64_t>(v, 0); });
    return map(
        node, [](double x) { return x < 0 ? 0.0 : x; }, [](double x, double e, double) { return x + e <= 0 ? 0.0 : e; });
}

Outputs leaky_relu(const Node& node) {
    const double alpha = node.real("alpha", 0.01f);
    const Numerics& num = node.numerics();
    return map(
        node, [&](double x) { return x < 0 ? num.round(alpha * x) : x; },
        [&](double x, double e, double y) {
            const double slope = x - e > 0 ? 1.0 : x + e < 0 ? std::fabs(alpha) : std::max(1.0, std::fabs(alpha));
            return slope * e + (x - e < 0 ? rounding(y) : 0.0);
        });
}

Outputs sigmoid(const Node& node) {
    const Numerics& num = node.numerics();
    return map(
        node,
        [&](double x) {
            if (num.mode != Mode::emulate) return exact_sigmoid(x);
            return num.round(1 / num.round(1 + num.exp(-x)));
        },
        [](double x, double e, double y) {
            // dy/dx = y (1 - y), which grows by at most exp(e) over the operand's interval. With t = exp(-x): y = 1/(1+t), so an error of t
            // reaches y times 1 - y; the addition and the division round once each.
            return (e > 1 ? 1.0 : y * (1 - y) * std::expm1(e)) + y * (1 - y) * exp_relative(x) + 2 * rounding(y);
        });
}

Outputs hard_sigmoid(const Node& node) {
    const double alpha = node.real("alpha", 0.2f), beta = node.real("beta", 0.5f);
    const Numerics& num = node.numerics();
    return map(
        node, [&](double x) { return std::clamp(num.round(num.round(alpha * x) + beta), 0.0, 1.0); },
        [&](double x, double e, double) {
            const double inner = alpha * x + beta, bound = std::fabs(alpha) * e + rounding(alpha * x) + rounding(inner);
            return inner + bound < 0 || inner - bound > 1 ? 0.0 : bound;
        });
}

Outputs hard_swish(const Node& node) {
    const Numerics& num = node.numerics();
    constexpr double kAlpha = 1.0 / 6;
    return map(
        node, [&](double x) { return num.round(x * std::clamp(num.round(num.round(kAlpha * x) + 0.5), 0.0, 1.0)); },
        [&](double x, double e, double y) {
            // 1/6 is itself rounded to fp32: one more unit of x/6.
            const double gate = e * kAlpha + 2 * rounding(kAlpha * x) + rounding(kAlpha * x + 0.5);
            return e * std::clamp(kAlpha * x + 0.5, 0.0, 1.0) + (std::fabs(x) + e) * gate + rounding(y);
        });
}

Outputs tanh(const Node& node) {
    const Numerics& num = node.numerics();
    return map(
        node,
        [&](double x) {
            if (num.mode != Mode::emulate) return std::tanh(x);
            const double t = num.exp(-2 * std::fabs(x));
            return std::copysign(num.round(num.round(1 - t) / num.round(1 + t)), x);
        },
        [](double x, double e, double y) {
            // y = 1 - 2/(1+t), t = exp(2x): a relative error of t reaches y times 2t/(1+t)^2, the sum and the quotient round 2/(1+t) once
            // each, and near 0 the subtraction leaves all that absolute. (1-s)/(1+s) with s = exp(-2|x|) stays within it as well.
            const double t = std::exp(-2 * std::fabs(x)), quotient = 2 / (1 + std::exp(2 * x));
            return std::min(2.0, e) + 2 * t / ((1 + t) * (1 + t)) * exp_relative(2 * x) + 2 * kU32 * quotient + 3 * rounding(y);
        });
}

Outputs exp(const Node& node) {
    const Numerics& num = node.numerics();
    return map(
        node, [&](double x) { return num.exp(x); },
        [](double x, double e, double y) { return y * (std::expm1(e) + std::exp(e) * exp_relative(x)) + kFlush; });
}

Outputs sqrt(const Node& node) {
    return map(
        node, [](double x) { return std::sqrt(x); },
        [](double x, double e, double y) { return std::max(std::sqrt(x + e) - y, y - std::sqrt(std::max(0.0, x - e))) + rounding(y); });
}

Outputs neg(const Node& node) {
    if (!node.in(0).floating()) return map_integers(node, [](std::int64_t v) { return -v; });
    return map(
        node, [](double x) { return -x; }, keep);
}

Outputs abs(const Node& node) {
    if (!node.in(0).floating()) return map_integers(node, [](std::int64_t v) { return v < 0 ? -v : v; });
    return map(
        node, [](double x) { return std::fabs(x); }, keep);
}

Outputs floor(const Node& node) {
    return map(
        node, [](double x) { return std::floor(x); },
        [](double x, double e, double y) { return std::max(std::floor(x + e) - y, y - std::floor(x - e)); });
}

Outputs identity(const Node& node) { return {node.in(0)}; }

}  // namespace assay::golden::ops
