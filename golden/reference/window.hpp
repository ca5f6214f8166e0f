#pragma once
// Geometry of a sliding window (Conv, pooling): where each tap of each output position falls in the input.
#include <vector>

#include "golden/reference/node.hpp"

namespace assay::golden {

struct Window {
    std::vector<std::int64_t> in, kernel, strides, dilations, pads_begin, pads_end, out;  ///< one entry a spatial dimension
    std::int64_t in_count = 1, taps = 1, positions = 1;                                   ///< products of in, kernel, out

    /// Element of the input plane under `tap` at each output position, -1 in the padding: result[tap * positions + position].
    std::vector<std::int64_t> offsets() const;
    /// Positions of the padded input (without what ceil_mode adds at the end) that each output window covers: divisor of count_include_pad.
    std::vector<std::int64_t> padded_counts() const;
};

/// Attribute `name` of `size` entries, each at least `least` and at most 2^31; all `otherwise` when it is absent. Fails on any other.
std::vector<std::int64_t> window_list(const Node& node, std::string_view name, std::size_t size, std::int64_t otherwise, std::int64_t least);

/// Reads kernel_shape, strides, dilations, pads, auto_pad and, for pools, ceil_mode. `spatial` is the input's shape after N and C;
/// `kernel` the weights' spatial shape, or empty to take kernel_shape alone. Fails on geometry that leaves no output.
Window read_window(const Node& node, const Shape& spatial, const Shape& kernel, bool is_pool);

}  // namespace assay::golden
