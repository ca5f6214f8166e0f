#pragma once
// Helpers of the operators that move elements: the index of each output element's source, and what an uncertain index does.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/node.hpp"
#include "golden/reference/value.hpp"

namespace assay::golden::ops {

/// Calls source(coordinates) for each output element in row-major order and collects the answers. Throws Error(bad_input) on a shape too large.
template <class Source>
std::vector<std::int64_t> index_of(const Shape& shape, Source source) {
    check_size(shape);
    std::vector<std::int64_t> index(static_cast<std::size_t>(element_count(shape))), at(shape.size(), 0);
    for (auto& i : index) {
        i = source(at);
        for (std::size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
    }
    return index;
}

/// An index into a dimension; negative ones count from its end. Fails outside [-dim, dim).
inline std::int64_t checked_index(const Node& node, std::int64_t index, std::int64_t dim) {
    if (index < -dim || index >= dim) node.fail(fmt::format("index {} is outside [{}, {})", index, -dim, dim));
    return index < 0 ? index + dim : index;
}

/// Product of the dimensions in [first, last).
inline std::int64_t extent(const Shape& shape, std::size_t first, std::size_t last) {
    return element_count(Shape(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.begin() + static_cast<std::ptrdiff_t>(last)));
}

/// Whether the chip may honestly hold other values here.
inline bool uncertain(const Value& v) {
    return std::any_of(v.err.begin(), v.err.end(), [](double e) { return e > 0; });
}

/// No element of y is bounded: which elements it holds hangs on values that are themselves uncertain.
inline void unbounded(Value& y) { y.err.assign(static_cast<std::size_t>(y.count()), HUGE_VAL); }

/// Forgets what only the output of a quantisation has, before values are combined.
inline void drop_unrounded(Value& y) {
    y.unrounded.clear();
    y.unrounded_err.clear();
}

}  // namespace assay::golden::ops
