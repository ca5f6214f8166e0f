#pragma once
// Error of the functions defined by algorithm, in units in the last place of the exact result, against the host's long double functions
// (64 bits of significand: their own error is below 2^-38 of an fp32 ULP).
#include <bit>
#include <cmath>
#include <cstdint>

#include "simkernel/numerics/vector.hpp"

namespace assay::simkernel::test {

struct SpecialFunction {
    const char* name;
    Uop op;
    long double (*reference)(long double);
    double published_ulp;  ///< docs/numerics.md §5
};
inline const SpecialFunction kRecipFn{"recip", Uop::recip_f32, [](long double x) { return 1 / x; }, 0.68};
inline const SpecialFunction kRsqrtFn{"rsqrt", Uop::rsqrt_f32, [](long double x) { return 1 / std::sqrt(x); }, 0.64};
inline const SpecialFunction kExp2Fn{"exp2", Uop::exp2_f32, [](long double x) { return std::exp2(x); }, 0.96};
inline const SpecialFunction kLog2Fn{"log2", Uop::log2_f32, [](long double x) { return std::log2(x); }, 0.96};

/// |got - exact| in ULPs of `exact`; an exact result at or beyond the finite range must be the infinity or be within it, and one below 2^-126
/// must be zero or the least normal.
inline double ulp_error(float got, long double exact) {
    const long double magnitude = std::fabs(exact);
    if (magnitude == 0) return got == 0 ? 0 : HUGE_VAL;
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    if (exponent < -125) return got == 0 ? 0 : static_cast<double>(std::fabs(got - exact) / 0x1p-149L);  // flushed
    return static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, exponent - 24));
}

struct UlpSweep {
    double max_ulp = 0;
    std::uint32_t worst = 0;
    std::uint64_t checked = 0;
};
inline UlpSweep sweep_ulp(const SpecialFunction& fn, std::uint32_t first, std::uint32_t last, std::uint32_t stride) {
    UlpSweep sweep;
    for (std::uint64_t bits = first; bits <= last; bits += stride, ++sweep.checked) {
        const auto a = static_cast<std::uint32_t>(bits);
        const float got = std::bit_cast<float>(run_uop(fn.op, a, 0, 0));
        const double error = ulp_error(got, fn.reference(std::bit_cast<float>(a)));
        if (!(error <= sweep.max_ulp)) sweep.max_ulp = error, sweep.worst = a;  // NaN counts as worst
    }
    return sweep;
}

}  // namespace assay::simkernel::test
