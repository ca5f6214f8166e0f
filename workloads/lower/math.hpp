#pragma once
// Elementary functions as vector expressions: what the vector unit has no instruction for. Each states its largest error in ulp of the exact
// result for fp32 arguments; the tests measure it. All take and give fp32 lanes; a NaN argument gives NaN.
#include "workloads/schedule/expr.hpp"

namespace assay::workloads {

/// exp(x) for x <= 88; below -200 zero. Error below 2.5 ulp.
Expr::Ref emit_exp(Expr& e, Expr::Ref x);
/// exp(x) for any x: +infinity past 88.72, zero far below. Error below 2.5 ulp.
Expr::Ref emit_exp_any(Expr& e, Expr::Ref x);
/// exp(x) - 1. Error below 4 ulp.
Expr::Ref emit_expm1(Expr& e, Expr::Ref x);
/// Natural logarithm. Error below 2.5 ulp.
Expr::Ref emit_log(Expr& e, Expr::Ref x);
/// log(1 + x) for x in [0, 1]. Error below 4 ulp.
Expr::Ref emit_log1p_unit(Expr& e, Expr::Ref x);
/// 1/(1 + exp(-x)). Error below 4 ulp.
Expr::Ref emit_sigmoid(Expr& e, Expr::Ref x);
/// Absolute error below 2^-22; near zero the relative error is not bounded (two terms cancel).
Expr::Ref emit_tanh(Expr& e, Expr::Ref x);
/// Error below 4 ulp.
Expr::Ref emit_erf(Expr& e, Expr::Ref x);
/// Absolute error below 2^-22 for |x| <= 2^20, where the argument is reduced without loss; beyond, it grows with |x|.
Expr::Ref emit_sin(Expr& e, Expr::Ref x);
Expr::Ref emit_cos(Expr& e, Expr::Ref x);
/// Error below 4 ulp.
Expr::Ref emit_atan(Expr& e, Expr::Ref x);
/// x^y for a constant y; integers up to 64 and halves by multiplication and square root, others as emit_pow. The error grows with |y|.
Expr::Ref emit_pow_constant(Expr& e, Expr::Ref x, float y);
/// x^y as 2^(y log2|x|), with the signs and special cases of IEEE 754-2019 pow (negative x needs an integer y). Relative error about
/// |y log2 x| ulp.
Expr::Ref emit_pow(Expr& e, Expr::Ref x, Expr::Ref y);
/// Integral part, towards zero.
Expr::Ref emit_trunc(Expr& e, Expr::Ref x);
Expr::Ref emit_abs(Expr& e, Expr::Ref x);
/// x with its sign flipped if x is a number; NaN stays NaN.
Expr::Ref emit_negate(Expr& e, Expr::Ref x);

/// a / b of int32 lanes towards zero, and the remainder with a's sign. Division by zero gives some value.
struct Quotient {
    Expr::Ref quotient, remainder;
};
Quotient emit_divide_integers(Expr& e, Expr::Ref a, Expr::Ref b);

}  // namespace assay::workloads
