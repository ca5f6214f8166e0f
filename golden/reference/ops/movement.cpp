// Operators that move elements: each builds the index of its source element and lets Value::gather move every plane at once.
#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
Outputs transpose(const Node& node) {
    const Value& x = node.in(0);
    std::vector<std::int64_t> perm(x.shape.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
    if (const auto given = node.integers("perm")) {
        std::vector<std::int64_t> sorted = *given, identity(perm.rbegin(), perm.rend());
        std::sort(sorted.begin(), sorted.end());
        if (sorted != identity) node.fail(fmt::format("perm {} is not a permutation of the {} dimensions", to_string(*given), x.rank()));
        perm = *given;
    }
    const auto strides = strides_of(x.shape);
    Shape shape;
    for (const std::int64_t p : perm) shape.push_back(x.shape[static_cast<std::size_t>(p)]);
    const auto index = index_of(shape, [&](const std::vector<std::int64_t>& at) {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * strides[static_cast<std::size_t>(perm[d])];
        return from;
    });
    return {x.gather(index, shape)};
}

Outputs concat(const Node& node) {
    const Value& first = node.in(0);
    const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 1), first.rank()));
    Shape shape = first.shape;
    shape[axis] = 0;
    bool err = false, unrounded = false, unrounded_err = false;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
        Shape other = node.in(i).shape;
        if (node.in(i).dtype != first.dtype)
            node.fail(fmt::format("input {} is {}, the first is {}", i, name_of(node.in(i).dtype), name_of(first.dtype)));
        if (other.size() != shape.size())
            node.fail(fmt::format("input {} has shape {}, the first {}", i, to_string(other), to_string(first.shape)));
        shape[axis] += other[axis];
        other[axis] = first.shape[axis];
        if (other != first.shape)
            node.fail(fmt::format("input {} has shape {}, the first {}", i, to_string(node.in(i).shape), to_string(first.shape)));
        err |= !node.in(i).err.empty();
        unrounded |= !node.in(i).unrounded.empty();
        unrounded_err |= !node.in(i).unrounded_err.empty();
    }
    Value y(first.dtype, shape);
    const auto count = static_cast<std::size_t>(y.count());
    if (err) y.err.resize(count);
    if (unrounded) y.unrounded.resize(count);
    if (unrounded_err) y.unrounded_err.resize(count);
    const std::int64_t outer = element_count(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
    std::int64_t to = 0;
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::size_t i = 0; i < node.input_count(); ++i) {
            const Value& x = node.in(i);
            const std::int64_t run = x.count() / outer;
            for (std::int64_t j = 0; j < run; ++j, ++to) {
                const auto from = static_cast<std::size_t>(o * run + j), at = static_cast<std::size_t>(to);
                if (y.floating())
                    y.f[at] = x.f[from];
                else
                    y.n[at] = x.n[from];
                if (err) y.err[at] = x.error(static_cast<std::int64_t>(from));
                if (unrounded) y.unrounded[at] = x.unrounded.empty() ? x.at(static_cast<std::int64_t>(from)) : x.unrounded[from];
                if (unrounded_err && !x.unrounded_err.empty()) y.unrounded_err[at] = x.unrounded_err[from];
            }
        }
    return {std::move(y)};
}

Outputs slice(const Node& node) {
    const Value& x = node.in(0);
    std::vector<std::int64_t> starts, ends, axes, steps;
    if (node.version() < 10) {
        starts = node.integers("starts").value_or(std::vector<std::int64_t>{});
        ends = node.integers("ends").value_or(std::vector<std::int64_t>{});
        axes = node.integers("axes").value_or(std::vector<std::int64_t>{});
    } else {
        starts = node.integers(1);
        ends = node.integers(2);
        if (node.has(3)) axes = node.integers(3);
        if (node.has(4)) steps = node.integers(4);
    }
    if (axes.empty()) {
        axes.resize(starts.size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    if (steps.empty()) steps.assign(starts.size(), 1);
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
        node.fail(fmt::format("{} starts, {} ends, {} axes, {} steps: must be as many of each", starts.size(), ends.size(), axes.size(),
                              steps.size()));
    const auto strides = strides_of(x.shape);
    Shape shape = x.shape;
    struct Walk {
        std::int64_t begin = 0, step = 1;
    };
    std::vector<Walk> walks(x.shape.size());
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto d = static_cast<std::size_t>(node.axis(axes[i], x.rank()));
        const std::int64_t dim = x.shape[d];
        if (steps[i] == 0 || steps[i] == std::numeric_limits<std::int64_t>::min())
            node.fail(fmt::format("step {} is not allowed", steps[i]));
        // Negative positions count from the end; both ends are clamped to the dimension (Slice-13).
        const auto position = [&](std::int64_t v, std::int64_t low, std::int64_t high) {
            return std::clamp(v < 0 ? v + dim : v, low, high);
        };
        if (dim == 0) continue;
        const bool forward = steps[i] > 0;
        const std::int64_t first = forward ? position(starts[i], 0, dim) : position(starts[i], 0, dim - 1);
        // -1 - dim and below mean "before the first" when walking backwards.
        const std::int64_t last = forward ? position(ends[i], 0, dim) : position(ends[i], -1, dim - 1);
        const std::int64_t distance = forward ? last - first : first - last;
        const std::int64_t stride = forward ? steps[i] : -steps[i];
        walks[d] = {first, steps[i]};
        shape[d] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    }
    const auto index = index_of(shape, [&](const std::vector<std::int64_t>& at) {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < at.size(); ++d) from += (walks[d].begin + at[d] * walks[d].step) * strides[d];
        return from;
    });
    return {x.gather(index, shape)};
}

