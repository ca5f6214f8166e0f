#include "workloads/lower/math.hpp"

#include <cmath>
#include <limits>
#include <span>

namespace assay::workloads {
namespace {

using simkernel::Uop;
using Ref = Expr::Ref;

constexpr float kLn2 = 0x1.62e430p-1f, kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kSign = std::numeric_limits<std::int32_t>::min(), kMagnitude = std::numeric_limits<std::int32_t>::max();

/// c[0] + x*(c[1] + x*(...)).
Ref polynomial(Expr& e, Ref x, std::span<const float> c) {
    Ref y = Expr::imm(c.back());
    for (std::size_t i = c.size() - 1; i-- > 0;) y = e.op(Uop::fma_f32, y, x, Expr::imm(c[i]));
    return y;
}

Ref sign_of(Expr& e, Ref x) { return e.op(Uop::and_i32, x, Expr::imm_i(kSign)); }

/// The argument of sin and cos less the nearest multiple k of pi/2, and k.
struct Reduced {
    Ref r, k;
};

Reduced reduce_quarter(Expr& e, Ref x) {
    // pi/2 in three parts of 24 bits; each fma is exact or rounds far below the result's absolute error.
    constexpr float kTwoOverPi = 0x1.45f306p-1f, kHigh = 0x1.921fb6p+0f, kMiddle = -0x1.777a5cp-25f, kLow = -0x1.ee59dap-50f;
    const Ref k = e.op(Uop::round_f32, e.op(Uop::mul_f32, x, Expr::imm(kTwoOverPi)));
    Ref r = e.op(Uop::fma_f32, k, Expr::imm(-kHigh), x);
    r = e.op(Uop::fma_f32, k, Expr::imm(-kMiddle), r);
    return {e.op(Uop::fma_f32, k, Expr::imm(-kLow), r), e.op(Uop::f32_to_i32, k)};
}

/// sin(r + quadrant * pi/2) for |r| a little over pi/4 at most.
Ref sine_at(Expr& e, Ref r, Ref quadrant) {
    // Least-squares minimax fits on |r| <= 0.825: relative error of sin below 2^-36, absolute error of cos below 2^-40.
    constexpr float kSin[] = {-0x1.555556p-3f, 0x1.111106p-7f, -0x1.a00d3ap-13f, 0x1.6c4db0p-19f};
    constexpr float kCos[] = {0x1.555556p-5f, -0x1.6c16b6p-10f, 0x1.a00f3ap-16f, -0x1.23c9cap-22f};
    const Ref s = e.op(Uop::mul_f32, r, r);
    const Ref sine = e.op(Uop::fma_f32, e.op(Uop::mul_f32, polynomial(e, s, kSin), s), r, r);
    const Ref tail = e.op(Uop::fma_f32, polynomial(e, s, kCos), s, Expr::imm(-0.5f));
    const Ref cosine = e.op(Uop::fma_f32, tail, s, Expr::imm(1.0f));
    const Ref odd = e.op(Uop::and_i32, quadrant, Expr::imm_i(1));
    const Ref flip = e.op(Uop::shl_i32, e.op(Uop::and_i32, quadrant, Expr::imm_i(2)), Expr::imm_i(30));
    return e.op(Uop::xor_i32, e.op(Uop::select, odd, cosine, sine), flip);
}

}  // namespace

Ref emit_exp(Expr& x_, Ref x) {
    // exp(x) = 2^t * (1 + ln2*r) with t = fp32(x*log2e) and r = x*log2e - t to about 2^-48: exp2 alone would lose |t| ulp/2 of the
    // argument. What r*ln2 drops of the series is below 2^-40.
    constexpr float kLog2e = 0x1.715476p+0f, kLog2eLow = 0x1.4ae0c0p-26f;
    // Below -200 the result is zero anyway; minus infinity would give NaN in r.
    const auto v = x_.op(Uop::max_f32, x, Expr::imm(-200.0f));
    const auto t = x_.op(Uop::mul_f32, v, Expr::imm(kLog2e));
    const auto minus_t = x_.op(Uop::mul_f32, v, Expr::imm(-kLog2e));
    const auto high = x_.op(Uop::fma_f32, v, Expr::imm(kLog2e), minus_t);
    const auto r = x_.op(Uop::fma_f32, v, Expr::imm(kLog2eLow), high);
    const auto p = x_.op(Uop::exp2_f32, t);
    const auto c = x_.op(Uop::mul_f32, r, Expr::imm(kLn2));
    return x_.op(Uop::fma_f32, p, c, p);
}

Ref emit_exp_any(Expr& e, Ref x) {
    // The largest fp32 whose exponential is finite; past it exp2 is infinite and p*c + p may be infinity minus infinity.
    const Ref over = e.op(Uop::lt_f32, Expr::imm(0x1.62e42ep+6f), x);
    const Ref y = emit_exp(e, x);
    return e.op(Uop::select, over, Expr::imm(kInfinity), y);
}

Ref emit_expm1(Expr& e, Ref x) {
    // x + x^2 P(x) where exp(x) - 1 would cancel. A least-squares minimax fit on |x| <= 0.72, relative error below 2^-29.
    constexpr float kSmall[] = {0x1.000000p-1f, 0x1.55555ep-3f, 0x1.555536p-5f, 0x1.110a34p-7f, 0x1.6c22bep-10f, 0x1.a5dac0p-13f, 0x1.9fbb8ep-16f};
    const Ref large = e.op(Uop::sub_f32, emit_exp_any(e, x), Expr::imm(1.0f));
    const Ref xx = e.op(Uop::mul_f32, x, x);
    const Ref small = e.op(Uop::fma_f32, xx, polynomial(e, x, kSmall), x);
    const Ref inside = e.op(Uop::lt_f32, emit_abs(e, x), Expr::imm(0.7f));
    return e.op(Uop::select, inside, small, large);
}

Ref emit_log(Expr& e, Ref x) { return e.op(Uop::mul_f32, e.op(Uop::log2_f32, x), Expr::imm(kLn2)); }

Ref emit_log1p_unit(Expr& e, Ref x) {
    // log(u) * x/(u - 1) with u = fp32(1 + x): the quotient repairs what u lost of x.
    const Ref u = e.op(Uop::add_f32, x, Expr::imm(1.0f));
    const Ref kept = e.op(Uop::sub_f32, u, Expr::imm(1.0f));
    const Ref y = e.op(Uop::mul_f32, emit_log(e, u), e.op(Uop::div_f32, x, kept));
    return e.op(Uop::select, e.op(Uop::eq_f32, kept, Expr::imm(0.0f)), x, y);
}

Ref emit_sigmoid(Expr& e, Ref x) {
    // -x is held at 88, where the result is below the normal range and flushes either way.
    const auto negated = e.op(Uop::mul_f32, x, Expr::imm(-1.0f));
    const auto bounded = e.op(Uop::min_f32, negated, Expr::imm(88.0f));
    const auto one = e.op(Uop::add_f32, emit_exp(e, bounded), Expr::imm(1.0f));
    return e.op(Uop::div_f32, Expr::imm(1.0f), one);
}

Ref emit_tanh(Expr& e, Ref x) {
    // 1 - 2/(1 + exp(2x)); 2x is held at 40, where the result is 1 to the last bit. Near zero the two terms cancel: absolute error
    // stays below 2^-23, relative error does not (docs/numerics.md).
    const auto doubled = e.op(Uop::add_f32, x, x);
    const auto bounded = e.op(Uop::min_f32, doubled, Expr::imm(40.0f));
    const auto one = e.op(Uop::add_f32, emit_exp(e, bounded), Expr::imm(1.0f));
    const auto part = e.op(Uop::div_f32, Expr::imm(-2.0f), one);
    return e.op(Uop::add_f32, part, Expr::imm(1.0f));
}

Ref emit_erf(Expr& e, Ref x) {
    // |x| < 1: x + x P(x^2). Beyond: 1 - exp(-(t + t Q(t))), t = min(|x|, 4), since erf(4) is 1 to the last bit. Both fits are
    // least-squares minimax with relative errors of erf below 2^-29; the second exponential's own error is damped by exp(-1.8) at t = 1.
    constexpr float kSmall[] = {0x1.06eba8p-3f,  -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f910p-6f,
                                0x1.5405ccp-8f, -0x1.a3f7a6p-11f, 0x1.496bc8p-14f};
    constexpr float kLarge[] = {0x1.07547cp-3f, 0x1.456064p-1f,   0x1.b02032p-4f,   -0x1.77831ap-6f,
                                0x1.939c3cp-9f, -0x1.af1176p-14f, -0x1.27faacp-15f, 0x1.13600ep-18f};
    const Ref s = e.op(Uop::mul_f32, x, x);
    const Ref small = e.op(Uop::fma_f32, x, polynomial(e, s, kSmall), x);
    const Ref magnitude = emit_abs(e, x);
    const Ref t = e.op(Uop::min_f32, magnitude, Expr::imm(4.0f));
    const Ref minus_t = e.op(Uop::mul_f32, t, Expr::imm(-1.0f));
    const Ref power = e.op(Uop::fma_f32, minus_t, polynomial(e, t, kLarge), minus_t);
    const Ref large = e.op(Uop::sub_f32, Expr::imm(1.0f), emit_exp(e, power));
    const Ref signed_large = e.op(Uop::or_i32, large, sign_of(e, x));
    return e.op(Uop::select, e.op(Uop::lt_f32, magnitude, Expr::imm(1.0f)), small, signed_large);
}

Ref emit_sin(Expr& e, Ref x) {
    const Reduced a = reduce_quarter(e, x);
    return sine_at(e, a.r, a.k);
}

Ref emit_cos(Expr& e, Ref x) {
    const Reduced a = reduce_quarter(e, x);
    return sine_at(e, a.r, e.op(Uop::add_i32, a.k, Expr::imm_i(1)));
}

Ref emit_atan(Expr& e, Ref x) {
    // atan(t) = t + t^3 P(t^2) for t <= 1; beyond, pi/2 - atan(1/t). A least-squares minimax fit, relative error below 2^-28.
    constexpr float kFit[] = {-0x1.55553ep-2f, 0x1.9991fep-3f,  -0x1.2421b6p-3f, 0x1.c099fcp-4f, -0x1.58348cp-4f,
                              0x1.dac9d0p-5f,  -0x1.fed136p-6f, 0x1.65a62ap-7f,  -0x1.d62f92p-10f};
    const Ref magnitude = emit_abs(e, x);
    const Ref over = e.op(Uop::lt_f32, Expr::imm(1.0f), magnitude);
    const Ref t = e.op(Uop::select, over, e.op(Uop::div_f32, Expr::imm(1.0f), magnitude), magnitude);
    const Ref s = e.op(Uop::mul_f32, t, t);
    const Ref inner = e.op(Uop::fma_f32, e.op(Uop::mul_f32, polynomial(e, s, kFit), s), t, t);
    const Ref outer = e.op(Uop::sub_f32, Expr::imm(0x1.921fb6p+0f), inner);
    return e.op(Uop::or_i32, e.op(Uop::select, over, outer, inner), sign_of(e, x));
}

Ref emit_pow_constant(Expr& e, Ref x, float y) {
    if (y == 0.0f) return Expr::imm(1.0f);
    const float magnitude = std::abs(y);
    Ref power;
    if (magnitude == 0.5f) {
        // sqrt(-0) is -0 but (-0)^0.5 is +0; -infinity to 0.5 is +infinity, where sqrt gives NaN.
        const Ref root = e.op(Uop::sqrt_f32, e.op(Uop::add_f32, x, Expr::imm(0.0f)));
        power = e.op(Uop::select, e.op(Uop::eq_f32, x, Expr::imm(-kInfinity)), Expr::imm(kInfinity), root);
    } else if (magnitude <= 64.0f && magnitude == std::floor(magnitude)) {
        auto n = static_cast<unsigned>(magnitude);
        bool first = true;
        for (Ref square = x; n != 0; n >>= 1) {
            if (n & 1) {
                power = first ? square : e.op(Uop::mul_f32, power, square);
                first = false;
            }
            if (n > 1) square = e.op(Uop::mul_f32, square, square);
        }
    } else {
        return emit_pow(e, x, Expr::imm(y));
    }
    return y < 0 ? e.op(Uop::div_f32, Expr::imm(1.0f), power) : power;
}

Ref emit_pow(Expr& e, Ref x, Ref y) {
    const Ref zero = Expr::imm(0.0f);
    const Ref size = e.op(Uop::exp2_f32, e.op(Uop::mul_f32, y, e.op(Uop::log2_f32, emit_abs(e, x))));
    // Parity of y: halves are compared, since y may not fit an integer (an fp32 past 2^24 is even).
    const Ref half = e.op(Uop::mul_f32, y, Expr::imm(0.5f));
    const Ref whole = e.op(Uop::eq_f32, e.op(Uop::floor_f32, y), y);
    const Ref even = e.op(Uop::eq_f32, e.op(Uop::floor_f32, half), half);
    const Ref odd_sign = e.op(Uop::select, even, Expr::imm_i(0), e.op(Uop::and_i32, whole, sign_of(e, x)));
    const Ref value = e.op(Uop::or_i32, size, odd_sign);
    // A negative number (not -0 or -infinity) to a fraction has no value; y = 0 and x = 1 give 1, even with a NaN.
    const Ref negative = e.op(Uop::and_i32, e.op(Uop::lt_f32, x, zero), e.op(Uop::lt_f32, Expr::imm(-kInfinity), x));
    const Ref lost = e.op(Uop::select, whole, Expr::imm_i(0), negative);
    const Ref number = e.op(Uop::select, lost, Expr::imm(std::numeric_limits<float>::quiet_NaN()), value);
    const Ref one = e.op(Uop::or_i32, e.op(Uop::eq_f32, y, zero), e.op(Uop::eq_f32, x, Expr::imm(1.0f)));
    return e.op(Uop::select, one, Expr::imm(1.0f), number);
}

Ref emit_trunc(Expr& e, Ref x) { return e.op(Uop::or_i32, e.op(Uop::floor_f32, emit_abs(e, x)), sign_of(e, x)); }

Ref emit_abs(Expr& e, Ref x) { return e.op(Uop::and_i32, x, Expr::imm_i(kMagnitude)); }

Ref emit_negate(Expr& e, Ref x) { return e.op(Uop::mul_f32, x, Expr::imm(-1.0f)); }

Quotient emit_divide_integers(Expr& e, Ref a, Ref b) {
    // On magnitudes: an fp32 quotient is right to about 2^-22 of itself; the remainder, exact in 32 bits, gives the rest of it, and one
    // step either way is left to mend.
    const Ref zero = Expr::imm_i(0), one = Expr::imm_i(1);
    const auto magnitude = [&](Ref v) { return e.op(Uop::max_i32, v, e.op(Uop::sub_i32, zero, v)); };
    const Ref n = magnitude(a), d = magnitude(b);
    const Ref df = e.op(Uop::i32_to_f32, d);
    Ref q = e.op(Uop::f32_to_i32, e.op(Uop::div_f32, e.op(Uop::i32_to_f32, n), df));
    Ref r = e.op(Uop::sub_i32, n, e.op(Uop::mul_i32, q, d));
    const Ref more = e.op(Uop::f32_to_i32, e.op(Uop::div_f32, e.op(Uop::i32_to_f32, r), df));
    q = e.op(Uop::add_i32, q, more);
    r = e.op(Uop::sub_i32, r, e.op(Uop::mul_i32, more, d));
    const Ref low = e.op(Uop::lt_i32, r, zero);  // -1 where the quotient is one too large
    q = e.op(Uop::add_i32, q, low);
    r = e.op(Uop::add_i32, r, e.op(Uop::and_i32, low, d));
    const Ref short_by_one = e.op(Uop::lt_i32, r, d);
    q = e.op(Uop::add_i32, q, e.op(Uop::select, short_by_one, zero, one));
    r = e.op(Uop::sub_i32, r, e.op(Uop::select, short_by_one, zero, d));
    const auto with_sign = [&](Ref v, Ref sign) { return e.op(Uop::select, sign, e.op(Uop::sub_i32, zero, v), v); };
    const Ref a_negative = e.op(Uop::lt_i32, a, zero);
    const Ref differ = e.op(Uop::lt_i32, e.op(Uop::xor_i32, a, b), zero);
    return {with_sign(q, differ), with_sign(r, a_negative)};
}

}  // namespace assay::workloads
