#pragma once
// The error model of the chip's arithmetic, as documented in docs/numerics.md: what one operation may add, in units that each operator's
// condition numbers multiply. Every constant states where it comes from.
#include <cmath>

namespace assay::golden {

inline constexpr double kU32 = 0x1p-24;     ///< unit roundoff of fp32 (24 significant bits, to nearest)
inline constexpr double kUlp32 = 2 * kU32;  ///< one ULP is at most 2^-23 of the value
inline constexpr double kUBf16 = 0x1p-8;    ///< unit roundoff of bf16 (8 significant bits, to nearest)
inline constexpr double kFlush = 0x1p-126;  ///< a subnormal result is written as zero

/// exp2 and log2 of the vector unit, in ULP of the exact result (docs/numerics.md section 5, the bound that golden may use).
inline constexpr double kExp2Ulp = 0.96, kLog2Ulp = 0.96;

/// One fp32 rounding of a result r, flush included. div and sqrt are correctly rounded: also one of these.
inline double rounding(double r) { return kU32 * std::fabs(r) + kFlush; }

/// Relative error of exp(x) formed from exp2: log2(e) and its product with x are rounded once each, which moves the result by |x| times as
/// much (a program may correct for that, and rounds the correction once), and exp2 adds its own ULPs.
inline double exp_relative(double x) { return kExp2Ulp * kUlp32 + 2 * kU32 * std::fabs(x) + kU32; }

/// Reals of a sum of n terms in any order, each addition rounded: (n - 1) u sum|x| at most (Higham, Accuracy and Stability, 4.2).
inline double sum_error(double n, double sum_abs) { return n > 1 ? (n - 1) * kU32 * sum_abs + n * kFlush : 0.0; }

/// Factor of u_acc * sum|a b| that an honest accumulation of K products may reach: K at worst, 6 sigma of a random walk otherwise.
inline double accumulation_factor(double k) { return std::fmin(k, 6 * std::sqrt(k)); }

}  // namespace assay::golden
