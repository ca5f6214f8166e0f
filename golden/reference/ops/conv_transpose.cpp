// ConvTranspose-1, -11, -22: the gradient of a convolution. Each output sums the inputs that a convolution with these weights would have spread
// over it, so it is the product of the weights with a gather of the input.
#include <algorithm>

#include <fmt/format.h>

#include "golden/emulation/chain.hpp"
#include "golden/reference/matrix.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/window.hpp"

namespace assay::golden::ops {
namespace {

struct Geometry {
    std::vector<std::int64_t> in, kernel, strides, dilations, pads_begin, out;
    std::int64_t in_count = 1, taps = 1, positions = 1;
};

Geometry read_geometry(const Node& node, const Shape& spatial, const Shape& kernel) {
    const std::size_t rank = spatial.size();
    Geometry g;
    g.in = spatial;
    g.kernel = kernel;
    if (const auto given = node.integers("kernel_shape"); given && *given != kernel)
        node.fail(fmt::format("kernel_shape {} does not match the weights' {}", to_string(*given), to_string(kernel)));
    g.strides = window_list(node, "strides", rank, 1, 1);
    g.dilations = window_list(node, "dilations", rank, 1, 1);
    const std::vector<std::int64_t> extra = window_list(node, "output_padding", rank, 0, 0);
    std::vector<std::int64_t> pads = window_list(node, "pads", 2 * rank, 0, 0);
    const std::string auto_pad = node.text("auto_pad", "NOTSET");
    if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER")
        node.fail(fmt::format("auto_pad=\"{}\" is not known; use NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto_pad));
    if (auto_pad == "VALID") std::fill(pads.begin(), pads.end(), 0);
    const auto shape = node.integers("output_shape");
    if (shape && shape->size() != rank) node.fail(fmt::format("output_shape {} for {} spatial dimensions", to_string(*shape), rank));
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t full = g.strides[d] * (g.in[d] - 1) + extra[d] + (g.kernel[d] - 1) * g.dilations[d] + 1;
        std::int64_t out = full - pads[d] - pads[rank + d];
        const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
        if (shape || same) {
            out = shape ? (*shape)[d] : g.in[d] * g.strides[d];
            const std::int64_t total = std::max<std::int64_t>(0, full - out);
            // The specification's own rule: SAME_UPPER puts the odd one at the end, all else at the beginning.
            pads[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        }
        if (out < 1 || out > std::int64_t{1} << 30) node.fail(fmt::format("dimension {} of the output would be {}", d, out));
        g.pads_begin.push_back(pads[d]);
        g.out.push_back(out);
        g.in_count *= g.in[d];
        g.taps *= g.kernel[d];
        g.positions = std::min(g.positions * out, std::int64_t{1} << 31);  // more is refused with the output's shape
    }
    return g;
}

/// Element of the input plane that tap reaches position from; -1 for none.
std::int64_t source(const Geometry& g, std::int64_t tap, std::int64_t position) {
    std::int64_t offset = 0, plane = 1;
    for (std::size_t d = g.in.size(); d-- > 0;) {
        const std::int64_t k = tap % g.kernel[d], o = position % g.out[d];
        tap /= g.kernel[d];
        position /= g.out[d];
        const std::int64_t spread = o + g.pads_begin[d] - k * g.dilations[d];
        if (spread < 0 || spread % g.strides[d] != 0 || spread / g.strides[d] >= g.in[d]) return -1;
        offset += spread / g.strides[d] * plane;
        plane *= g.in[d];
    }
    return offset;
}

}  // namespace

Outputs conv_transpose(const Node& node) {
    const Value &x = node.real(0), &w = node.real(1);
    const std::int64_t groups = node.integer("group", 1);
    if (x.rank() < 3 || w.rank() != x.rank() || groups < 1 || x.shape[1] % groups || w.shape[0] != x.shape[1])
        node.fail(fmt::format("group={}: input {} and weights {} do not fit", groups, to_string(x.shape), to_string(w.shape)));
    const Geometry g = read_geometry(node, Shape(x.shape.begin() + 2, x.shape.end()), Shape(w.shape.begin() + 2, w.shape.end()));
    const std::int64_t in_group = x.shape[1] / groups, out_group = w.shape[1], filters = out_group * groups;
    const Numerics& num = node.numerics();
    std::vector<double> bias, bias_err;
    if (node.has(2)) {
        if (node.real(2).count() != filters) node.fail(fmt::format("bias of {} elements for {} filters", node.in(2).count(), filters));
        bias = node.in(2).f;
        bias_err = node.in(2).err;
    }
    Shape shape{x.shape[0], filters};
    shape.insert(shape.end(), g.out.begin(), g.out.end());
    Value y(x.dtype, shape);
    if (num.bounds()) y.err.resize(y.f.size());
    std::vector<std::int64_t> sources(static_cast<std::size_t>(g.taps * g.positions));
    for (std::int64_t t = 0; t < g.taps; ++t)
        for (std::int64_t p = 0; p < g.positions; ++p) sources[static_cast<std::size_t>(t * g.positions + p)] = source(g, t, p);
    const std::int64_t depth = g.taps * in_group;
    const auto one = [&](std::int64_t n, std::int64_t group) {
        Operand weights{Matrix(out_group, depth), {}};
        if (!w.err.empty()) weights.err.resize(out_group, depth);
        for (std::int64_t k = 0; k < depth; ++k)
            for (std::int64_t o = 0; o < out_group; ++o) {
                const std::int64_t at = ((group * in_group + k % in_group) * out_group + o) * g.taps + k / in_group;
                weights.value(o, k) = w.at(at);
                if (!w.err.empty()) weights.err(o, k) = w.error(at);
            }
        const auto fill = [&](const std::vector<double>& elements) {
            return [&, n, group](Eigen::Index first, Eigen::Index count, double* out) {
                for (std::int64_t k = 0; k < depth; ++k, out += kPanel) {
                    const std::int64_t plane = (n * x.shape[1] + group * in_group + k % in_group) * g.in_count;
                    const std::int64_t* from = sources.data() + k / in_group * g.positions + first;
                    for (Eigen::Index j = 0; j < count; ++j)
                        if (from[j] >= 0) out[j] = elements[static_cast<std::size_t>(plane + from[j])];
                }
            };
        };
        Columns columns{depth, g.positions, fill(x.f), {}};
        if (!x.err.empty()) columns.err = fill(x.err);
        Product product = multiply(weights, columns, num, true);
        const auto part = [&](const std::vector<double>& all) {
            return all.empty() ? all : std::vector<double>(all.begin() + group * out_group, all.begin() + (group + 1) * out_group);
        };
        add_bias(product, part(bias), part(bias_err), true, num);
        const std::int64_t to = (n * filters + group * out_group) * g.positions;
        std::copy_n(product.value.data(), product.value.size(), y.f.begin() + to);
        if (num.bounds()) std::copy_n(product.err.data(), product.err.size(), y.err.begin() + to);
    };
    for (std::int64_t i = 0; i < x.shape[0] * groups; ++i) one(i / groups, i % groups);
    return {std::move(y)};
}

}  // namespace assay::golden::ops
