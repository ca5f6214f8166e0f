#pragma once
// Sliding windows of any rank: Conv, pooling, ConvTranspose, Col2Im.
#include "workloads/host/call.hpp"

namespace assay::workloads::hostops {

struct Windows {
    std::vector<std::int64_t> in, kernel, stride, dilation, begin, end, out;
    std::size_t rank() const { return in.size(); }
    /// Input coordinate that tap `k` of window `o` reads along dimension d; outside [0, in[d]) it is padding.
    std::int64_t source(std::size_t d, std::int64_t o, std::int64_t k) const { return o * stride[d] - begin[d] + k * dilation[d]; }
};

/// From strides, dilations, pads, auto_pad and (pools) ceil_mode: Conv-11, MaxPool-12, AveragePool-19.
Windows windows_of(const Call& call, const Shape& x, std::vector<std::int64_t> kernel);

/// Steps `index` through `shape` in row-major order; false after the last.
bool next_index(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape);

}  // namespace assay::workloads::hostops
