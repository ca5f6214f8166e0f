#include "workloads/lower/operand.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "workloads/passes/index_map.hpp"

namespace assay::workloads {
namespace {

const char* const kRelabels[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};

}  // namespace

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

bool next_index(Shape& index, const Shape& extents) {
    for (std::size_t d = index.size(); d > 0; --d) {
        if (++index[d - 1] < extents[d - 1]) return true;
        index[d - 1] = 0;
    }
    return false;
}

std::optional<std::vector<std::int64_t>> reshape_strides(const Shape& from, const std::vector<std::int64_t>& strides, const Shape& to) {
    // Runs of `from` dimensions that are contiguous among themselves can be cut anew; dimensions of extent 1 have no stride to respect.
    std::vector<std::int64_t> extent, stride;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] == 1) continue;
        if (!extent.empty() && stride.back() == strides[i] * from[i]) {
            extent.back() *= from[i];
            stride.back() = strides[i];
        } else {
            extent.push_back(from[i]);
            stride.push_back(strides[i]);
        }
    }
    std::vector<std::int64_t> result(to.size(), 0);
    std::size_t run = extent.size();
    std::int64_t left = 1, at = 0;
    for (std::size_t i = to.size(); i-- > 0;) {
        if (to[i] == 1) continue;
        if (left == 1) {
            if (run == 0) return std::nullopt;
            --run;
            left = extent[run];
            at = stride[run];
        }
        if (left % to[i] != 0) return std::nullopt;
        result[i] = at;
        at *= to[i];
        left /= to[i];
    }
    if (left != 1 || run != 0) return std::nullopt;
    return result;
}

Quantization tensor_quantization(const Graph& graph, NodeId id, ValueId scale, ValueId zero, DType type) {
    if (!graph.is_constant(scale) || (zero != kNoValue && !graph.is_constant(zero)))
        throw NodeError(id, "scale and zero point must be constants; export with static quantisation");
    const Tensor& s = *graph.value(scale).constant;
    if (s.count() != 1) throw NodeError(id, "a scale by axis is supported for constant weights only; quantise activations by tensor");
    if (s.dtype != DType::f32) throw NodeError(id, fmt::format("a scale of type {} is not supported; use float32", name_of(s.dtype)));
    if (type != DType::i8 && type != DType::u8)
        throw NodeError(id, fmt::format("quantised type {} is not supported; use int8 or uint8", name_of(type)));
    Quantization q;
    q.scale = s.as<float>()[0];
    if (!(q.scale > 0) || q.scale > 3.4e38f)
        throw MalformedNode(id, fmt::format("scale {} must be positive and finite; repair the model", q.scale));
    if (zero != kNoValue) q.zero_point = static_cast<std::int32_t>(graph.value(zero).constant->integer(0));
    if (type == DType::u8) q.zero_point -= 128;
    return q;
}

std::optional<std::vector<std::int64_t>> affine_strides(const IndexMap& map) {
    const std::vector<std::int64_t> row_major = row_major_strides(map.extents);
    std::vector<std::int64_t> strides(map.extents.size(), 0);
    for (std::size_t d = 0; d < strides.size(); ++d)
        if (map.extents[d] > 1) strides[d] = map.at(row_major[d]) - map.at(0);
    if (map.list.empty()) return strides;
    Shape index(map.extents.size(), 0);
    for (std::int64_t i = 0, n = map.count(); i < n; ++i) {
        std::int64_t at = map.at(0);
        for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
        if (map.list[static_cast<std::size_t>(i)] != at || map.list[static_cast<std::size_t>(i)] == kFill) return std::nullopt;
        next_index(index, map.extents);
    }
    return strides;
}

namespace {

/// Each dimension of the result reads the input at equal steps: a view. nullopt when one does not.
std::optional<Operand> view_of_maps(const std::vector<IndexMap>& maps, const Operand& input, Operand out) {
    out.strides.clear();
    for (const IndexMap& map : maps) {
        const auto strides = affine_strides(map);
        if (!strides) return std::nullopt;
        const std::int64_t stride = map.source ? input.strides[*map.source] : 0;
        if (map.count() > 0) out.offset += map.at(0) * stride;
        for (const std::int64_t s : *strides) out.strides.push_back(s * stride);
    }
    return out;
}

}  // namespace

std::optional<Operand> view_through(const Graph& graph, NodeId id, const Operand& input, std::size_t output) {
    const Node& node = graph.node(id);
    Operand out = input;
    out.shape = graph.value(node.outputs[output]).shape;
    out.path.push_back(id);
    if (const auto maps = index_maps(graph, id, output)) return view_of_maps(*maps, input, out);
    if (node.op == "DequantizeLinear") {
        const DType type = graph.value(node.inputs[0]).dtype;
        if (type == DType::i32 || input.quantization) return std::nullopt;
        out.quantization = tensor_quantization(graph, id, node.input(1), node.input(2), type);
        return out;
    }
    if (node.op == "QuantizeLinear") {
        // Quantising what was dequantised with the same parameters gives the same integers.
        const DType to = graph.value(node.outputs[0]).dtype;
        if (!input.quantization || graph.value(input.device).dtype != to) return std::nullopt;
        if (!(tensor_quantization(graph, id, node.input(1), node.input(2), to) == *input.quantization)) return std::nullopt;
        out.quantization.reset();
        return out;
    }
    if (node.op == "Transpose") {
        auto perm = node.integers("perm");
        if (perm.empty())
            for (std::size_t i = input.shape.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
        for (std::size_t i = 0; i < perm.size(); ++i) out.strides[i] = input.strides[static_cast<std::size_t>(perm[i])];
        return out;
    }
    if (std::find(std::begin(kRelabels), std::end(kRelabels), node.op) != std::end(kRelabels)) {
        const auto strides = reshape_strides(input.shape, input.strides, out.shape);
        if (!strides) return std::nullopt;
        out.strides = *strides;
        return out;
    }
    return std::nullopt;
}

Operand broadcast_to(const Operand& operand, const Shape& shape) {
    Operand out = operand;
    out.shape = shape;
    out.strides.assign(shape.size(), 0);
    const std::size_t lead = shape.size() - operand.shape.size();
    for (std::size_t i = 0; i < operand.shape.size(); ++i)
        if (operand.shape[i] != 1) out.strides[lead + i] = operand.strides[i];
    return out;
}

}  // namespace assay::workloads
