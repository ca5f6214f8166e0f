#pragma once
// The parameters of Resize and Upsample, all versions, and where each output index falls in the input.
#include <optional>

#include "workloads/graph/graph.hpp"

namespace assay::workloads {

struct ResizeAxis {
    std::int64_t in = 1, out = 1;
    double scale = 1;
    double width = 1;  ///< of the output before rounding: scale * in; align_corners and crops place the last index by it
    double roi_start = 0, roi_end = 1;
    bool resized() const { return in != out || scale != 1; }
};

struct Resize {
    enum class Mode { nearest, linear, cubic } mode = Mode::nearest;
    std::string transform;     ///< coordinate_transformation_mode
    std::string nearest_mode;  ///< of Resize-11 and later; "floor" before
    double cubic_a = -0.75;
    bool exclude_outside = false, antialias = false;
    double extrapolation = 0;
    std::vector<ResizeAxis> axes;  ///< one a dimension
    /// Coordinate in the input of output index `x`. 0-based, unclamped.
    double coordinate(std::size_t axis, std::int64_t x) const;
    /// tf_crop_and_resize: coordinates outside the input read extrapolation_value.
    bool outside(std::size_t axis, double x) const;
};

/// nullopt when scales, sizes or roi are computed at run time. Throws MalformedNode, or NodeError for an unknown mode.
std::optional<Resize> resize_of(const Graph& graph, NodeId id);

/// Nearest: the input index of each output index along the axis (kFill outside a crop).
std::vector<std::int64_t> nearest_indices(const Resize& resize, std::size_t axis);

}  // namespace assay::workloads
