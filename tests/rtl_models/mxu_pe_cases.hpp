#pragma once
// Operands that reach the corners of a fused multiply-add, and its oracle: the host's fmaf under flush-to-zero and denormals-are-zero.
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

namespace assay::test {

/// x86 FTZ (bit 15) and DAZ (bit 6) of MXCSR: Intel SDM volume 1, 10.2.3.
class FlushScope {
public:
    FlushScope() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
    ~FlushScope() { _mm_setcsr(saved_); }
    FlushScope(const FlushScope&) = delete;
    FlushScope& operator=(const FlushScope&) = delete;

private:
    unsigned saved_;
};

/// Without an FMA instruction glibc computes fmaf in software, which does not flush.
inline bool host_has_fma() { return __builtin_cpu_supports("fma") != 0; }

/// psum + act * weight; call inside a FlushScope. volatile: the compiler must neither fold nor move it out of the scope.
inline std::uint32_t oracle_bf16(std::uint32_t psum, std::uint16_t act, std::uint16_t weight) {
    const volatile float a = std::bit_cast<float>(static_cast<std::uint32_t>(act) << 16);
    const volatile float w = std::bit_cast<float>(static_cast<std::uint32_t>(weight) << 16);
    const volatile float p = std::bit_cast<float>(psum);
    const volatile float r = std::fmaf(a, w, p);
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(r));
    return (bits & 0x7FFF'FFFFu) > 0x7F80'0000u ? 0x7FC0'0000u : bits;
}

struct PeCase {
    std::uint32_t psum;
    std::uint16_t act, weight;
};

class PeCases {
public:
    explicit PeCases(std::uint32_t seed) : random_(seed) {}

    /// One operand pair in which every class (zero, subnormal, least and greatest normal, infinity, NaN, one, random) meets every other,
    /// and a partial sum that is either of those classes or near the product: cancelling, tying, or just out of reach.
    PeCase next() {
        PeCase c{0, bf16(), bf16()};
        const auto product = static_cast<float>(value(c.act) * value(c.weight));  // exact but for range: 16 significant bits
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(product);
        const std::uint32_t sign = pick(2) << 31;
        switch (pick(8)) {
            case 0: c.psum = static_cast<std::uint32_t>(bf16()) << 16 | (pick(2) ? random_() & 0xFFFFu : 0u); break;
            case 1: c.psum = bits ^ 0x8000'0000u; break;                                             // exact cancellation
            case 2: c.psum = (bits ^ 0x8000'0000u) + static_cast<std::uint32_t>(pick(9)) - 4u; break;  // cancellation to a few ulp
            case 3: c.psum = sign | near_exponent(bits) | (random_() & 0x7F'FFFFu); break;
            case 4: c.psum = sign | near_exponent(bits) | (random_() & 1u); break;                   // ties, even and odd
            case 5: c.psum = sign | near_exponent(bits) | 0x7F'FFFEu | (random_() & 1u); break;      // carries through all bits
            case 6: c.psum = sign | (random_() & 0x00FF'FFFFu); break;                               // subnormal and least normal
            default: c.psum = static_cast<std::uint32_t>(random_()); break;
        }
        return c;
    }

private:
    std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    static double value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
    /// Exponent field within 50 of the product's: beyond the 24 + 16 bits in which the addends can meet, on both sides.
    std::uint32_t near_exponent(std::uint32_t bits) {
        const int exponent = static_cast<int>(bits >> 23 & 0xFFu) + static_cast<int>(pick(101)) - 50;
        return static_cast<std::uint32_t>(exponent < 0 ? 0 : exponent > 254 ? 254 : exponent) << 23;
    }
    std::uint16_t bf16() {
        const auto sign = static_cast<std::uint16_t>(pick(2) << 15);
        const auto mantissa = static_cast<std::uint16_t>(random_() & 0x7Fu);
        const auto make = [&](unsigned rest) { return static_cast<std::uint16_t>(sign | rest); };
        switch (pick(16)) {
            case 0: return make(0);                           // zero
            case 1: return make(mantissa);                    // subnormal (or zero)
            case 2: return make(0x0080u);                     // least normal
            case 3: return make(0x7F7Fu);                     // greatest normal
            case 4: return make(pick(3) ? 0x7F80u : 0x7F80u | mantissa);  // infinity, sometimes NaN
            case 5: return make(0x3F80u);                     // one
            case 6: return make(0x3F80u | mantissa);          // near one
            case 7: return make(0x2000u | mantissa);          // 2^-63: products near the underflow threshold
            case 8: return make(0x1F80u | mantissa | pick(2) << 7);
            case 9: return make(0x5F00u | mantissa | pick(2) << 7);  // 2^63: products near overflow
            case 10: return make((0x3F80u & 0x7F80u) + (pick(33) << 7) - (16u << 7) + mantissa);
            default: return static_cast<std::uint16_t>(random_());
        }
    }
    std::mt19937 random_;
};

}  // namespace assay::test
