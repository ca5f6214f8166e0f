// What follows a matrix operator and fits its drain: per-channel scale and shift, activations, requantisation.
#include <algorithm>
#include <cmath>

#include "workloads/lower/chain.hpp"
#include "workloads/lower/matrix.hpp"

namespace assay::workloads {

std::optional<std::vector<double>> per_channel(const Value& constant, const Shape& shape, std::size_t channel_dim) {
    if (!constant.constant || constant.dtype != DType::f32 || constant.shape.size() > shape.size()) return std::nullopt;
    const std::int64_t outputs = shape[channel_dim];
    const std::size_t lead = shape.size() - constant.shape.size();
    for (std::size_t i = 0; i < constant.shape.size(); ++i)
        if (constant.shape[i] != 1 && (lead + i != channel_dim || constant.shape[i] != outputs)) return std::nullopt;
    std::vector<double> values;
    for (std::int64_t o = 0; o < outputs; ++o) values.push_back(constant.constant->value(constant.constant->count() == 1 ? 0 : o));
    return values;
}

namespace {

constexpr std::size_t kMostExtras = 3;  // tensors that a drain reads besides the accumulator

/// Elementwise nodes after the activations: they may read constants that vary by output, and tensors laid out as the result.
void follow_chain(Lowering& l, MatrixSpec& spec, std::size_t channel_dim, const ExtraLayout& layout) {
    const Graph& graph = l.graph;
    Epilogue& tail = spec.tail;
    const Shape& shape = graph.value(tail.output).shape;
    Chain chain{{}, tail.output};
    const auto readable = [&](ValueId id) {
        const Value& v = graph.value(id);
        if (v.constant) return v.constant->count() == 1 ? device_holds(v.dtype) : per_channel(v, shape, channel_dim).has_value();
        return l.has_view(id) && v.shape == shape && device_holds(v.dtype) && layout(l.operand(spec.main, id)).has_value();
    };
    grow_chain(l, chain, readable, kMostExtras);
    if (chain.nodes.empty()) return;
    // A BatchNormalization reads dimension 1, which must be that of the outputs.
    if (channel_dim != 1 && std::any_of(chain.nodes.begin(), chain.nodes.end(),
                                        [&](NodeId n) { return graph.node(n).op == "BatchNormalization"; }))
        return;
    tail.chain = chain.nodes;
    tail.chain_input = tail.output;
    Epilogue after = follow(l, chain.output);
    const std::size_t quantizers = after.quantization ? 1 : 0;
    tail.chain.insert(tail.chain.end(), after.nodes.begin(), after.nodes.end() - static_cast<std::ptrdiff_t>(quantizers));
    tail.nodes.insert(tail.nodes.end(), chain.nodes.begin(), chain.nodes.end());
    tail.nodes.insert(tail.nodes.end(), after.nodes.begin(), after.nodes.end());
    tail.quantization = after.quantization;
    tail.output = after.output;
    std::set<ValueId> known{tail.chain_input};
    for (const NodeId id : tail.chain) {
        for (const ValueId input : graph.node(id).inputs) {
            if (input == kNoValue || graph.is_constant(input) || !known.insert(input).second) continue;
            spec.extra_values.push_back(input);
            spec.extras.push_back(l.operand(spec.main, input));
            spec.extra_strides.push_back(*layout(spec.extras.back()));
        }
        known.insert(graph.node(id).outputs[0]);
    }
}

}  // namespace

void follow_matrix(Lowering& l, MatrixSpec& spec, ValueId result, std::size_t channel_dim, const ExtraLayout& layout) {
    const Graph& graph = l.graph;
    const auto& probes = l.options.probes;
    while (std::find(probes.begin(), probes.end(), graph.value(result).name) == probes.end()) {
        const NodeId next = only_reader(graph, result);
        if (next < 0 || graph.value(result).dtype != DType::f32) break;
        const Node& node = graph.node(next);
        if (node.op == "Add" && node.inputs.size() == 2) {
            const ValueId other = node.inputs[0] == result ? node.inputs[1] : node.inputs[0];
            const auto bias = other == result ? std::nullopt : per_channel(graph.value(other), graph.value(result).shape, channel_dim);
            if (!bias || graph.value(node.outputs[0]).shape != graph.value(result).shape) break;
            for (std::size_t o = 0; o < bias->size(); ++o) spec.affine.shift[o] += (*bias)[o];
        } else if (node.op == "BatchNormalization" && channel_dim == 1 && node.inputs[0] == result) {
            const auto [scale, shift] = batch_norm_factors(graph, next);
            for (std::size_t o = 0; o < scale.size(); ++o) {
                spec.affine.scale[o] *= static_cast<double>(scale[o]);
                spec.affine.shift[o] = spec.affine.shift[o] * static_cast<double>(scale[o]) + static_cast<double>(shift[o]);
            }
        } else {
            break;
        }
        spec.nodes.push_back(next);
        result = node.outputs[0];
    }
    spec.tail = follow(l, result);
    if (!spec.tail.quantization && graph.value(spec.tail.output).dtype == DType::f32) follow_chain(l, spec, channel_dim, layout);
    spec.nodes.insert(spec.nodes.end(), spec.tail.nodes.begin(), spec.tail.nodes.end());
}

bool bind_integer_weights(const Graph& graph, ConstantWeights& weights, std::int64_t outputs, std::int64_t output_axis) {
    const Value& v = graph.value(weights.value);
    if (!v.quantized) return false;
    const QuantizedConstant& q = *v.quantized;
    if (q.integers->dtype != DType::i8 && q.integers->dtype != DType::u8) return false;
    if (q.scale.size() != 1 && (q.axis != output_axis || static_cast<std::int64_t>(q.scale.size()) != outputs)) return false;
    weights.integers = q.integers;
    for (std::int64_t o = 0; o < outputs; ++o) {
        const std::size_t i = q.scale.size() == 1 ? 0 : static_cast<std::size_t>(o);
        weights.scale.push_back(q.scale[i]);
        weights.zero_point.push_back(q.zero_point[i]);
    }
    return true;
}

}  // namespace assay::workloads
