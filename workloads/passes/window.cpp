#include "workloads/passes/window.hpp"

#include <fmt/core.h>

namespace assay::workloads {

Window window_of(const Graph& graph, NodeId id, const std::vector<std::int64_t>& spatial, const std::vector<std::int64_t>& kernel) {
    const Node& node = graph.node(id);
    const std::size_t rank = spatial.size();
    if (rank < 1 || rank > 2)
        throw NodeError(id, fmt::format("{} spatial dimensions are not supported, allowed: 1 or 2; split the model", rank));
    if (kernel.size() != rank)
        throw NodeError(id, fmt::format("kernel_shape has {} entries for {} spatial dimensions; repair the model", kernel.size(), rank));
    const auto list = [&](const char* key, std::int64_t otherwise, std::size_t count) {
        auto values = node.integers(key, std::vector<std::int64_t>(count, otherwise));
        if (values.size() != count)
            throw NodeError(id, fmt::format("{} has {} entries, expected {}; repair the model", key, values.size(), count));
        return values;
    };
    const auto strides = list("strides", 1, rank), dilations = list("dilations", 1, rank), pads = list("pads", 0, 2 * rank);
    const std::string auto_pad = node.text("auto_pad", "NOTSET");
    const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
    Window w;
    for (std::size_t i = 0; i < rank; ++i) {
        const std::size_t d = i + 2 - rank;
        w.in[d] = spatial[i];
        w.kernel[d] = kernel[i];
        w.stride[d] = strides[i];
        w.dilation[d] = dilations[i];
        if (kernel[i] < 1 || strides[i] < 1 || dilations[i] < 1)
            throw NodeError(id, fmt::format("kernel {}, stride {} and dilation {} must be at least 1; repair the model", kernel[i],
                                            strides[i], dilations[i]));
        const std::int64_t reach = w.reach(static_cast<int>(d));
        if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
            w.out[d] = (spatial[i] + strides[i] - 1) / strides[i];
            const std::int64_t total = std::max<std::int64_t>(0, (w.out[d] - 1) * strides[i] + reach - spatial[i]);
            w.pad_begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
            w.pad_end[d] = total - w.pad_begin[d];
            continue;
        }
        if (auto_pad == "NOTSET") {
            w.pad_begin[d] = pads[i];
            w.pad_end[d] = pads[rank + i];
        } else if (auto_pad != "VALID") {
            throw NodeError(id, fmt::format("auto_pad=\"{}\" is unknown; use NOTSET, SAME_UPPER, SAME_LOWER or VALID", auto_pad));
        }
        if (w.pad_begin[d] < 0 || w.pad_end[d] < 0) throw NodeError(id, "negative pads are not supported; slice the input instead");
        const std::int64_t room = spatial[i] + w.pad_begin[d] + w.pad_end[d] - reach;
        if (room < 0)
            throw NodeError(id, fmt::format("a window of {} does not fit the padded input of {}; repair the model", reach, room + reach));
        w.out[d] = room / strides[i] + 1;
        if (ceil_mode && room % strides[i] != 0 && w.out[d] * strides[i] < spatial[i] + w.pad_begin[d]) {
            // One window more, unless it would start in the padding past the end.
            w.pad_end[d] = w.out[d] * strides[i] + reach - spatial[i] - w.pad_begin[d];
            ++w.out[d];
            w.ceil_extended = true;
        }
    }
    return w;
}

}  // namespace assay::workloads
