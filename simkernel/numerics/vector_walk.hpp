#pragma once
// Moves runs of elements between a strided memory layout and a contiguous buffer, in index order.
#include <cstddef>

#include "simkernel/numerics/vector_shape.hpp"

namespace assay::simkernel {

/// One strided array seen in index order. Dimensions that follow each other in memory are joined at construction, so that a dense tensor of any
/// rank is one run.
class StridedWalk {
public:
    StridedWalk() = default;
    StridedWalk(const Extents& extents, const Strides& strides, std::size_t element_bytes);

    /// True, and the byte offset of the first, when elements [flat, flat + count) lie densely in memory.
    bool dense(std::size_t flat, std::size_t count, std::ptrdiff_t& offset) const;
    /// Copies elements [flat, flat + count) of `base` to `to`, or from `from` to `base`. Contiguous side: element_bytes each.
    void gather(const std::byte* base, std::size_t flat, std::size_t count, std::byte* to) const;
    void scatter(std::byte* base, std::size_t flat, std::size_t count, const std::byte* from) const;

private:
    template <class Copy>
    void for_each_run(std::size_t flat, std::size_t count, Copy copy) const;

    Extents extents_{1, 1, 1, 1, 1};
    Strides strides_{};
    std::size_t rank_ = 1;
    std::size_t element_bytes_ = 1;
};

}  // namespace assay::simkernel
