#pragma once
// Where the device keeps each element of a tensor that was rearranged for it, in few words: boxes of elements, each with one stride a dimension.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace assay::simkernel {

/// Elements element + sum(i[d] * element_stride[d]), i[d] < count[d], at bytes offset + sum(i[d] * offset_stride[d]).
struct ElementBox {
    std::int64_t element = 0, offset = 0;
    std::array<std::int64_t, 4> count{1, 1, 1, 1}, element_stride{}, offset_stride{};
};

class ElementMap {
public:
    ElementMap() = default;
    explicit ElementMap(std::int64_t elements) : elements_(elements) {}
    /// Elements 0, 1, 2, … every `bytes` bytes from the first.
    static ElementMap dense(std::int64_t elements, std::int64_t bytes);

    /// The box's elements must be a slice of a row-major tensor, permuted or not. Boxes do not share elements.
    void add(ElementBox box);

    bool empty() const { return elements_ == 0; }
    std::int64_t elements() const { return elements_; }
    const std::vector<ElementBox>& boxes() const { return boxes_; }
    /// Byte offset of an element; none when the device does not hold it.
    std::optional<std::int64_t> offset(std::int64_t element) const;
    /// True if every box lies in [0, elements) and, with `element_bytes` an element, in [0, bytes).
    bool fits(std::uint64_t bytes, std::uint64_t element_bytes) const;

private:
    std::int64_t elements_ = 0;
    std::vector<ElementBox> boxes_;  ///< dimensions by descending element stride
};

}  // namespace assay::simkernel
