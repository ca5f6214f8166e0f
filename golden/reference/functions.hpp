#pragma once
// Elementary functions with bounds, over BoundedArithmetic: what activations, normalisations and reductions are made of. The chip
// builds each from exp2, log2 and fused multiply-adds; the ULPs here are those that docs/numerics.md and the compiler's
// documentation of its expansions promise.
#include "golden/reference/bounded.hpp"

namespace assay::golden {

/// Promised errors of the chip's expansions, in ULP of the exact result for an exact operand.
inline constexpr double kExpUlp = 2.5, kLogUlp = 2.5, kFunctionUlp = 4;
/// sin and cos: an absolute error, up to |x| = 2^20; beyond, the reduction's error grows with |x|.
inline constexpr double kSineAbsolute = 0x1p-22, kSineRange = 0x1p20;

class Functions : public BoundedArithmetic {
public:
    explicit Functions(const Numerics& numerics) : BoundedArithmetic(numerics), num_(numerics) {}

    /// y = f(x) for an f that is monotone on the operand's interval: the ends of the interval say how far an error of x moves y.
    template <class F>
    Bounded monotone(Bounded x, F f, double ulps, double absolute = 0) const {
        const double y = num_.round(f(x.v));
        double moved = 0;
        if (x.e > 0) {
            moved = std::fmax(std::fabs(f(x.v + x.e) - y), std::fabs(y - f(x.v - x.e)));
            // An end outside the function's domain bounds nothing.
            if (!(std::fabs(f(x.v + x.e) + f(x.v - x.e)) < HUGE_VAL)) moved = HUGE_VAL;
        }
        return finish({y, moved + ulps * kUlp32 * std::fabs(y) + absolute + kFlush}, x);
    }
    /// y = f(x) where |f'| <= slope on the operand's interval.
    template <class F>
    Bounded smooth(Bounded x, F f, double slope, double ulps, double absolute = 0) const {
        const double y = num_.round(f(x.v));
        return finish({y, (x.e > 0 ? slope * x.e : 0.0) + ulps * kUlp32 * std::fabs(y) + absolute + kFlush}, x);
    }
    /// Local errors of a composition evaluated at the exact operand, plus `slope` times the operand's own.
    static Bounded with_slope(Bounded y, Bounded x, double slope) { return {y.v, y.e + (x.e > 0 ? slope * x.e : 0.0)}; }

    Bounded div(Bounded a, Bounded b) const {
        const double r = num_.round(a.v / b.v), least = std::fabs(b.v) - b.e;
        if (!std::isfinite(r) && least > 0) return {r, 0};
        return {r, least > 0 ? (a.e + std::fabs(r) * b.e) / least + rounding(r) : b.e > 0 ? HUGE_VAL : 0.0};
    }
    Bounded sqrt(Bounded x) const {
        const double y = num_.round(std::sqrt(x.v));
        if (x.e == 0) return {y, rounding(y)};
        return {y, std::fmax(std::sqrt(x.v + x.e) - y, y - std::sqrt(std::fmax(0.0, x.v - x.e))) + rounding(y)};
    }
    /// 1/sqrt(x), by the instruction or by a root and a division: two roundings or 0.64 ULP.
    Bounded rsqrt(Bounded x) const {
        const double y = num_.round(1 / num_.round(std::sqrt(x.v)));
        const double low = x.v - x.e;
        return {y, x.e == 0 ? 3 * rounding(y) : low > 0 ? 1 / std::sqrt(low) - y + 3 * rounding(y) : HUGE_VAL};
    }
    Bounded exp(Bounded x) const {
        const double y = num_.exp(x.v), own = std::fmax(kExpUlp * kUlp32, exp_relative(x.v));
        if (y == 0 || std::isinf(y)) return {y, y == 0 && x.e > 0 ? std::exp(x.v + x.e) : y == 0 ? kFlush : 0.0};
        return {y, y * (std::expm1(x.e) + std::exp(x.e) * own) + kFlush};
    }
    Bounded log(Bounded x) const {
        return monotone(x, [](double v) { return std::log(v); }, kLogUlp);
    }
    Bounded expm1(Bounded x) const {
        return monotone(x, [](double v) { return std::expm1(v); }, kFunctionUlp);
    }
    Bounded erf(Bounded x) const {
        return monotone(x, [](double v) { return std::erf(v); }, kFunctionUlp);
    }
    /// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)).
    Bounded softplus(Bounded x) const {
        const double tail = std::log1p(std::exp(-std::fabs(x.v))), y = num_.round(std::fmax(x.v, 0.0) + tail);
        if (!std::isfinite(x.v)) return {std::isnan(x.v) ? x.v : std::fmax(x.v, 0.0), 0};
        const double own = std::fmax(kExpUlp * kUlp32, exp_relative(x.v)) + kFunctionUlp * kUlp32;
        return {y, x.e + tail * own + rounding(y)};
    }
    /// x^beta for x > 0, as exp2(beta log2 x).
    Bounded power(Bounded x, double beta) const {
        const double y = num_.round(std::pow(x.v, beta)), log = std::fabs(std::log(x.v));
        if (beta == 1) return x;
        if (beta == 0) return {1, 0};
        const double low = x.v - x.e;
        const double moved = x.e == 0 ? 0.0 : low > 0 ? std::fabs(std::expm1(std::fabs(beta) * std::log(x.v / low))) : HUGE_VAL;
        return {y, y * (moved + std::expm1((kLog2Ulp * kUlp32 + kU32) * std::fabs(beta) * log + kExp2Ulp * kUlp32)) + kFlush};
    }
    const Numerics& numerics() const { return num_; }

private:
    /// An infinite operand has a limit, which the chip's special cases give to a few ULP; an infinite result is compared by class,
    /// not by distance.
    static Bounded finish(Bounded r, Bounded x) {
        if (std::isfinite(r.v) && std::isnan(r.e)) r.e = std::isfinite(x.v) ? HUGE_VAL : 8 * rounding(r.v);
        if (!std::isfinite(r.v)) r.e = 0;
        return r;
    }
    const Numerics& num_;
};

}  // namespace assay::golden
