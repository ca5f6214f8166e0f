#include <fmt/core.h>

#include <cmath>

#include "workloads/passes/passes.hpp"

namespace assay::workloads {

void fold_dequantize(Graph& graph, NodeId id) {
    Node& node = graph.node(id);
    const Value& source = graph.value(node.inputs.at(0));
    const Tensor& x = *source.constant;
    if (x.dtype != DType::i8 && x.dtype != DType::u8 && x.dtype != DType::i32)
        throw NodeError(id, fmt::format("quantised type {} is not supported; use int8, uint8 or int32", name_of(x.dtype)));
    if (!graph.is_constant(node.input(1))) throw NodeError(id, "scale is missing; repair the model");
    const Tensor& scale = *graph.value(node.input(1)).constant;
    if (scale.dtype != DType::f32)
        throw NodeError(id, fmt::format("a scale of type {} is not supported; use float32", name_of(scale.dtype)));
    if (node.integer("block_size", 0) != 0) throw NodeError(id, "block_size is not supported; quantise by tensor or by axis");
    QuantizedConstant q;
    q.integers = source.constant;
    for (std::int64_t i = 0; i < scale.count(); ++i) {
        q.scale.push_back(scale.as<float>()[i]);
        if (!(q.scale.back() > 0) || !std::isfinite(q.scale.back()))
            throw NodeError(id, fmt::format("scale {} must be positive and finite; repair the model", q.scale.back()));
        const ValueId zero = node.input(2);
        if (zero != kNoValue && graph.value(zero).constant->count() != scale.count())
            throw NodeError(id, "scale and zero point differ in length; repair the model");
        q.zero_point.push_back(zero == kNoValue ? 0 : static_cast<std::int32_t>(graph.value(zero).constant->integer(i)));
    }
    std::int64_t inner = x.count(), extent = 1;
    if (scale.count() != 1) {
        q.axis = normal_axis(id, node.integer("axis", 1), x.shape.size());
        extent = x.shape[static_cast<std::size_t>(q.axis)];
        if (scale.count() != extent)
            throw NodeError(id, fmt::format("{} scales for a dimension of {}; repair the model", scale.count(), extent));
        inner = 1;
        for (std::size_t d = static_cast<std::size_t>(q.axis) + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
    }
    auto out = std::make_shared<Tensor>(DType::f32, x.shape);
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const auto j = static_cast<std::size_t>(i / inner % extent);
        // int32 minus a zero point of 0: the conversion rounds once, as the operator's own does.
        out->as<float>()[i] = static_cast<float>(x.integer(i) - q.zero_point[j]) * q.scale[j];
    }
    Value& result = graph.value(node.outputs.at(0));
    result.dtype = DType::f32;
    result.shape = x.shape;
    result.known = true;
    result.constant = std::move(out);
    result.origin = source.origin;
    result.quantized = std::make_shared<const QuantizedConstant>(std::move(q));
    node.folded = true;
}

}  // namespace assay::workloads
