#pragma once
// The convolution that Conv, ConvInteger and QLinearConv share within the reference.
#include "golden/reference/node.hpp"
#include "golden/reference/window.hpp"

namespace assay::golden::ops {

struct ConvolutionShape {
    std::int64_t batch = 0, channels = 0, filters = 0, groups = 1;
    Window window;
};

/// Reads the attributes and checks that input (N, C, spatial...) and weights (O, C/group, spatial...) fit.
ConvolutionShape check_convolution(const Node& node, const Value& x, const Value& w);

/// y (N, O, spatial...) = w * x + bias, elements of x and w as real numbers whatever their type; padding counts as 0. `bias` and `bias_err`
/// have one element a filter or none.
Value convolve(const Value& x, const Value& w, const std::vector<double>& bias, const std::vector<double>& bias_err,
               const ConvolutionShape& s, const Numerics& numerics);

}  // namespace assay::golden::ops
