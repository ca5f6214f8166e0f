#include "simkernel/element_map.hpp"

#include <algorithm>
#include <numeric>

namespace assay::simkernel {
namespace {

__extension__ typedef __int128 Wide;

/// True if start + sum(i[d] * stride[d]) stays in [0, last] for all i[d] < count[d].
bool within(std::int64_t start, const std::array<std::int64_t, 4>& count, const std::array<std::int64_t, 4>& stride, Wide last) {
    Wide low = start, high = start;
    for (std::size_t d = 0; d < 4; ++d) {
        if (count[d] < 1) return false;
        const Wide reach = static_cast<Wide>(count[d] - 1) * stride[d];
        if (reach > last || -reach > last) return false;
        (reach < 0 ? low : high) += reach;
    }
    return low >= 0 && high <= last;
}

}  // namespace

ElementMap ElementMap::dense(std::int64_t elements, std::int64_t bytes) {
    ElementMap map(elements);
    if (elements > 0) map.add({0, 0, {elements, 1, 1, 1}, {1, 0, 0, 0}, {bytes, 0, 0, 0}});
    return map;
}

void ElementMap::add(ElementBox box) {
    std::array<std::size_t, 4> order{};
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return box.element_stride[a] > box.element_stride[b]; });
    ElementBox sorted = box;
    for (std::size_t d = 0; d < 4; ++d) {
        sorted.count[d] = box.count[order[d]];
        sorted.element_stride[d] = box.element_stride[order[d]];
        sorted.offset_stride[d] = box.offset_stride[order[d]];
    }
    boxes_.push_back(sorted);
}

std::optional<std::int64_t> ElementMap::offset(std::int64_t element) const {
    for (const ElementBox& box : boxes_) {
        std::int64_t rest = element - box.element, offset = box.offset;
        if (rest < 0) continue;
        for (std::size_t d = 0; d < 4 && rest > 0; ++d) {
            if (box.element_stride[d] <= 0) continue;
            const std::int64_t i = std::min(rest / box.element_stride[d], box.count[d] - 1);
            rest -= i * box.element_stride[d];
            offset += i * box.offset_stride[d];
        }
        if (rest == 0) return offset;
    }
    return std::nullopt;
}

bool ElementMap::fits(std::uint64_t bytes, std::uint64_t element_bytes) const {
    return elements_ >= 0 && std::all_of(boxes_.begin(), boxes_.end(), [&](const ElementBox& box) {
               return std::all_of(box.element_stride.begin(), box.element_stride.end(), [](std::int64_t s) { return s >= 0; }) &&
                      within(box.element, box.count, box.element_stride, static_cast<Wide>(elements_) - 1) && element_bytes <= bytes &&
                      within(box.offset, box.count, box.offset_stride, static_cast<Wide>(bytes - element_bytes));
           });
}

}  // namespace assay::simkernel
