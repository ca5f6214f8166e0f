#pragma once
// Golden's own roundings to the chip's formats, written from docs/numerics.md and IEEE 754-2019; shares no code with simkernel.
#include <array>
#include <cmath>
#include <cstdint>

namespace assay::golden {

/// Nearest-even to fp32, subnormal results flushed to signed zero (tininess after rounding), as a double. NaN stays NaN.
inline double round_f32(double x) {
    // Below this a value still rounds to a subnormal when the exponent is unbounded: 2^-126 less half of the unit below it.
    constexpr double kTiny = 0x1p-126 - 0x1p-151;
    const double rounded = static_cast<double>(static_cast<float>(x));  // before the choice, so that loops vectorise
    return std::fabs(x) < kTiny ? std::copysign(0.0, x) : rounded;
}

std::uint16_t encode_bf16(double x);  ///< rounds once from double, nearest even; NaN becomes 0x7FC0
std::uint16_t encode_f16(double x);   ///< IEEE binary16, subnormals honoured; NaN becomes 0x7E00

/// fp32 value to bf16, nearest even, subnormals flushed on the way in and out, as a double. x must be an fp32 value.
double round_bf16(double x);

/// A narrow format whose subnormals count: `fraction` stored bits, normal exponents from `least_exponent`, finite values up to `largest`.
struct NarrowGrid {
    int fraction, least_exponent;
    double largest;
    bool saturates;  ///< what rounds past `largest` becomes it; else infinity
};
inline constexpr NarrowGrid kGridF16{10, -14, 65504, false};
inline constexpr NarrowGrid kGridF8E4M3{3, -6, 448, true};    ///< as matrix operands are made: saturating
inline constexpr NarrowGrid kGridF8E5M2{2, -14, 57344, true};
/// The value of the grid nearest to x, ties to even.
double round_to_grid(const NarrowGrid& grid, double x);

/// The power of two by which operands of magnitude up to `largest` are divided for an fp8 grid (docs/numerics.md section 3): the least 2^e with
/// largest / 2^e within the grid, -100 <= e <= 100; 1 when `largest` is zero or not finite.
double operand_scale(const NarrowGrid& grid, double largest);

/// Integers -most .. most, `step` apart, which stand for weights (docs/numerics.md section 3).
struct IntegerGrid {
    double step;
    int most;
    double nearest(double w) const;  ///< the integer nearest to w / step, ties to even, within the grid
};
inline constexpr int kW4Group = 32;
/// Weights of magnitude up to `largest` in 8 bits: step largest / 127 as fp32; in 4 bits: largest / 7 as bf16. Step 1 for a largest that is zero,
/// not finite, or too small for a normal step.
IntegerGrid weight_grid_w8(double largest);
IntegerGrid weight_grid_w4(double largest);

/// The fp32 value x as three bf16 parts, x = p[0] + p[1] + p[2] exactly unless parts underflow: p[0] = bf16(x), p[1] = bf16(x - p[0]),
/// p[2] = bf16(x - p[0] - p[1]). An infinite or NaN x gives {x, 0, 0}.
std::array<double, 3> split_bf16(double x);

}  // namespace assay::golden
