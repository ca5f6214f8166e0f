#include "golden/emulation/rounding.hpp"

#include <cmath>

namespace assay::golden {
namespace {

/// Encodes x in a binary format of `mantissa` stored bits and exponents [min_exponent, max_exponent] of normal numbers.
std::uint16_t encode(double x, int mantissa, int min_exponent, int max_exponent) {
    const int exponent_bits = 15 - mantissa;
    const auto infinity = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa);
    if (std::isnan(x)) return static_cast<std::uint16_t>(infinity | 1 << (mantissa - 1));
    const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
    const double magnitude = std::fabs(x);
    if (magnitude == 0) return sign;
    if (std::isinf(x)) return sign | infinity;
    const int exponent = std::max(std::ilogb(magnitude), min_exponent);
    // In units of the last place, rounded half to even (the default rounding mode). A carry runs into the exponent field by itself.
    const double units = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));
    const double field = units + std::ldexp(exponent - min_exponent, mantissa);
    if (field >= std::ldexp(max_exponent - min_exponent + 2, mantissa)) return sign | infinity;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(field));
}

}  // namespace

std::uint16_t encode_bf16(double x) { return encode(x, 7, -126, 127); }
std::uint16_t encode_f16(double x) { return encode(x, 10, -14, 15); }

double round_bf16(double x) {
    if (!(std::fabs(x) < HUGE_VAL) || x == 0) return x;
    // Eight significant bits: adding and subtracting 2^(e+45) (52 - 7 = 45) leaves 7 fraction bits, rounded half to even.
    const double magnitude = std::fabs(x);
    if (magnitude < 0x1p-126 - 0x1p-135) return std::copysign(0.0, x);
    const double pivot = std::ldexp(1.0, std::ilogb(magnitude) + 45);
    const double rounded = (magnitude + pivot) - pivot;
    if (rounded > 0x1.FEp127) return std::copysign(HUGE_VAL, x);
    return std::copysign(rounded, x);
}

std::array<double, 3> split_bf16(double x) {
    const double p0 = round_bf16(x);
    if (!(std::fabs(p0) < HUGE_VAL)) return {p0, 0.0, 0.0};
    const double p1 = round_bf16(x - p0);
    return {p0, p1, round_bf16(x - p0 - p1)};
}

}  // namespace assay::golden
