// A matrix layer from its normal form to its record in the program.
#include <fmt/core.h>

#include <algorithm>

#include "workloads/lower/array_format.hpp"
#include "workloads/lower/matrix_emit.hpp"
#include "workloads/lower/matrix_weights.hpp"

namespace assay::workloads {
namespace {

std::uint64_t macs_of(const MatrixSpec& s) {
    return static_cast<std::uint64_t>(s.repeats.size()) *
           static_cast<std::uint64_t>(s.batch * s.window.out[0] * s.window.out[1] * s.outputs * (s.channels / s.groups) *
                                      s.window.kernel[0] * s.window.kernel[1]);
}

/// Cores side by side over the outputs.
std::size_t columns_of(const std::vector<MatrixPart>& parts) {
    return static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), [&](const MatrixPart& p) { return p.tiles.begin == parts[0].tiles.begin; }));
}

}  // namespace

void emit_matrix_layer(Lowering& l, MatrixSpec spec) {
    Window& w = spec.window;
    if (w.kernel[0] == 1 && w.kernel[1] == 1 && !w.pad_begin[0] && !w.pad_begin[1] && !w.pad_end[0] && !w.pad_end[1]) {
        // A strided 1x1 window reads only every stride-th pixel: load just those.
        for (const std::size_t d : {std::size_t{0}, std::size_t{1}}) {
            spec.x_strides[d + 1] *= w.stride[d];
            w.in[d] = w.out[d];
            w.stride[d] = w.dilation[d] = 1;
        }
    }
    choose_format(l, spec);
    if (spec.integer && spec.weights) {
        const auto sums = weight_sums(spec);
        const auto zero = static_cast<std::uint32_t>(spec.x.quantization->zero_point);
        for (std::size_t o = 0; o < sums.size(); ++o)
            spec.integer_bias[o] =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(spec.integer_bias[o]) - zero * static_cast<std::uint32_t>(sums[o]));
    }
    const Drain drain = build_drain(l, spec);
    MatrixPlan plan = plan_matrix(l, spec, drain);
    const std::vector<MatrixPart> parts = split_matrix(l, spec, drain, plan);
    l.begin_layer();
    emit_matrix_tiles(l, spec, plan, drain, parts);
    simkernel::Layer layer;
    describe_format(spec, layer);
    layer.macs = macs_of(spec);
    layer.k_slab = plan.slab;
    if (plan.blocks[0].group_k) layer.k_slab = spec.channels / spec.groups;
    layer.mapping = describe(spec, plan, l.chip);
    if (parts.size() > 1)
        layer.mapping += fmt::format(", {} cores: {} by tiles, {} by blocks", parts.size(), parts.size() / columns_of(parts), columns_of(parts));
    std::vector<Operand> inputs{spec.x};
    if (spec.dynamic) inputs.push_back(spec.dynamic->operand);
    inputs.insert(inputs.end(), spec.extras.begin(), spec.extras.end());
    l.end_layer(std::move(layer), spec.main, spec.nodes, inputs, spec.tail.output);
}

}  // namespace assay::workloads
