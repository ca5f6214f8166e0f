#pragma once
// The chip's number formats, one value at a time: fp32 and bf16 with subnormals flushed, fp16 and fp8 with subnormals honoured, canonical NaNs,
// rounding to nearest even (docs/numerics.md §formats). Everything here is integer or double arithmetic on values that are never subnormal in double, so the results do
// not depend on the caller's MXCSR.
#include <bit>
#include <cstdint>

namespace assay::simkernel {

inline constexpr std::uint32_t kNan32 = 0x7FC0'0000u;  ///< the NaN that the chip writes
inline constexpr std::uint16_t kNan16 = 0x7FC0u;       ///< the same in bf16
inline constexpr std::uint32_t kSign32 = 0x8000'0000u;
inline constexpr std::uint32_t kInf32 = 0x7F80'0000u;

constexpr bool is_nan32(std::uint32_t bits) { return (bits & ~kSign32) > kInf32; }

/// An fp32 value as the chip reads or writes it: subnormals become zero of their sign, every NaN becomes kNan32.
constexpr std::uint32_t canonical32(std::uint32_t bits) {
    if (is_nan32(bits)) return kNan32;
    return (bits & kInf32) == 0 ? bits & kSign32 : bits;
}

/// bf16 to fp32 (exact but for the flush): 0x0001 reads as +0, 0xFFFF as 0x7FC00000.
constexpr std::uint32_t f32_from_bf16(std::uint16_t bits) { return canonical32(std::uint32_t{bits} << 16); }

/// fp32 to bf16, nearest even. 0x3F808000 (a tie) gives 0x3F80, 0x3F818000 gives 0x3F82; past the largest finite gives infinity.
constexpr std::uint16_t bf16_from_f32(std::uint32_t bits) {
    const std::uint32_t value = canonical32(bits);
    if (is_nan32(value)) return kNan16;
    return static_cast<std::uint16_t>((value + 0x7FFFu + ((value >> 16) & 1u)) >> 16);
}

/// A narrow binary format with subnormals: `fraction` stored bits of significand and a bias; 16 or 8 bits wide.
struct NarrowFormat {
    int bits, fraction, bias;
    bool has_infinity;            ///< false: the largest exponent holds numbers, and only all ones is NaN (e4m3fn)
    std::uint32_t largest;        ///< magnitude bits of the largest finite value
    std::uint32_t nan;            ///< the NaN that the chip writes
    constexpr std::uint32_t infinity() const { return largest + 1; }  ///< what follows the largest finite value: NaN without infinities
};
inline constexpr NarrowFormat kF16{16, 10, 15, true, 0x7BFF, 0x7E00};     ///< IEEE 754 binary16
inline constexpr NarrowFormat kF8E4M3{8, 3, 7, false, 0x7E, 0x7F};        ///< OCP FP8 E4M3, ONNX float8e4m3fn: up to 448
inline constexpr NarrowFormat kF8E5M2{8, 2, 15, true, 0x7B, 0x7F};        ///< OCP FP8 E5M2, ONNX float8e5m2: up to 57344

/// Narrow to fp32: exact, since every subnormal of theirs is a normal fp32. fp16 0x0001 reads as 2^-24, e4m3fn 0x7E as 448.
constexpr std::uint32_t f32_from_narrow(const NarrowFormat& f, std::uint32_t bits) {
    const std::uint32_t sign = (bits >> (f.bits - 1) & 1u) << 31, magnitude = bits & ((1u << (f.bits - 1)) - 1);
    if (magnitude > f.largest) return f.has_infinity && magnitude == f.infinity() ? sign | kInf32 : kNan32;
    const std::uint32_t exponent = magnitude >> f.fraction;
    if (exponent != 0)
        return sign | ((magnitude << (23 - f.fraction)) + (static_cast<std::uint32_t>(127 - f.bias) << 23));
    if (magnitude == 0) return sign;
    const int top = std::bit_width(magnitude) - 1;  // the leading one of a subnormal, 2^(top + 1 - bias - fraction)
    return sign | static_cast<std::uint32_t>(top + 1 - f.bias - f.fraction + 127) << 23 | (magnitude << (23 - top) & 0x007F'FFFFu);
}

/// What a conversion to a narrow format gives and whether a magnitude was brought back to the largest finite one.
struct Narrowed {
    std::uint32_t bits;
    bool saturated;
};

/// fp32 to narrow: one rounding to nearest even, subnormal results kept. Past the largest finite value: that value when `saturate`, else
/// infinity, or NaN in a format without one. NaN stays NaN (never saturated). 0x477FF000 (65520, a tie) gives fp16 infinity.
constexpr Narrowed narrow_from_f32(const NarrowFormat& f, std::uint32_t bits, bool saturate) {
    const std::uint32_t value = canonical32(bits), sign = value >> 31 << (f.bits - 1), magnitude = value & ~kSign32;
    if (is_nan32(value)) return {f.nan, false};
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + f.bias;  // of the narrow format, unbounded
    std::uint32_t out = 0;
    if (magnitude < kInf32 && magnitude != 0) {
        const std::uint32_t significand = (magnitude & 0x007F'FFFFu) | 0x0080'0000u;
        const int dropped = exponent >= 1 ? 23 - f.fraction : 23 - f.fraction + 1 - exponent;
        if (dropped <= 25) {  // below half of the least subnormal everything rounds to zero
            const std::uint32_t kept = significand >> dropped, rest = significand & ((1u << dropped) - 1), half = 1u << (dropped - 1);
            out = kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u);
            // The leading one of a normal number adds one to the exponent field; so does a carry.
            if (exponent >= 1) out += static_cast<std::uint32_t>(exponent - 1) << f.fraction;
        }
    }
    if (magnitude < kInf32 && out <= f.largest) return {sign | out, false};
    if (saturate) return {sign | f.largest, true};
    return {f.has_infinity ? sign | f.infinity() : f.nan, false};
}

/// fp32 bits (read with flush) as a double: exact.
inline double widen32(std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(canonical32(bits))); }

/// Least magnitude that rounds, at 24 bits of significand with unbounded exponent, to the least normal 2^-126: the tie 2^-126 - 2^-151 goes to
/// even, which is 2^-126. Below it the rounded value is tiny and is flushed (tininess after rounding, IEEE 754-2019 §7.5).
inline constexpr double kTinyLimit = 0x1.ffffffp-127;

/// One rounding of x to fp32 with the flush. Right for any real value v when x is v rounded to odd at 53 bits (53 >= 24 + 2).
inline std::uint32_t round_to_f32(double x) {
    const std::uint64_t wide = std::bit_cast<std::uint64_t>(x);
    const std::uint32_t sign = static_cast<std::uint32_t>(wide >> 32) & kSign32;
    const double magnitude = std::bit_cast<double>(wide & ~(std::uint64_t{1} << 63));
    if (magnitude != magnitude) return kNan32;
    if (magnitude < kTinyLimit) return sign;
    if (magnitude < 0x1p-126) return sign | 0x0080'0000u;
    return std::bit_cast<std::uint32_t>(static_cast<float>(x));
}

/// x + y rounded to odd at 53 bits: exact if representable, else the neighbour with an odd significand, so that a later rounding to fewer
/// bits is the rounding of the exact sum. Both must be zero, infinite, NaN or at least 2^-900 in magnitude.
inline double add_to_odd(double x, double y) {
    const double sum = x + y;
    const double y_part = sum - x;
    const double error = (x - (sum - y_part)) + (y - y_part);  // Knuth's TwoSum; NaN when the sum is not finite
    if (!(error < 0) && !(error > 0)) return sum;
    std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
    if ((error < 0) != (sum < 0)) bits -= 1;  // towards zero, then the sticky bit
    return std::bit_cast<double>(bits | 1u);
}

/// The multiply-add of matrix and vector unit: a*b exact with unbounded exponent, plus c, one rounding to nearest even, flush.
inline std::uint32_t fma32(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return round_to_f32(add_to_odd(widen32(a) * widen32(b), widen32(c)));  // the product has 48 bits: exact in double
}

}  // namespace assay::simkernel
