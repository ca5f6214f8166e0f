#pragma once
// The sliding window of Conv and pooling, normalised to two spatial dimensions (a 1-D window gets a leading dimension of extent 1).
#include <array>

#include "workloads/graph/graph.hpp"

namespace assay::workloads {

struct Window {
    std::array<std::int64_t, 2> in{1, 1}, kernel{1, 1}, stride{1, 1}, dilation{1, 1}, pad_begin{0, 0}, pad_end{0, 0}, out{1, 1};
    bool ceil_extended = false;  ///< ceil_mode made pad_end larger than the attribute says

    std::int64_t reach(int d) const { return (kernel[d] - 1) * dilation[d] + 1; }  ///< input extent that one window spans
};

/// From the attributes strides, dilations, pads, auto_pad and ceil_mode (Conv-11, MaxPool-12, AveragePool-19). `spatial` are the input's
/// spatial extents (one or two), `kernel` the window's. Throws NodeError.
Window window_of(const Graph& graph, NodeId id, const std::vector<std::int64_t>& spatial, const std::vector<std::int64_t>& kernel);

}  // namespace assay::workloads
