#pragma once
// In which arithmetic the reference evaluates a node, and what it keeps beside the values.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "golden/emulation/rounding.hpp"
#include "golden/reference/ulp.hpp"

namespace assay::golden {

/// How the chip does a layer's matrix products (Layer::precision of a program).
enum class MatrixRule {
    fp32,    ///< fp32 fused multiply-adds (vector unit)
    int8,    ///< integers, exact, then conversion and one fp32 scale
    bf16,    ///< operands rounded once to bf16
    bf16x3,  ///< operands in three bf16 parts, six products
    fp16,    ///< operands rounded once to fp16
    fp8e4m3, ///< operands divided by powers of two and rounded once, saturating, to e4m3fn
    fp8e5m2, ///< the same to e5m2
    w8a8,    ///< activations in 8-bit steps of x_scale from x_zero, weights in 8-bit steps of their output's own; exact sums, then scaled
    w8,      ///< activations in bf16; weights are 8-bit integers, one step an output
    w4,      ///< activations in bf16; weights are 4-bit integers times a bf16 step for each kW4Group of k, rounded to bf16
};
/// "int8", "bf16", "bf16x3", "fp16", "fp8e4m3", "fp8e5m2", "w8a8", "w8", "w4"; "fp32" and "move" are fp32. Throws Error(bad_input) on another word.
MatrixRule matrix_rule(const std::string& precision);

enum class Mode {
    exact,           ///< fp64 values only
    bound,           ///< fp64 values with error bounds; matrix operands quantised as the rule says
    bound_worst,     ///< as bound, but with the accumulation error that only constant or one-signed operands reach
    bound_emulated,  ///< as bound, but matrix products are emulated to the bit and carry no error of their own
    emulate,         ///< values as the chip would have them: fp32 after each operation, matrix products by their rule
};

struct Numerics {
    Mode mode = Mode::exact;
    MatrixRule rule = MatrixRule::fp32;
    std::int64_t k_slab = 0;  ///< channels of a slab of K; 0: all
    double x_scale = 1;       ///< fp8, w8a8: activations are divided by it
    double w_scale = 0;       ///< fp8, w8a8: weights are; 0: each output's by the scale of its own largest magnitude
    int x_zero = 0;           ///< w8a8: the integer that stands for an activation of 0

    bool bounds() const { return mode == Mode::bound || mode == Mode::bound_worst || mode == Mode::bound_emulated; }
    /// One step of the chip's arithmetic on an intermediate value of an operator.
    double round(double x) const { return mode == Mode::emulate ? round_f32(x) : x; }
    double exp(double x) const {
        if (mode != Mode::emulate) return std::exp(x);
        // 2^t times a correction for what the rounding of t = x log2(e) lost: two roundings after exp2's own.
        constexpr double kLog2e = 1.4426950408889634074;
        const double t = round_f32(x * kLog2e);
        // The chip's exp2 is not correctly rounded: half its documented error, one way or the other by the operand's bits, stands for it.
        const auto bits = std::bit_cast<std::uint64_t>(t) * 0x9E3779B97F4A7C15u;
        const double off = (bits >> 63 ? 0.5 : -0.5) * kExp2Ulp * kUlp32;
        return round_f32(round_f32(std::exp2(t) * (1 + off)) * std::exp2(x * kLog2e - t));
    }
};

}  // namespace assay::golden
