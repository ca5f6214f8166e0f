// Conv-1, Conv-11, Conv-22: N spatial dimensions, groups, strides, dilations, pads, auto_pad.
#include <fmt/format.h>

#include "golden/emulation/chain.hpp"
#include "golden/reference/matrix.hpp"
#include "golden/reference/ops/convolution.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/parallel.hpp"
#include "golden/reference/window.hpp"

namespace assay::golden::ops {
namespace {

/// (tap, channel) of each k in the chip's order: slabs of channels, in each the taps of the kernel, in each the channels of the slab.
std::vector<std::pair<std::int64_t, std::int64_t>> k_order(std::int64_t channels, std::int64_t taps, std::int64_t slab) {
    if (slab <= 0 || slab > channels) slab = channels;
    std::vector<std::pair<std::int64_t, std::int64_t>> order;
    for (std::int64_t begin = 0; begin < channels; begin += slab)
        for (std::int64_t tap = 0; tap < taps; ++tap)
            for (std::int64_t c = begin; c < std::min(begin + slab, channels); ++c) order.emplace_back(tap, c);
    return order;
}

}  // namespace

ConvolutionShape check_convolution(const Node& node, const Value& x, const Value& w) {
    ConvolutionShape s;
    if (x.rank() < 3) node.fail(fmt::format("input of shape {}: needs N, C and at least one spatial dimension", to_string(x.shape)));
    if (w.rank() != x.rank()) node.fail(fmt::format("weights of shape {} for an input of {}", to_string(w.shape), to_string(x.shape)));
    s.groups = node.integer("group", 1);
    s.batch = x.shape[0];
    s.channels = x.shape[1];
    s.filters = w.shape[0];
    if (s.groups < 1 || s.channels % s.groups || s.filters % s.groups || w.shape[1] != s.channels / s.groups)
        node.fail(
            fmt::format("group={}: input {} and weights {} do not divide into groups", s.groups, to_string(x.shape), to_string(w.shape)));
    s.window = read_window(node, Shape(x.shape.begin() + 2, x.shape.end()), Shape(w.shape.begin() + 2, w.shape.end()), false);
    return s;
}

Value convolve(const Value& x, const Value& w, const std::vector<double>& bias, const std::vector<double>& bias_err,
               const ConvolutionShape& s, const Numerics& numerics) {
    const std::int64_t in_group = s.channels / s.groups, out_group = s.filters / s.groups, positions = s.window.positions;
    const auto order = k_order(in_group, s.window.taps, numerics.k_slab);
    const auto offsets = s.window.offsets();
    const auto k_count = static_cast<Eigen::Index>(order.size());
    Shape shape{s.batch, s.filters};
    shape.insert(shape.end(), s.window.out.begin(), s.window.out.end());
    Value y(DType::f32, shape);
    if (numerics.bounds()) y.err.resize(y.f.size());
    const auto one = [&](std::int64_t n, std::int64_t g) {
        Operand weights{Matrix(out_group, k_count), {}};
        if (!w.err.empty()) weights.err.resize(out_group, k_count);
        for (Eigen::Index k = 0; k < k_count; ++k) {
            const auto [tap, c] = order[static_cast<std::size_t>(k)];
            for (std::int64_t o = 0; o < out_group; ++o) {
                const std::int64_t at = ((g * out_group + o) * in_group + c) * s.window.taps + tap;
                weights.value(o, k) = w.at(at);
                if (!w.err.empty()) weights.err(o, k) = w.error(at);
            }
        }
        // The window of each position is laid out when it is needed: whole, a large layer's would not fit in memory.
        const auto fill = [&](const auto& elements) {
            return [&, n, g](Eigen::Index first, Eigen::Index count, double* out) {
                for (Eigen::Index k = 0; k < k_count; ++k, out += kPanel) {
                    const auto [tap, c] = order[static_cast<std::size_t>(k)];
                    const std::int64_t plane = (n * s.channels + g * in_group + c) * s.window.in_count;
                    const std::int64_t* offset = offsets.data() + tap * positions + first;
                    for (Eigen::Index j = 0; j < count; ++j)
                        if (offset[j] >= 0) out[j] = static_cast<double>(elements[static_cast<std::size_t>(plane + offset[j])]);
                }
            };
        };
        Columns columns{k_count, positions, x.floating() ? Columns::Fill(fill(x.f)) : Columns::Fill(fill(x.n)), {}};
        if (!x.err.empty()) columns.err = fill(x.err);
        Product product = multiply(weights, columns, numerics, true);
        const auto part = [&](const std::vector<double>& all) {
            return all.empty() ? all : std::vector<double>(all.begin() + g * out_group, all.begin() + (g + 1) * out_group);
        };
        add_bias(product, part(bias), part(bias_err), true, numerics);
        const std::int64_t to = (n * s.filters + g * out_group) * positions;
        std::copy_n(product.value.data(), product.value.size(), y.f.begin() + to);
        if (numerics.bounds()) std::copy_n(product.err.data(), product.err.size(), y.err.begin() + to);
    };
    const double work = static_cast<double>(out_group) * static_cast<double>(k_count) * static_cast<double>(positions);
    const std::int64_t products = s.batch * s.groups;
    // Many small products side by side, or each of few large ones on all cores.
    if (products >= 8)
        parallel_for(products, work * static_cast<double>(products), [&](std::int64_t i) { one(i / s.groups, i % s.groups); });
    else
        for (std::int64_t i = 0; i < products; ++i) one(i / s.groups, i % s.groups);
    return y;
}

Outputs conv(const Node& node) {
    const Value &x = node.real(0), &w = node.real(1);
    const ConvolutionShape s = check_convolution(node, x, w);
    std::vector<double> bias, bias_err;
    if (node.has(2)) {
        if (node.real(2).count() != s.filters) node.fail(fmt::format("bias of {} elements for {} filters", node.in(2).count(), s.filters));
        bias = node.in(2).f;
        bias_err = node.in(2).err;
    }
    Value y = convolve(x, w, bias, bias_err, s, node.numerics());
    y.dtype = x.dtype;
    return {std::move(y)};
}

}  // namespace assay::golden::ops
