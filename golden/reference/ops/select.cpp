// Operators that choose elements by the values of another tensor: indices, conditions, labels.
#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
Outputs gather_elements(const Node& node) {
    const Value &x = node.in(0), &indices = node.in(1);
    const std::vector<std::int64_t> positions = node.integers(1);
    const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), x.rank()));
    if (indices.rank() != x.rank()) node.fail(fmt::format("indices of {} into {}", to_string(indices.shape), to_string(x.shape)));
    for (std::size_t d = 0; d < axis + 1 || d < x.shape.size(); ++d)
        if (d != axis && indices.shape[d] > x.shape[d])
            node.fail(fmt::format("indices of {} into {}", to_string(indices.shape), to_string(x.shape)));
    const auto strides = strides_of(x.shape);
    std::size_t next = 0;
    Value y = x.gather(index_of(indices.shape,
                                [&](const std::vector<std::int64_t>& at) {
                                    std::int64_t from = checked_index(node, positions[next++], x.shape[axis]) * strides[axis];
                                    for (std::size_t d = 0; d < at.size(); ++d) from += d == axis ? 0 : at[d] * strides[d];
                                    return from;
                                }),
                       indices.shape);
    if (uncertain(indices)) unbounded(y);
    return {std::move(y)};
}

Outputs gather_nd(const Node& node) {
    const Value &x = node.in(0), &indices = node.in(1);
    const std::vector<std::int64_t> positions = node.integers(1);
    const std::int64_t batch = node.version() >= 12 ? node.integer("batch_dims", 0) : 0;
    const std::int64_t depth = indices.rank() ? indices.shape.back() : 0;
    if (batch < 0 || indices.rank() <= batch || depth < 1 || batch + depth > x.rank())
        node.fail(fmt::format("indices of {} into {} with batch_dims={}", to_string(indices.shape), to_string(x.shape), batch));
    const auto first = static_cast<std::size_t>(batch), last = static_cast<std::size_t>(batch + depth);
    for (std::size_t d = 0; d < first; ++d)
        if (indices.shape[d] != x.shape[d])
            node.fail(fmt::format("the {} batch dimensions of indices {} and data {} differ", batch, to_string(indices.shape), to_string(x.shape)));
    const std::int64_t batches = extent(x.shape, 0, first), inner = extent(x.shape, last, x.shape.size());
    const std::int64_t rows = batches > 0 ? indices.count() / depth / batches : 0, block = extent(x.shape, first, x.shape.size());
    const auto strides = strides_of(x.shape);
    Shape shape(indices.shape.begin(), indices.shape.end() - 1);
    shape.insert(shape.end(), x.shape.begin() + batch + depth, x.shape.end());
    check_size(shape);
    std::vector<std::int64_t> index;
    index.reserve(static_cast<std::size_t>(element_count(shape)));
    std::size_t next = 0;
    for (std::int64_t b = 0; b < batches; ++b)
        for (std::int64_t r = 0; r < rows; ++r) {
            std::int64_t from = b * block;
            for (std::size_t d = first; d < last; ++d) from += checked_index(node, positions[next++], x.shape[d]) * strides[d];
            for (std::int64_t i = 0; i < inner; ++i) index.push_back(from + i);
        }
    Value y = x.gather(index, shape);
    if (uncertain(indices)) unbounded(y);
    return {std::move(y)};
}

Outputs compress(const Node& node) {
    const Value &x = node.in(0), &condition = node.in(1);
    if (condition.dtype != DType::boolean || condition.rank() != 1)
        node.fail(fmt::format("condition is {} of shape {}, must be bool in one dimension", name_of(condition.dtype), to_string(condition.shape)));
    const bool flat = node.attribute("axis") == nullptr;
    const std::size_t axis = flat ? 0 : static_cast<std::size_t>(node.axis(node.integer("axis", 0), x.rank()));
    const std::int64_t dim = flat ? x.count() : x.shape[axis];
    std::vector<std::int64_t> kept;
    for (std::int64_t i = 0; i < condition.count(); ++i) {
        if (!condition.n[static_cast<std::size_t>(i)]) continue;
        if (i >= dim) node.fail(fmt::format("condition {} is true, the dimension has {} elements", i, dim));
        kept.push_back(i);
    }
    Shape shape = flat ? Shape{0} : x.shape;
    shape[axis] = static_cast<std::int64_t>(kept.size());
    const auto strides = flat ? std::vector<std::int64_t>{1} : strides_of(x.shape);
    return {x.gather(index_of(shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  std::int64_t from = 0;
                                  for (std::size_t d = 0; d < at.size(); ++d)
                                      from += (d == axis ? kept[static_cast<std::size_t>(at[d])] : at[d]) * strides[d];
                                  return from;
                              }),
                     shape)};
}

Outputs non_zero(const Node& node) {
    const Value& x = node.in(0);
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < x.count(); ++i)
        if (x.floating() ? x.at(i) != 0 : x.n[static_cast<std::size_t>(i)] != 0) found.push_back(i);
    // A scalar has no coordinates: zero rows, as NumPy has it.
    Value y(DType::i64, {x.rank(), static_cast<std::int64_t>(found.size())});
    const auto strides = strides_of(x.shape);
    for (std::size_t d = 0; d < strides.size(); ++d)
        for (std::size_t i = 0; i < found.size(); ++i) y.n[d * found.size() + i] = found[i] / strides[d] % x.shape[d];
    return {std::move(y)};
}

