#pragma once
// The index space of a `vector` descriptor and how its partial results lie: what the definition and the fast path must agree on before any
// arithmetic.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "aurum_contract.hpp"

namespace assay::simkernel {

using Extents = std::array<std::size_t, 5>;        ///< dimension 0 first
using Strides = std::array<std::ptrdiff_t, 5>;     ///< bytes

constexpr std::size_t bytes_of(Dtype type) {
    switch (type) {
        case Dtype::i8:
        case Dtype::u8:
        case Dtype::f8e4m3:
        case Dtype::f8e5m2: return 1;
        case Dtype::bf16:
        case Dtype::f16: return 2;
        case Dtype::i32:
        case Dtype::f32: return 4;
    }
    return 1;
}

constexpr std::size_t product(const Extents& e) { return e[0] * e[1] * e[2] * e[3] * e[4]; }

struct VectorShape {
    Extents space{};      ///< every element that the micro-operations before the reduction see
    Extents results{};    ///< the space with reduced dimensions made 1: one output element each (the whole space without a reduction)
    std::size_t group = 1;     ///< elements, consecutive in index order, that reduce together; count[0] results of them without reduce_lanes
    std::size_t groups = 1;    ///< outer indices
    std::size_t partials = 1;  ///< words that one group carries between descriptors
    std::size_t lanes = 1;     ///< partial of dimension-0 element i is i mod lanes

    VectorShape(const VectorFields& f, int chip_lanes) {
        for (std::size_t d = 0; d < 5; ++d) space[d] = results[d] = f.count[d];
        if (static_cast<Reduce>(f.reduce) == Reduce::none) return;
        for (std::size_t d = 1; d <= std::min<std::size_t>(f.reduce_dims, 4); ++d) results[d] = 1;
        if (f.reduce_lanes != 0) results[0] = 1;
        lanes = f.reduce_lanes != 0 ? static_cast<std::size_t>(chip_lanes) : space[0];
        partials = std::min(lanes, space[0]);
        groups = product(results) / results[0];
        group = product(space) / groups;
    }
};

inline Strides strides_of(const std::array<std::int32_t, 5>& s) { return {s[0], s[1], s[2], s[3], s[4]}; }

/// Byte offset of the index-order element `flat` of `extents`.
inline std::ptrdiff_t offset_of(const Extents& extents, const Strides& strides, std::size_t flat) {
    std::ptrdiff_t offset = 0;
    for (std::size_t d = 0; d < 5; ++d) {
        offset += static_cast<std::ptrdiff_t>(flat % extents[d]) * strides[d];
        flat /= extents[d];
    }
    return offset;
}

/// Dimension d of the output moves only where it is not reduced.
inline Strides output_strides(const VectorFields& f, const VectorShape& shape) {
    Strides s = strides_of(f.out_stride);
    for (std::size_t d = 0; d < 5; ++d)
        if (shape.results[d] == 1) s[d] = 0;
    return s;
}

}  // namespace assay::simkernel
