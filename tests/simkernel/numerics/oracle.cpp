#include "oracle.hpp"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay::simkernel::test {
namespace {

__extension__ typedef __int128 Wide;

struct Parts {
    bool negative;
    int exponent;             // of the significand's last bit
    std::int64_t significand;  // 0 for zeros and subnormals
    bool infinite, nan;
};
Parts split(std::uint32_t bits) {
    const int field = static_cast<int>(bits >> 23 & 255u);
    const std::int64_t fraction = bits & 0x7FFFFFu;
    return {(bits >> 31) != 0, field - 150, field == 0 ? 0 : fraction | 0x800000, field == 255 && fraction == 0, field == 255 && fraction != 0};
}

int bit_length(Wide value) {
    int length = 0;
    for (; value != 0; value >>= 1) ++length;
    return length;
}

/// magnitude * 2^exponent, where the last bit of magnitude may be sticky.
std::uint32_t round_flush(bool negative, Wide magnitude, int exponent) {
    const std::uint32_t sign = negative ? 0x80000000u : 0;
    const int drop = bit_length(magnitude) - 24;
    if (drop > 0) {
        const Wide rest = magnitude & ((Wide{1} << drop) - 1), half = Wide{1} << (drop - 1);
        magnitude >>= drop;
        exponent += drop;
        if (rest > half || (rest == half && (magnitude & 1) != 0)) ++magnitude;
        if (magnitude == (Wide{1} << 24)) magnitude >>= 1, ++exponent;
    } else {
        magnitude <<= -drop;
        exponent += drop;
    }
    const int field = exponent + 150;
    if (field >= 255) return sign | 0x7F800000u;
    if (field <= 0) return sign;
    return sign | static_cast<std::uint32_t>(field) << 23 | (static_cast<std::uint32_t>(magnitude) & 0x7FFFFFu);
}

}  // namespace

std::uint32_t exact_fma(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    constexpr std::uint32_t kNan = 0x7FC00000u;
    const Parts x = split(a), y = split(b), z = split(c);
    const bool negative = x.negative != y.negative;
    if (x.nan || y.nan || z.nan) return kNan;
    if (x.infinite || y.infinite) {
        const bool zero = (!x.infinite && x.significand == 0) || (!y.infinite && y.significand == 0);
        if (zero || (z.infinite && z.negative != negative)) return kNan;
        return negative ? 0xFF800000u : 0x7F800000u;
    }
    if (z.infinite) return z.negative ? 0xFF800000u : 0x7F800000u;

    const Wide product = Wide{x.significand} * y.significand, addend = z.significand;
    const int product_exponent = x.exponent + y.exponent;
    if (product == 0 && addend == 0) return negative && z.negative ? 0x80000000u : 0;
    if (product == 0) return round_flush(z.negative, addend, z.exponent);
    if (addend == 0) return round_flush(negative, product, product_exponent);

    // Both onto one scale 70 bits below the larger exponent; what the smaller loses below that becomes a sticky last bit, which is below half a
    // unit in the last of 24 places of any sum that large.
    const int base = std::max(product_exponent, z.exponent) - 70;
    const auto place = [base](Wide value, int exponent) {
        const int shift = exponent - base;
        if (shift >= 0) return value << shift;
        if (shift < -120) return Wide{1};
        const Wide kept = value >> -shift;
        return kept | ((kept << -shift) != value ? 1 : 0);
    };
    Wide sum = place(product, product_exponent) * (negative ? -1 : 1) + place(addend, z.exponent) * (z.negative ? -1 : 1);
    if (sum == 0) return 0;  // exact cancellation of unlike signs: +0 under nearest even
    return round_flush(sum < 0, sum < 0 ? -sum : sum, base);
}

#if defined(__x86_64__)
bool has_host_fma() { return __builtin_cpu_supports("fma") != 0; }

__attribute__((target("fma"))) std::uint32_t host_fma(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u);
    const __m128 r = _mm_fmadd_ss(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(a))), _mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(b))),
                                  _mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(c))));
    auto bits = static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_castps_si128(r)));
    asm volatile("" : "+r"(bits));  // the result exists before MXCSR is restored
    _mm_setcsr(saved);
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits;
}
#else
bool has_host_fma() { return false; }
std::uint32_t host_fma(std::uint32_t, std::uint32_t, std::uint32_t) { return 0; }
#endif

}  // namespace assay::simkernel::test
