#include "simkernel/numerics/vector_walk.hpp"

#include <cstring>

namespace assay::simkernel {
namespace {

/// Strided copies of one element size; a known size lets the compiler use plain moves.
template <std::size_t kBytes>
void copy_run(std::byte* to, std::ptrdiff_t to_stride, const std::byte* from, std::ptrdiff_t from_stride, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, to += to_stride, from += from_stride) std::memcpy(to, from, kBytes);
}
void copy_elements(std::size_t bytes, std::byte* to, std::ptrdiff_t to_stride, const std::byte* from, std::ptrdiff_t from_stride, std::size_t count) {
    const auto size = static_cast<std::ptrdiff_t>(bytes);
    if (to_stride == size && from_stride == size) {
        std::memcpy(to, from, bytes * count);
        return;
    }
    switch (bytes) {
        case 1: return copy_run<1>(to, to_stride, from, from_stride, count);
        case 2: return copy_run<2>(to, to_stride, from, from_stride, count);
        default: return copy_run<4>(to, to_stride, from, from_stride, count);
    }
}

}  // namespace

StridedWalk::StridedWalk(const Extents& extents, const Strides& strides, std::size_t element_bytes) : element_bytes_(element_bytes) {
    rank_ = 0;
    for (std::size_t d = 0; d < 5; ++d) {
        if (extents[d] == 1) continue;
        if (rank_ > 0 && strides[d] == strides_[rank_ - 1] * static_cast<std::ptrdiff_t>(extents_[rank_ - 1])) {
            extents_[rank_ - 1] *= extents[d];
        } else {
            extents_[rank_] = extents[d];
            strides_[rank_++] = strides[d];
        }
    }
    rank_ = std::max<std::size_t>(rank_, 1);
}

bool StridedWalk::dense(std::size_t flat, std::size_t count, std::ptrdiff_t& offset) const {
    const std::size_t i0 = flat % extents_[0];
    if (strides_[0] != static_cast<std::ptrdiff_t>(element_bytes_) || i0 + count > extents_[0]) return false;
    offset = offset_of(extents_, strides_, flat);
    return true;
}

template <class Copy>
void StridedWalk::for_each_run(std::size_t flat, std::size_t count, Copy copy) const {
    std::array<std::size_t, 5> index{};
    std::ptrdiff_t offset = 0;
    for (std::size_t d = 0; d < rank_; ++d) {
        index[d] = flat % extents_[d];
        flat /= extents_[d];
        offset += static_cast<std::ptrdiff_t>(index[d]) * strides_[d];
    }
    while (count > 0) {
        const std::size_t run = std::min(count, extents_[0] - index[0]);
        copy(offset, strides_[0], run);
        count -= run;
        if (count == 0) return;
        offset -= static_cast<std::ptrdiff_t>(index[0]) * strides_[0];  // back to the row's start, then to the next row
        index[0] = 0;
        for (std::size_t d = 1; d < rank_; ++d) {
            offset += strides_[d];
            if (++index[d] < extents_[d]) break;
            offset -= static_cast<std::ptrdiff_t>(extents_[d]) * strides_[d];
            index[d] = 0;
        }
    }
}

void StridedWalk::gather(const std::byte* base, std::size_t flat, std::size_t count, std::byte* to) const {
    for_each_run(flat, count, [&](std::ptrdiff_t offset, std::ptrdiff_t stride, std::size_t run) {
        copy_elements(element_bytes_, to, static_cast<std::ptrdiff_t>(element_bytes_), base + offset, stride, run);
        to += run * element_bytes_;
    });
}

void StridedWalk::scatter(std::byte* base, std::size_t flat, std::size_t count, const std::byte* from) const {
    for_each_run(flat, count, [&](std::ptrdiff_t offset, std::ptrdiff_t stride, std::size_t run) {
        copy_elements(element_bytes_, base + offset, stride, from, static_cast<std::ptrdiff_t>(element_bytes_), run);
        from += run * element_bytes_;
    });
}

}  // namespace assay::simkernel
