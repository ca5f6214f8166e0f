#include "workloads/lower/bias.hpp"

#include <fmt/core.h>

#include <cmath>

namespace assay::workloads {
namespace {

/// Quantisers compute the bias' scale as the fp32 product of the other two: a few roundings apart is the same number.
constexpr double kSameScale = 1.0e-6;

}  // namespace

void start_affine(MatrixSpec& spec) {
    if (!spec.integer) return;
    for (std::size_t o = 0; o < spec.affine.scale.size(); ++o)
        spec.affine.scale[o] = static_cast<double>(spec.x.quantization->scale) *
                               static_cast<double>(spec.dynamic ? spec.dynamic->operand.quantization->scale : spec.weights->scale[o]);
}

void add_bias(const Graph& graph, NodeId id, MatrixSpec& spec, ValueId bias, double factor) {
    if (bias == kNoValue || factor == 0.0) return;
    const Value& v = graph.value(bias);
    if (!v.constant) throw NodeError(id, "a bias computed at run time is not supported; use Add");
    const std::int64_t count = v.constant->count();
    if ((count != 1 && count != spec.outputs) || (count > 1 && v.shape.back() != spec.outputs))
        throw NodeError(id, fmt::format("a bias of {} for {} outputs is not supported; give one value for each output", to_string(v.shape),
                                        spec.outputs));
    const auto at = [&](std::size_t o) { return count == 1 ? 0 : static_cast<std::int64_t>(o); };
    const bool raw = v.dtype == DType::i32;  // QLinearConv: already in units of the accumulator
    bool exact = spec.integer && factor == 1.0 && (raw || (v.quantized && v.quantized->integers->dtype == DType::i32));
    for (std::size_t o = 0; exact && !raw && o < spec.affine.scale.size(); ++o) {
        const auto& q = *v.quantized;
        const std::size_t i = q.scale.size() == 1 ? 0 : o;
        exact = q.zero_point[i] == 0 && std::abs(static_cast<double>(q.scale[i]) / spec.affine.scale[o] - 1.0) <= kSameScale;
    }
    for (std::size_t o = 0; o < spec.affine.shift.size(); ++o) {
        if (exact)
            spec.integer_bias[o] = static_cast<std::int32_t>((raw ? *v.constant : *v.quantized->integers).integer(at(o)));
        else
            spec.affine.shift[o] += factor * v.constant->value(at(o));
        if (!std::isfinite(spec.affine.shift[o]))
            throw MalformedNode(id, fmt::format("bias '{}' is not finite at element {}; repair the model", v.name, at(o)));
    }
}

void bind_qlinear_weights(const Graph& graph, NodeId id, ConstantWeights& w, std::int64_t outputs, std::size_t scale, std::size_t zero) {
    const Node& node = graph.node(id);
    if (!graph.is_constant(node.input(scale)) || (node.input(zero) != kNoValue && !graph.is_constant(node.input(zero))))
        throw NodeError(id, "the weight's scale and zero point must be constants; export with static quantisation");
    const Tensor& s = *graph.value(node.input(scale)).constant;
    const Tensor* z = node.input(zero) == kNoValue ? nullptr : graph.value(node.input(zero)).constant.get();
    if ((s.count() != 1 && s.count() != outputs) || (z && z->count() != s.count() && z->count() != 1))
        throw MalformedNode(id, fmt::format("{} weight scales for {} outputs; repair the model", s.count(), outputs));
    w.integers = graph.value(w.value).constant;
    if (w.integers->dtype != DType::i8 && w.integers->dtype != DType::u8)
        throw NodeError(id, fmt::format("weights of type {} are not supported; use int8 or uint8", name_of(w.integers->dtype)));
    for (std::int64_t o = 0; o < outputs; ++o) {
        w.scale.push_back(s.as<float>()[s.count() == 1 ? 0 : o]);
        w.zero_point.push_back(z ? static_cast<std::int32_t>(z->integer(z->count() == 1 ? 0 : o)) : 0);
    }
}

}  // namespace assay::workloads
