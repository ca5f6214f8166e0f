// ConvTranspose-1/11 with constant weights as a convolution: stride - 1 zeros go between the input's pixels, the weights [C, M/g, k…] are
// turned to [M, C/g, k…] and mirrored, and the convolution pads dilation * (k - 1) - pads. The zeros cost stride^2 the products in two
// dimensions.
#include <algorithm>

#include "workloads/passes/decompose/families.hpp"

namespace assay::workloads {

void take_apart_conv_transpose(Rewriter& r) {
    const Node& n = r.original;
    const Shape x = r.in(0).shape;
    const Shape w = r.in(1).shape;
    const Shape y = r.graph.value(n.outputs[0]).shape;
    if (x.size() < 3 || w.size() != x.size() || x[1] != w[0]) throw MalformedNode(r.id, "the weight does not fit the input; repair the model");
    if (r.in(0).dtype != DType::f32 || x.size() > 4 || y.size() != x.size()) throw NotTakenApart{};
    const std::size_t spatial = x.size() - 2;
    const std::vector<double> weights = r.constant_input(1);
    const std::int64_t groups = n.integer("group", 1), per_group = w[0] / std::max<std::int64_t>(groups, 1), outputs = w[1] * groups;
    if (groups < 1 || w[0] % groups != 0 || y[1] != outputs) throw MalformedNode(r.id, "group does not divide the channels; repair the model");
    const auto list = [&](const char* name, std::int64_t otherwise) {
        std::vector<std::int64_t> v = n.integers(name, std::vector<std::int64_t>(spatial, otherwise));
        if (v.size() != spatial) throw MalformedNode(r.id, std::string(name) + " needs one entry a dimension; repair the model");
        return v;
    };
    const auto stride = list("strides", 1), dilation = list("dilations", 1), more = list("output_padding", 0);
    // Padding at the start: given, or what auto_pad makes of the output's size; the end follows from the size itself.
    std::vector<std::int64_t> begin(spatial, 0);
    const std::string auto_pad = n.text("auto_pad", "NOTSET");
    const auto given = n.integers("pads");
    for (std::size_t d = 0; d < spatial; ++d) {
        const std::int64_t whole = stride[d] * (x[d + 2] - 1) + more[d] + (w[d + 2] - 1) * dilation[d] + 1;
        if (n.has("output_shape") || auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
            const std::int64_t total = std::max<std::int64_t>(whole - y[d + 2], 0);
            begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        } else if (given.size() == 2 * spatial) {
            begin[d] = given[d];
        }
    }
    Shape kernel(w.begin() + 2, w.end()), turned{outputs, per_group};
    turned.insert(turned.end(), kernel.begin(), kernel.end());
    const std::int64_t area = element_count(kernel);
    std::vector<double> mirrored(weights.size());
    for (std::int64_t c = 0; c < w[0]; ++c)
        for (std::int64_t m = 0; m < w[1]; ++m)
            for (std::int64_t k = 0; k < area; ++k) {
                const std::int64_t o = c / per_group * w[1] + m;
                mirrored[static_cast<std::size_t>((o * per_group + c % per_group) * area + area - 1 - k)] =
                    weights[static_cast<std::size_t>((c * w[1] + m) * area + k)];
            }
    // Zeros between the pixels: a dimension of its own for each stride, padded and merged.
    ValueId v = n.inputs[0];
    std::vector<std::int64_t> pads(2 * spatial, 0);
    Shape apart{x[0], x[1]}, stuffed{x[0], x[1]};
    std::vector<std::int64_t> fill_begin{0, 0}, fill_end{0, 0};
    bool stuffs = false;
    for (std::size_t d = 0; d < spatial; ++d) {
        apart.push_back(x[d + 2]);
        fill_begin.push_back(0);
        fill_end.push_back(0);
        if (stride[d] > 1) {
            apart.push_back(1);
            fill_begin.push_back(0);
            fill_end.push_back(stride[d] - 1);
            stuffs = true;
        }
        stuffed.push_back(x[d + 2] * stride[d]);
        const std::int64_t reach = (w[d + 2] - 1) * dilation[d];
        pads[d] = reach - begin[d];
        pads[spatial + d] = y[d + 2] + reach - stuffed[d + 2] - pads[d];  // y = stuffed + pads - reach
    }
    if (stuffs) {
        std::vector<std::int64_t> fill = fill_begin;
        fill.insert(fill.end(), fill_end.begin(), fill_end.end());
        v = r.reshape(v, apart);
        v = r.graph.opset >= 11 ? r.add("Pad", {v, r.integers(fill)}) : r.add("Pad", {v}, {{"pads", fill}});
        v = r.reshape(v, stuffed);
    }
    for (std::size_t d = 0; d < spatial; ++d) {  // a negative pad leaves pixels out
        const std::int64_t from = std::max<std::int64_t>(-pads[d], 0), to = stuffed[d + 2] - std::max<std::int64_t>(-pads[spatial + d], 0);
        if (to <= from) throw NotTakenApart{};
        if (from > 0 || to < stuffed[d + 2]) v = r.slice(v, static_cast<std::int64_t>(d) + 2, from, to);
    }
    for (std::int64_t& p : pads) p = std::max<std::int64_t>(p, 0);
    std::vector<ValueId> inputs{v, r.constant(float_tensor(turned, mirrored))};
    if (r.has(2)) inputs.push_back(n.inputs[2]);
    r.add("Conv", inputs,
          {{"kernel_shape", std::vector<std::int64_t>(kernel)}, {"dilations", dilation}, {"pads", pads}, {"group", groups}}, n.outputs[0]);
}

}  // namespace assay::workloads
