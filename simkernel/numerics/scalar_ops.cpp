// The micro-operations of the vector unit by definition, one lane value at a time.
#include <cmath>

#include "simkernel/numerics/formats.hpp"
#include "simkernel/numerics/special.hpp"
#include "simkernel/numerics/vector.hpp"

namespace assay::simkernel {
namespace {

constexpr std::uint32_t kOne = 0x3F80'0000u;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint32_t negate(std::uint32_t a) { return a ^ kSign32; }
bool is_zero(std::uint32_t a) { return (canonical32(a) & ~kSign32) == 0; }
std::uint32_t mask(bool condition) { return condition ? 0xFFFF'FFFFu : 0u; }

std::uint32_t add(std::uint32_t a, std::uint32_t b) { return round_to_f32(add_to_odd(widen32(a), widen32(b))); }
std::uint32_t mul(std::uint32_t a, std::uint32_t b) { return round_to_f32(widen32(a) * widen32(b)); }
// Rounding the double quotient or root once more is innocuous: 53 >= 2*24 + 2, and neither is ever a tie at 25 bits.
std::uint32_t div(std::uint32_t a, std::uint32_t b) { return round_to_f32(widen32(a) / widen32(b)); }
std::uint32_t root(std::uint32_t a) { return round_to_f32(std::sqrt(widen32(a))); }

/// IEEE 754-2019 §9.6 minimum: NaN propagates, -0 < +0.
std::uint32_t minimum(std::uint32_t a, std::uint32_t b) {
    a = canonical32(a), b = canonical32(b);
    if (is_nan32(a) || is_nan32(b)) return kNan32;
    const double x = widen32(a), y = widen32(b);
    if (x == y) return a | b;  // equal values differ at most in the sign of zero
    return x < y ? a : b;
}
std::uint32_t maximum(std::uint32_t a, std::uint32_t b) {
    a = canonical32(a), b = canonical32(b);
    if (is_nan32(a) || is_nan32(b)) return kNan32;
    const double x = widen32(a), y = widen32(b);
    if (x == y) return a & b;
    return x > y ? a : b;
}

/// To an integral value, half to even; the sign of zero stays.
std::uint32_t round_even(std::uint32_t a) {
    a = canonical32(a);
    const std::uint32_t magnitude = a & ~kSign32;
    if (magnitude >= 0x4B00'0000u) return a;  // 2^23 and above, infinity and NaN
    const double shifted = (widen32(magnitude) + 0x1p52) - 0x1p52;
    return bits_of(static_cast<float>(shifted)) | (a & kSign32);
}
std::uint32_t floor32(std::uint32_t a) {
    const std::uint32_t near = round_even(a);
    return widen32(near) > widen32(a) ? add(near, negate(kOne)) : near;
}
std::int32_t to_i32(std::uint32_t a) {
    const double x = widen32(round_even(a));
    if (x != x) return 0;
    if (x >= 0x1p31) return INT32_MAX;
    if (x < -0x1p31) return INT32_MIN;
    return static_cast<std::int32_t>(x);
}
std::uint32_t from_i32(std::int32_t a) { return bits_of(static_cast<float>(a)); }

/// y * 2^power for a finite, normal y: the exponent field is added to, flushing below the normal range and overflowing to infinity.
std::uint32_t scale(std::uint32_t y, int power) {
    const int exponent = static_cast<int>((y >> 23) & 0xFFu) + power;
    if (exponent <= 0) return y & kSign32;
    if (exponent >= 255) return (y & kSign32) | kInf32;
    return (y & ~kInf32) | static_cast<std::uint32_t>(exponent) << 23;
}

std::uint32_t recip(std::uint32_t a) {
    a = canonical32(a);
    if (is_nan32(a)) return kNan32;
    const std::uint32_t sign = a & kSign32, magnitude = a & ~kSign32;
    if (magnitude == 0) return sign | kInf32;
    if (magnitude == kInf32) return sign;
    const std::uint32_t m = (magnitude & 0x007F'FFFFu) | kOne;
    std::uint32_t y = fma32(bits_of(special::kRecip[2]), m, bits_of(special::kRecip[1]));
    y = fma32(y, m, bits_of(special::kRecip[0]));
    for (int step = 0; step < 2; ++step) y = fma32(y, fma32(negate(m), y, kOne), y);
    return sign | scale(y, 127 - static_cast<int>(magnitude >> 23));
}

std::uint32_t rsqrt(std::uint32_t a) {
    a = canonical32(a);
    if (is_zero(a)) return (a & kSign32) | kInf32;
    if (is_nan32(a) || (a & kSign32) != 0) return kNan32;
    if (a == kInf32) return 0;
    const int exponent = static_cast<int>(a >> 23) - 127;
    const int half = exponent >> 1;  // floor, so that m = a / 4^half lies in [1, 4)
    const std::uint32_t m = (a & 0x007F'FFFFu) | static_cast<std::uint32_t>(127 + exponent - 2 * half) << 23;
    std::uint32_t y = bits_of(special::kRsqrt[3]);
    for (int i = 2; i >= 0; --i) y = fma32(y, m, bits_of(special::kRsqrt[i]));
    for (int step = 0; step < 2; ++step) {
        const std::uint32_t u = mul(m, y);
        const std::uint32_t lost = fma32(m, y, negate(u));  // m*y = u + lost exactly
        const std::uint32_t t = fma32(negate(lost), y, fma32(negate(u), y, kOne));
        y = fma32(mul(y, bits_of(0.5F)), t, y);
    }
    return scale(y, -half);
}

std::uint32_t exp2_32(std::uint32_t a) {
    a = canonical32(a);
    const double x = widen32(a);
    if (x != x) return kNan32;
    if (x >= 128) return kInf32;
    if (x < -126) return 0;  // the result is below the normal range
    const std::uint32_t k = round_even(a);
    const std::uint32_t f = add(a, negate(k));  // exact
    std::uint32_t q = bits_of(special::kExp2[5]);
    for (int i = 4; i >= 0; --i) q = fma32(q, f, bits_of(special::kExp2[i]));
    return scale(fma32(f, q, kOne), to_i32(k));
}

std::uint32_t log2_32(std::uint32_t a) {
    a = canonical32(a);
    if (is_zero(a)) return kSign32 | kInf32;
    if (is_nan32(a) || (a & kSign32) != 0) return kNan32;
    if (a == kInf32) return kInf32;
    const std::uint32_t mantissa = a & 0x007F'FFFFu;
    const bool upper = mantissa >= special::kSqrt2Mantissa;
    const std::uint32_t m = mantissa | (upper ? 0x3F00'0000u : kOne);  // in [sqrt(1/2), sqrt(2))
    const std::uint32_t e = from_i32(static_cast<std::int32_t>(a >> 23) - 127 + (upper ? 1 : 0));
    const std::uint32_t t = add(m, negate(kOne));  // exact
    std::uint32_t q = bits_of(special::kLog2[9]);
    for (int i = 8; i >= 0; --i) q = fma32(q, t, bits_of(special::kLog2[i]));
    const std::uint32_t tail = fma32(mul(t, t), q, mul(t, bits_of(special::kLog2Lo)));
    return add(e, fma32(t, bits_of(special::kLog2Hi), tail));
}

}  // namespace

std::uint32_t run_uop(Uop op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const auto ia = static_cast<std::int32_t>(a), ib = static_cast<std::int32_t>(b);
    switch (op) {
        case Uop::mov: return a;
        case Uop::add_f32: return add(a, b);
        case Uop::sub_f32: return add(a, negate(b));
        case Uop::mul_f32: return mul(a, b);
        case Uop::fma_f32: return fma32(a, b, c);
        case Uop::div_f32: return div(a, b);
        case Uop::sqrt_f32: return root(a);
        case Uop::min_f32: return minimum(a, b);
        case Uop::max_f32: return maximum(a, b);
        case Uop::lt_f32: return mask(widen32(a) < widen32(b));
        case Uop::le_f32: return mask(widen32(a) <= widen32(b));
        case Uop::eq_f32: return mask(widen32(a) == widen32(b));
        case Uop::select: return a != 0 ? b : c;
        case Uop::floor_f32: return floor32(a);
        case Uop::round_f32: return round_even(a);
        case Uop::recip_f32: return recip(a);
        case Uop::rsqrt_f32: return rsqrt(a);
        case Uop::exp2_f32: return exp2_32(a);
        case Uop::log2_f32: return log2_32(a);
        case Uop::to_bf16: return f32_from_bf16(bf16_from_f32(a));
        case Uop::i32_to_f32: return from_i32(ia);
        case Uop::f32_to_i32: return static_cast<std::uint32_t>(to_i32(a));
        case Uop::add_i32: return a + b;
        case Uop::sub_i32: return a - b;
        case Uop::mul_i32: return a * b;
        case Uop::min_i32: return ia < ib ? a : b;
        case Uop::max_i32: return ia > ib ? a : b;
        case Uop::and_i32: return a & b;
        case Uop::or_i32: return a | b;
        case Uop::xor_i32: return a ^ b;
        case Uop::shl_i32: return a << (b & 31u);
        case Uop::shr_i32: return static_cast<std::uint32_t>(ia >> (b & 31u));
        case Uop::lt_i32: return mask(ia < ib);
        case Uop::eq_i32: return mask(a == b);
    }
    return 0;  // decode refuses any other value (malformed_descriptor)
}

}  // namespace assay::simkernel