Outputs unique(const Node& node) {
    const Value& x = node.in(0);
    const bool flat = node.attribute("axis") == nullptr, sorted = node.integer("sorted", 1) != 0;
    const std::size_t axis = flat ? 0 : static_cast<std::size_t>(node.axis(node.integer("axis", 0), x.rank()));
    const Shape from = flat ? Shape{x.count()} : x.shape;
    const std::int64_t dim = from[axis], inner = extent(from, axis + 1, from.size()), outer = extent(from, 0, axis);
    const auto element = [&](std::int64_t slice, std::int64_t i) { return (i / inner * dim + slice) * inner + i % inner; };
    // Slices in lexical order of their elements; NaN comes last and equals itself, or nothing would be ordered.
    const auto compare = [&](std::int64_t a, std::int64_t b) {
        for (std::int64_t i = 0; i < outer * inner; ++i) {
            const auto p = static_cast<std::size_t>(element(a, i)), q = static_cast<std::size_t>(element(b, i));
            if (!x.floating()) {
                if (x.n[p] != x.n[q]) return x.n[p] < x.n[q] ? -1 : 1;
            } else if (std::isnan(x.f[p]) != std::isnan(x.f[q])) {
                return std::isnan(x.f[q]) ? -1 : 1;
            } else if (x.f[p] < x.f[q] || x.f[p] > x.f[q]) {
                return x.f[p] < x.f[q] ? -1 : 1;
            }
        }
        return 0;
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(dim));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return compare(a, b) < 0; });
    struct Group {
        std::int64_t first = 0;  ///< the slice that is met first
        std::vector<std::int64_t> members;
    };
    std::vector<Group> groups;
    for (const std::int64_t slice : order) {
        if (groups.empty() || compare(groups.back().first, slice) != 0) groups.push_back({slice, {}});
        groups.back().members.push_back(slice);
    }
    if (!sorted) std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.first < b.first; });
    const auto count = static_cast<std::int64_t>(groups.size());
    Value first(DType::i64, {count}), inverse(DType::i64, {dim}), counts(DType::i64, {count});
    for (std::size_t g = 0; g < groups.size(); ++g) {
        first.n[g] = groups[g].first;
        counts.n[g] = static_cast<std::int64_t>(groups[g].members.size());
        for (const std::int64_t member : groups[g].members) inverse.n[static_cast<std::size_t>(member)] = static_cast<std::int64_t>(g);
    }
    Shape shape = from;
    shape[axis] = count;
    const auto strides = strides_of(from);
    Value y = x.gather(index_of(shape,
                                [&](const std::vector<std::int64_t>& at) {
                                    std::int64_t i = 0;
                                    for (std::size_t d = 0; d < at.size(); ++d)
                                        i += (d == axis ? first.n[static_cast<std::size_t>(at[d])] : at[d]) * strides[d];
                                    return i;
                                }),
                       shape);
    return {std::move(y), std::move(first), std::move(inverse), std::move(counts)};
}

Outputs one_hot(const Node& node) {
    const Value &indices = node.in(0), &values = node.in(2);
    const std::int64_t depth = static_cast<std::int64_t>(node.scalar(1));
    if (values.count() != 2) node.fail(fmt::format("values has {} elements, must have two: off, on", values.count()));
    if (depth < 1) node.fail(fmt::format("depth is {}, must be positive", depth));
    const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", -1), indices.rank() + 1));
    Shape shape = indices.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
    const std::int64_t inner = extent(indices.shape, axis, indices.shape.size());
    std::int64_t next = 0;
    Value y = values.gather(index_of(shape,
                                     [&](const std::vector<std::int64_t>& at) {
                                         const std::int64_t here = next++, source = here / (inner * depth) * inner + here % inner;
                                         // Indices outside [-depth, depth) are nowhere "on"; floats are truncated.
                                         const double index = std::trunc(indices.at(source));
                                         const double wanted = index < 0 ? index + static_cast<double>(depth) : index;
                                         return std::int64_t{wanted == static_cast<double>(at[axis])};
                                     }),
                            shape);
    if (uncertain(indices)) unbounded(y);
    return {std::move(y)};
}

Outputs where(const Node& node) {
    const Value &condition = node.in(0), &x = node.in(1), &z = node.in(2);
    if (condition.dtype != DType::boolean || x.dtype != z.dtype)
        node.fail(fmt::format("a condition of {} and branches of {} and {}", name_of(condition.dtype), name_of(x.dtype), name_of(z.dtype)));
    const Shape shape = broadcast(broadcast(condition.shape, x.shape), z.shape);
    const auto ic = broadcast_index(condition.shape, shape), ix = broadcast_index(x.shape, shape), iz = broadcast_index(z.shape, shape);
    Value y(x.dtype, shape);
    const bool errors = !x.err.empty() || !z.err.empty() || !condition.err.empty();
    if (errors) y.err.assign(ic.size(), 0.0);
    for (std::size_t i = 0; i < ic.size(); ++i) {
        const bool first = condition.n[static_cast<std::size_t>(ic[i])] != 0;
        const Value& from = first ? x : z;
        const auto at = static_cast<std::size_t>(first ? ix[i] : iz[i]);
        if (y.floating())
            y.f[i] = from.f[at];
        else
            y.n[i] = from.n[at];
        if (!errors) continue;
        y.err[i] = from.error(static_cast<std::int64_t>(at));
        if (condition.error(ic[i]) > 0)  // either branch is honest
            y.err[i] = std::max(x.error(ix[i]), z.error(iz[i])) + std::fabs(x.at(ix[i]) - z.at(iz[i]));
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
