#include "workloads/lower/matrix_drain.hpp"

#include <algorithm>
#include <bit>

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;

Expr::Ref parameter(Drain& drain, const std::vector<double>& values) {
    std::vector<std::uint32_t> words;
    for (const double v : values) words.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(v)));
    drain.params.push_back(std::move(words));
    drain.types.push_back(Dtype::f32);
    return Expr::stream(static_cast<std::uint32_t>(drain.params.size()));
}

bool all(const std::vector<double>& values, double value) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == value; });
}

/// x*scale + shift with as few roundings as the values allow; what is equal for all outputs is an immediate.
Expr::Ref affine(Drain& drain, Expr::Ref x, const std::vector<double>& scale, const std::vector<double>& shift) {
    const auto operand = [&](const std::vector<double>& v) {
        return all(v, v[0]) ? Expr::imm(static_cast<float>(v[0])) : parameter(drain, v);
    };
    if (all(scale, 1.0) && all(shift, 0.0)) return x;
    if (all(scale, 1.0)) return drain.expr.op(Uop::add_f32, x, operand(shift));
    if (all(shift, 0.0)) return drain.expr.op(Uop::mul_f32, x, operand(scale));
    const auto s = operand(scale), t = operand(shift);
    return drain.expr.op(Uop::fma_f32, x, s, t);
}

}  // namespace

Drain build_drain(const MatrixSpec& spec) {
    Drain drain;
    Expr::Ref x = Expr::stream(0);
    if (spec.integer) {
        if (std::any_of(spec.integer_bias.begin(), spec.integer_bias.end(), [](std::int32_t b) { return b != 0; })) {
            std::vector<std::uint32_t> words;
            for (const std::int32_t b : spec.integer_bias) words.push_back(static_cast<std::uint32_t>(b));
            drain.params.push_back(std::move(words));
            drain.types.push_back(Dtype::i32);
            x = drain.expr.op(Uop::add_i32, x, Expr::stream(1));
        }
        x = drain.expr.op(Uop::i32_to_f32, x);
    }
    const auto& activations = spec.tail.activations;
    const bool homogeneous = std::all_of(activations.begin(), activations.end(), [](const Activation& a) { return a.homogeneous(); });
    if (!spec.integer || !spec.tail.quantization || !homogeneous) {
        x = affine(drain, x, spec.affine.scale, spec.affine.shift);
        drain.expr.result = x;
        drain.expr.result = emit_epilogue(drain.expr, spec.tail, x);
        return drain;
    }
    // Requantisation with one multiplier: the output's scale divides scale, shift and the bounds of the activations.
    const double by = static_cast<double>(spec.tail.quantization->scale);
    std::vector<double> scale = spec.affine.scale, shift = spec.affine.shift;
    for (double& v : scale) v /= by;
    for (double& v : shift) v /= by;
    x = affine(drain, x, scale, shift);
    for (Activation a : activations) {
        if (a.kind == Activation::Kind::clip) {
            a.a = static_cast<float>(std::max(static_cast<double>(a.a) / by, -3.0e38));
            a.b = static_cast<float>(std::min(static_cast<double>(a.b) / by, 3.0e38));
        }
        x = emit_activation(drain.expr, a, x);
    }
    drain.expr.result = emit_round(drain.expr, x, spec.tail.quantization->zero_point);
    return drain;
}

}  // namespace assay::workloads
