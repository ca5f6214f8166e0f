#include "workloads/lower/matrix_drain.hpp"

#include <algorithm>
#include <bit>

#include "workloads/lower/chain.hpp"

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

/// What a chain in the drain reads: parameters by output, and tiles of the extras.
class DrainReader final : public ChainReader {
public:
    DrainReader(const Lowering& l, const MatrixSpec& spec, Drain& drain) : l_(l), spec_(spec), drain_(drain) {}

    Lane read(ValueId value) override {
        const Value& v = l_.graph.value(value);
        if (v.constant && v.constant->count() == 1) return lane_of_constant(*v.constant, 0);
        if (v.constant) {
            // By output: what varies along one dimension is stored in its order.
            std::vector<double> values;
            for (std::int64_t i = 0; i < v.constant->count(); ++i) values.push_back(v.constant->value(i));
            return {Lane::Kind::real, parameter(drain_, values)};
        }
        const auto at = std::find(spec_.extra_values.begin(), spec_.extra_values.end(), value) - spec_.extra_values.begin();
        const Operand& extra = spec_.extras.at(static_cast<std::size_t>(at));
        const Expr::Ref x = Expr::stream(kFirstExtra + static_cast<std::uint32_t>(at));
        if (extra.quantization) return {Lane::Kind::real, emit_dequantize(drain_.expr, x, *extra.quantization)};
        return lane_of_stored(drain_.expr, x, v.dtype);
    }

    Expr::Ref channel(NodeId, const std::vector<float>& values, const char*) override {
        return parameter(drain_, {values.begin(), values.end()});
    }

private:
    const Lowering& l_;
    const MatrixSpec& spec_;
    Drain& drain_;
};

/// Activations, the chain, and how its value is stored.
Expr::Ref chained(const Lowering& l, const MatrixSpec& spec, Drain& drain, Expr::Ref x) {
    for (const Activation& activation : spec.tail.activations) x = emit_activation(drain.expr, activation, x);
    DrainReader reader(l, spec, drain);
    const Lane y = emit_chain(drain.expr, l.graph, spec.tail.chain, {{spec.tail.chain_input, {Lane::Kind::real, x}}}, reader);
    if (spec.tail.quantization) return emit_quantize(drain.expr, y.ref, *spec.tail.quantization);
    return stored_of_lane(drain.expr, y, l.graph.value(spec.tail.output).dtype);
}

Expr::Ref build(const Lowering& l, const MatrixSpec& spec, Drain& drain) {
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
    if (!spec.integer || !spec.tail.quantization || !homogeneous || !spec.tail.chain.empty()) {
        x = affine(drain, x, spec.affine.scale, spec.affine.shift);
        if (spec.tail.chain.empty()) return emit_epilogue(drain.expr, spec.tail, x);
        return chained(l, spec, drain, x);
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
    return emit_round(drain.expr, x, spec.tail.quantization->zero_point);
}

}  // namespace

Drain build_drain(const Lowering& l, const MatrixSpec& spec) {
    Drain drain;
    drain.expr.result = build(l, spec, drain);
    drain.plan = plan_expr(drain.expr);
    return drain;
}

}  // namespace assay::workloads
