#include "golden/emulation/rounding.hpp"

#include <algorithm>
#include <bit>
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
    if (std::isnan(x)) return x;
    // A double keeps 52 fraction bits, bf16 7: round the other 45 away, half to even. A carry runs into the exponent by itself, and the
    // double's wide exponent is the "unbounded" one after which the flush and the overflow are decided.
    constexpr std::uint64_t kDropped = 45;
    std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    bits += (std::uint64_t{1} << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
    bits &= ~((std::uint64_t{1} << kDropped) - 1);
    const double rounded = std::bit_cast<double>(bits), magnitude = std::fabs(rounded);
    return std::copysign(magnitude < 0x1p-126 ? 0.0 : magnitude > 0x1.FEp127 ? HUGE_VAL : magnitude, x);
}

double round_to_grid(const NarrowGrid& grid, double x) {
    if (std::isnan(x) || x == 0) return x;
    double magnitude = std::fabs(x);
    if (magnitude < std::ldexp(1.0, grid.least_exponent)) {
        // At this size the double adder's own last place is the grid's step: it rounds to nearest even.
        const double big = std::ldexp(1.0, grid.least_exponent - grid.fraction + 52);
        magnitude = (magnitude + big) - big;
    } else if (std::isfinite(magnitude)) {
        const int dropped = 52 - grid.fraction;
        std::uint64_t bits = std::bit_cast<std::uint64_t>(magnitude);
        bits += (std::uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
        magnitude = std::bit_cast<double>(bits >> dropped << dropped);
    }
    if (magnitude > grid.largest) magnitude = grid.saturates ? grid.largest : HUGE_VAL;
    return std::copysign(magnitude, x);
}

double operand_scale(const NarrowGrid& grid, double largest) {
    if (!(largest > 0) || !std::isfinite(largest)) return 1;
    double scale = 0x1p-100;
    while (largest / scale > grid.largest && scale < 0x1p100) scale *= 2;
    return scale;
}

double IntegerGrid::nearest(double w) const {
    return std::isnan(w) ? 0 : std::fmax(-most, std::fmin(most, std::nearbyint(w / step)));
}

namespace {

IntegerGrid weight_grid(double step, int most) { return {step > 0 && std::isfinite(step) ? step : 1.0, most}; }

}  // namespace

IntegerGrid weight_grid_w8(double largest) { return weight_grid(round_f32(largest / 127), 127); }
IntegerGrid weight_grid_w4(double largest) { return weight_grid(round_bf16(round_f32(largest / 7)), 7); }

std::array<double, 3> split_bf16(double x) {
    const double p0 = round_bf16(x);
    if (!(std::fabs(p0) < HUGE_VAL)) return {p0, 0.0, 0.0};
    const double p1 = round_bf16(x - p0);
    return {p0, p1, round_bf16(x - p0 - p1)};
}

}  // namespace assay::golden
