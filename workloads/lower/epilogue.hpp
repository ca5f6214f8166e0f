#pragma once
// What may follow an operator within its layer: activations and a requantisation, each of a value that nobody else reads.
#include "workloads/lower/lowering.hpp"
#include "workloads/lower/math.hpp"
#include "workloads/schedule/expr.hpp"

namespace assay::workloads {

struct Activation {
    enum class Kind { relu, clip, leaky, sigmoid, hard_sigmoid, tanh } kind = Kind::relu;
    float a = 0, b = 0;  ///< clip: bounds; leaky: slope; hard_sigmoid: alpha, beta
    /// The result scales with the argument (for positive factors), so requantisation may come first.
    bool homogeneous() const { return kind == Kind::relu || kind == Kind::clip || kind == Kind::leaky; }
};

struct Epilogue {
    std::vector<Activation> activations;
    std::optional<Quantization> quantization;
    std::vector<NodeId> chain;  ///< elementwise nodes after the activations (matrix layers only), and the value that they start from
    ValueId chain_input = kNoValue;
    ValueId output = kNoValue;  ///< the value that the layer writes
    std::vector<NodeId> nodes;  ///< followed nodes, in order
};

/// The activation that a node is, if it is one. Throws NodeError for bounds that are not constants.
std::optional<Activation> activation_of(const Graph& graph, NodeId id);

/// The only reader of a value that is no graph output; -1 if there is none or are several.
NodeId only_reader(const Graph& graph, ValueId value);

/// Follows activations and then a QuantizeLinear from `value` on. With `probes`, a value that is asked for ends the chain.
Epilogue follow(const Lowering& lowering, ValueId value);

/// BatchNormalization as y = x*first[c] + second[c]; rounded once from double. Throws NodeError for parameters that are not constant,
/// finite and one a channel.
std::pair<std::vector<float>, std::vector<float>> batch_norm_factors(const Graph& graph, NodeId id);

Expr::Ref emit_activation(Expr& expr, const Activation& activation, Expr::Ref x);
/// Integer as read from a stream to fp32: (x - zero point) * scale (DequantizeLinear-10).
Expr::Ref emit_dequantize(Expr& expr, Expr::Ref x, const Quantization& q);
/// fp32 to an integer lane value, unsaturated: round(x / scale) + zero point (QuantizeLinear-10).
Expr::Ref emit_quantize(Expr& expr, Expr::Ref x, const Quantization& q);
/// round(x) + zero point, for a value that was divided by the scale already.
Expr::Ref emit_round(Expr& expr, Expr::Ref x, std::int32_t zero_point);
/// Activations, then quantisation by division.
Expr::Ref emit_epilogue(Expr& expr, const Epilogue& epilogue, Expr::Ref x);

}  // namespace assay::workloads