Outputs gather(const Node& node) {
    const Value &x = node.in(0), &indices = node.in(1);
    const std::vector<std::int64_t> positions = node.integers(1);
    const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), x.rank()));
    const std::int64_t dim = x.shape[axis];
    for (const std::int64_t p : positions)
        if (p < -dim || p >= dim) node.fail(fmt::format("index {} is outside [{}, {})", p, -dim, dim));
    Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
    shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
    const std::int64_t outer = element_count(Shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis)));
    const std::int64_t inner = element_count(Shape(x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end()));
    check_size(shape);
    std::vector<std::int64_t> index;
    index.reserve(static_cast<std::size_t>(element_count(shape)));
    for (std::int64_t o = 0; o < outer; ++o)
        for (const std::int64_t p : positions)
            for (std::int64_t i = 0; i < inner; ++i) index.push_back((o * dim + (p < 0 ? p + dim : p)) * inner + i);
    Value y = x.gather(index, shape);
    if (uncertain(indices)) unbounded(y);
    return {std::move(y)};
}

Outputs pad(const Node& node) {
    const Value& x = node.in(0);
    const std::string mode = node.text("mode", "constant");
    const bool wrap = mode == "wrap" && node.version() >= 19;
    if (mode != "constant" && mode != "edge" && mode != "reflect" && !wrap)
        node.fail(fmt::format("mode=\"{}\" is not known; use constant, edge, reflect or, since Pad-19, wrap", mode));
    std::vector<std::int64_t> pads, axes(x.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    double fill = 0;
    if (node.version() < 11) {
        pads = node.integers(node.version() < 2 ? "paddings" : "pads").value_or(std::vector<std::int64_t>{});
        fill = node.real("value", 0.0f);
    } else {
        pads = node.integers(1);
        if (node.has(2)) fill = node.scalar(2);
        if (node.version() >= 18 && node.has(3)) axes = node.integers(3);
    }
    if (pads.size() != 2 * axes.size())
        node.fail(fmt::format("{} pads for {} dimensions, needs two a dimension", pads.size(), axes.size()));
    std::vector<std::int64_t> before(x.shape.size(), 0);
    Shape shape = x.shape;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto d = static_cast<std::size_t>(node.axis(axes[i], x.rank()));
        before[d] = pads[i];
        shape[d] += pads[i] + pads[axes.size() + i];
        if (shape[d] < 0) node.fail(fmt::format("pads leave dimension {} with {} elements", d, shape[d]));
        const std::int64_t most = std::max(pads[i], pads[axes.size() + i]);
        if (mode != "constant" && most > 0 && x.shape[d] == 0)
            node.fail(fmt::format("mode=\"{}\" pads dimension {}, which has no elements", mode, d));
    }
    Value limit(x.dtype, shape);  // refuses an absurd size before the index is made
    const auto strides = strides_of(x.shape);
    const auto index = index_of(shape, [&](const std::vector<std::int64_t>& at) {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < at.size(); ++d) {
            std::int64_t p = at[d] - before[d];
            const std::int64_t dim = x.shape[d];
            if (p < 0 || p >= dim) {
                if (mode == "constant") return std::int64_t{-1};
                if (mode == "edge") {
                    p = std::clamp<std::int64_t>(p, 0, dim - 1);
                } else if (wrap) {
                    p = (p % dim + dim) % dim;
                } else {  // reflected at both ends, again and again where the pad is longer than the dimension
                    const std::int64_t period = std::max<std::int64_t>(1, 2 * (dim - 1));
                    p = (p % period + period) % period;
                    if (p >= dim) p = period - p;
                }
            }
            from += p * strides[d];
        }
        return from;
    });
    return {x.gather(index, shape, fill)};
}

}  // namespace assay::golden::ops
