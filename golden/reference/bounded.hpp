#pragma once
// A number with a bound on how far the chip's may lie from it, and the arithmetic of both: what compound operators are made of.
// Each operation rounds once as the chip does and lets its operands' errors through.
#include <algorithm>
#include <cmath>

#include "golden/reference/numerics.hpp"
#include "golden/reference/ulp.hpp"

namespace assay::golden {

struct Bounded {
    double v = 0;
    double e = 0;  ///< |chip - v| <= e
};

class BoundedArithmetic {
public:
    explicit BoundedArithmetic(const Numerics& numerics) : num_(numerics) {}

    Bounded add(Bounded a, Bounded b) const {
        const double r = num_.round(a.v + b.v);
        return {r, a.e + b.e + rounding(r)};
    }
    Bounded sub(Bounded a, Bounded b) const { return add(a, {-b.v, b.e}); }
    Bounded mul(Bounded a, Bounded b) const {
        const double r = num_.round(a.v * b.v);
        return {r, std::fabs(a.v) * b.e + std::fabs(b.v) * a.e + a.e * b.e + rounding(r)};
    }
    Bounded sigmoid(Bounded x) const {
        const double y = num_.mode == Mode::emulate ? num_.round(1 / num_.round(1 + num_.exp(-x.v)))
                         : x.v >= 0                 ? 1 / (1 + std::exp(-x.v))
                                                    : std::exp(x.v) / (1 + std::exp(x.v));
        // As the Sigmoid operator's bound (ops/elementwise_unary.cpp).
        return {y, std::min(1.0, x.e > 1 ? 1.0 : y * (1 - y) * std::expm1(x.e) + y * (1 - y) * exp_relative(x.v) + 2 * rounding(y))};
    }
    Bounded tanh(Bounded x) const {
        const double t = num_.exp(-2 * std::fabs(x.v));
        const double y = num_.mode == Mode::emulate ? std::copysign(num_.round(num_.round(1 - t) / num_.round(1 + t)), x.v) : std::tanh(x.v);
        const double s = std::exp(-2 * std::fabs(x.v)), quotient = 2 / (1 + std::exp(2 * x.v));
        return {y, std::min(2.0, x.e) + 2 * s / ((1 + s) * (1 + s)) * exp_relative(2 * x.v) + 2 * kU32 * quotient + 3 * rounding(y)};
    }
    Bounded relu(Bounded x) const { return {x.v < 0 ? 0.0 : x.v, x.v + x.e <= 0 ? 0.0 : x.e}; }
    Bounded clamp(Bounded x, double limit) const { return {std::clamp(x.v, -limit, limit), x.e}; }
    Bounded affine(Bounded x, double alpha, double beta) const { return add(mul({alpha, 0}, x), {beta, 0}); }
    Bounded hard_sigmoid(Bounded x, double alpha, double beta) const {
        const Bounded inner = affine(x, alpha, beta);
        return {std::clamp(inner.v, 0.0, 1.0), inner.e};
    }
    Bounded leaky_relu(Bounded x, double alpha) const {
        if (x.v - x.e >= 0) return x;
        const Bounded scaled = mul({alpha, 0}, x);
        return {x.v < 0 ? scaled.v : x.v, std::max(x.e, scaled.e)};
    }

    Bounded thresholded_relu(Bounded x, double alpha) const {
        // On either side of the jump both answers are honest.
        const bool on = x.v >= alpha, sure = std::fabs(x.v - alpha) > x.e;
        return {on ? x.v : 0.0, sure ? (on ? x.e : 0.0) : std::fabs(x.v) + x.e};
    }
    Bounded exp(Bounded x) const {
        const double y = num_.exp(x.v);
        return {y, y * (std::expm1(x.e) + std::exp(x.e) * exp_relative(x.v)) + kFlush};
    }
    Bounded elu(Bounded x, double alpha) const {
        if (x.v - x.e >= 0) return x;
        // e^x - 1 by subtraction: near 0 what exp and the difference lose stays absolute.
        const double y = num_.mode == Mode::emulate ? num_.round(alpha * num_.round(num_.exp(x.v) - 1)) : alpha * std::expm1(x.v);
        const double e = std::fabs(alpha) * (std::expm1(x.e) * std::min(1.0, std::exp(x.v)) + exp_relative(x.v) + kU32) + rounding(y);
        return {x.v < 0 ? y : x.v, std::max(x.e, e)};
    }
    Bounded softsign(Bounded x) const {
        const double below = num_.round(1 + std::fabs(x.v)), y = num_.round(x.v / below);
        return {y, x.e + 2 * rounding(y)};  // slope at most 1
    }
    Bounded softplus(Bounded x) const {
        // max(x, 0) + log(1 + e^-|x|), or log(1 + e^x) as it stands: an error of the sum inside counts in full, log2 and ln 2 round once each.
        const double t = num_.exp(-std::fabs(x.v)), y = num_.round(std::max(x.v, 0.0) + num_.round(std::log1p(t)));
        const double relative = exp_relative(x.v) + 2 * kU32;
        return {y, x.e + relative + (kLog2Ulp * kUlp32 + 2 * kU32) * std::max(std::fabs(y), 1.0) + 2 * rounding(y)};
    }

private:
    const Numerics& num_;
};

}  // namespace assay::golden
