#include "golden/reference/window.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace assay::golden {
namespace {

/// Calls body(position, coordinates) over a row-major box.
template <class Body>
void for_each_index(const std::vector<std::int64_t>& box, Body body) {
    std::int64_t count = 1;
    for (const std::int64_t dim : box) count *= dim;
    std::vector<std::int64_t> at(box.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        body(i, at);
        for (std::size_t d = box.size(); d-- > 0 && ++at[d] == box[d];) at[d] = 0;
    }
}

}  // namespace

std::vector<std::int64_t> window_list(const Node& node, std::string_view name, std::size_t size, std::int64_t otherwise, std::int64_t least) {
    std::vector<std::int64_t> out = node.integers(name).value_or(std::vector<std::int64_t>(size, otherwise));
    if (out.size() != size) node.fail(fmt::format("{} has {} entries, the input needs {}", name, out.size(), size));
    for (const std::int64_t v : out)
        if (v < least || v > std::int64_t{1} << 31) node.fail(fmt::format("{} holds {}, must be at least {}", name, v, least));
    return out;
}

std::vector<std::int64_t> Window::offsets() const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(taps * positions));
    for_each_index(kernel, [&](std::int64_t tap, const std::vector<std::int64_t>& k) {
        for_each_index(out, [&](std::int64_t position, const std::vector<std::int64_t>& o) {
            std::int64_t offset = 0;
            for (std::size_t d = 0; d < in.size() && offset >= 0; ++d) {
                const std::int64_t x = o[d] * strides[d] - pads_begin[d] + k[d] * dilations[d];
                offset = x < 0 || x >= in[d] ? -1 : offset * in[d] + x;
            }
            result[static_cast<std::size_t>(tap * positions + position)] = offset;
        });
    });
    return result;
}

std::vector<std::int64_t> Window::padded_counts() const {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(positions), 1);
    for_each_index(out, [&](std::int64_t position, const std::vector<std::int64_t>& o) {
        for (std::size_t d = 0; d < in.size(); ++d) {
            std::int64_t inside = 0;
            for (std::int64_t k = 0; k < kernel[d]; ++k)
                inside += o[d] * strides[d] + k * dilations[d] < in[d] + pads_begin[d] + pads_end[d];
            counts[static_cast<std::size_t>(position)] *= inside;
        }
    });
    return counts;
}

Window read_window(const Node& node, const Shape& spatial, const Shape& kernel, bool is_pool) {
    const std::size_t rank = spatial.size();
    Window w;
    w.in = spatial;
    w.kernel = kernel;
    if (const auto shape = node.integers("kernel_shape")) {
        if (!kernel.empty() && *shape != kernel)
            node.fail(fmt::format("kernel_shape {} does not match the weights' {}", to_string(*shape), to_string(kernel)));
        w.kernel = window_list(node, "kernel_shape", rank, 1, 1);
    }
    if (w.kernel.size() != rank) node.fail(fmt::format("kernel of {} dimensions for an input of {}", w.kernel.size(), rank));
    w.strides = window_list(node, "strides", rank, 1, 1);
    w.dilations = window_list(node, "dilations", rank, 1, 1);
    std::vector<std::int64_t> pads = window_list(node, "pads", 2 * rank, 0, 0);
    const std::string auto_pad = node.text("auto_pad", "NOTSET");
    const bool same_upper = auto_pad == "SAME_UPPER", same_lower = auto_pad == "SAME_LOWER";
    if (!same_upper && !same_lower && auto_pad != "NOTSET" && auto_pad != "VALID")
        node.fail(fmt::format("auto_pad=\"{}\" is not known; use NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto_pad));
    if (auto_pad == "VALID") std::fill(pads.begin(), pads.end(), 0);
    const bool ceil_mode = is_pool && node.integer("ceil_mode", 0) != 0;
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t extent = (w.kernel[d] - 1) * w.dilations[d] + 1;
        std::int64_t begin = pads[d], end = pads[rank + d], size = 0;
        if (same_upper || same_lower) {
            size = (w.in[d] + w.strides[d] - 1) / w.strides[d];
            const std::int64_t total = std::max<std::int64_t>(0, (size - 1) * w.strides[d] + extent - w.in[d]);
            begin = same_upper ? total / 2 : total - total / 2;
            end = total - begin;
        } else {
            const std::int64_t room = w.in[d] + begin + end - extent;
            if (room < 0)
                node.fail(fmt::format("window of {} does not fit the padded input of {} (dimension {})", extent, w.in[d] + begin + end, d));
            size = (ceil_mode ? room + w.strides[d] - 1 : room) / w.strides[d] + 1;
            // A window that would start in the padding at the end is dropped (AveragePool-19, and what runtimes do at earlier versions).
            if (ceil_mode && (size - 1) * w.strides[d] >= w.in[d] + begin) --size;
        }
        w.pads_begin.push_back(begin);
        w.pads_end.push_back(end);
        w.out.push_back(size);
        w.in_count *= w.in[d];
        w.taps *= w.kernel[d];
        w.positions *= size;
    }
    return w;
}

}  // namespace assay::golden
