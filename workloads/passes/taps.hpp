#pragma once
// Interpolation weights of Resize and Upsample along one axis.
#include <vector>

#include "workloads/passes/resize.hpp"

namespace assay::workloads {

/// out[i] = sum over k of weight[k][i] * in[index[k][i]]: two neighbours (linear) or four (cubic), those past the border moved onto it.
struct Taps {
    std::vector<std::vector<std::int64_t>> index;
    std::vector<std::vector<double>> weight;
    bool identity = true;  ///< out[i] = in[i]
};

/// Resize-11…19: linear by distance; cubic after Keys with cubic_coeff_a; exclude_outside drops neighbours past the border and scales the
/// others to a sum of 1. Throws NodeError for antialias when an axis shrinks, and for a crop that reaches outside the input.
Taps taps_of(NodeId id, const Resize& resize, std::size_t axis);

}  // namespace assay::workloads
