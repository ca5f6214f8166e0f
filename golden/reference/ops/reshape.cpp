// Operators that give the same elements another shape.
#include <algorithm>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

/// Axes from the attribute before version 13, from input 1 since.
std::vector<std::int64_t> read_axes(const Node& node, bool& given) {
    given = true;
    if (node.version() >= 13) {
        if (node.has(1)) return node.integers(1);
    } else if (const auto axes = node.integers("axes")) {
        return *axes;
    }
    given = false;
    return {};
}

}  // namespace

Outputs reshape(const Node& node) {
    const Value& x = node.in(0);
    Shape shape = node.integers(1);
    const bool allow_zero = node.integer("allowzero", 0) != 0;
    std::int64_t known = 1, free = -1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 0 && !allow_zero) {
            if (d >= x.shape.size())
                node.fail(fmt::format("shape entry {} is 0 (copy), the input {} has no such dimension", d, to_string(x.shape)));
            shape[d] = x.shape[d];
        }
        if (shape[d] == -1) {
            if (free >= 0) node.fail("shape has more than one -1");
            free = static_cast<std::int64_t>(d);
        } else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known)) {
            node.fail(fmt::format("shape entry {} is {}", d, shape[d]));
        }
    }
    if (free >= 0) {
        if (known == 0 || x.count() % known) node.fail(fmt::format("shape {} does not divide {} elements", to_string(shape), x.count()));
        shape[static_cast<std::size_t>(free)] = x.count() / known;
        known = x.count();
    }
    if (known != x.count())
        node.fail(fmt::format("input {} has {} elements, shape {} needs {}", to_string(x.shape), x.count(), to_string(shape), known));
    return {x.reshaped(shape)};
}

Outputs flatten(const Node& node) {
    const Value& x = node.in(0);
    std::int64_t axis = node.integer("axis", 1);
    if (axis < -x.rank() || axis > x.rank()) node.fail(fmt::format("axis {} is outside [{}, {}]", axis, -x.rank(), x.rank()));
    if (axis < 0) axis += x.rank();
    const std::int64_t rows = element_count(Shape(x.shape.begin(), x.shape.begin() + axis));
    const std::int64_t cols = element_count(Shape(x.shape.begin() + axis, x.shape.end()));
    return {x.reshaped({rows, cols})};
}

Outputs squeeze(const Node& node) {
    const Value& x = node.in(0);
    bool given = false;
    const std::vector<std::int64_t> axes = read_axes(node, given);
    std::vector<bool> drop(x.shape.size(), false);
    for (std::size_t d = 0; d < drop.size() && !given; ++d) drop[d] = x.shape[d] == 1;
    for (const std::int64_t a : axes) {
        const auto d = static_cast<std::size_t>(node.axis(a, x.rank()));
        if (x.shape[d] != 1) node.fail(fmt::format("axis {} of {} is not 1", a, to_string(x.shape)));
        drop[d] = true;
    }
    Shape shape;
    for (std::size_t d = 0; d < drop.size(); ++d)
        if (!drop[d]) shape.push_back(x.shape[d]);
    return {x.reshaped(shape)};
}

Outputs unsqueeze(const Node& node) {
    const Value& x = node.in(0);
    bool given = false;
    const std::vector<std::int64_t> axes = read_axes(node, given);
    if (!given) node.fail("axes are missing");
    const std::int64_t rank = x.rank() + static_cast<std::int64_t>(axes.size());
    std::vector<bool> added(static_cast<std::size_t>(rank), false);
    for (const std::int64_t a : axes) {
        const auto d = static_cast<std::size_t>(node.axis(a, rank));
        if (added[d]) node.fail(fmt::format("axis {} is given twice", a));
        added[d] = true;
    }
    Shape shape;
    std::size_t next = 0;
    for (const bool one : added) shape.push_back(one ? 1 : x.shape[next++]);
    return {x.reshaped(shape)};
}

}  // namespace assay::golden::ops
