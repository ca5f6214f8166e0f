// Operators that order or select by value: TopK, Unique, NonZero, Compress.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// Strict weak order of elements, NaN above every number.
struct Less {
    const Tensor& x;
    bool operator()(I64 a, I64 b) const {
        if (is_float(x.dtype)) {
            const double p = x.value(a), q = x.value(b);
            if (std::isnan(p) || std::isnan(q)) return !std::isnan(p) && std::isnan(q);
            return p < q;
        }
        if (x.dtype == DType::u64) return static_cast<std::uint64_t>(x.integer(a)) < static_cast<std::uint64_t>(x.integer(b));
        return x.integer(a) < x.integer(b);
    }
};

/// TopK-11: the k largest (or smallest) along an axis, best first; equal elements by index, the lower first.
Results top_k(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size(), axis = c.axis(c.integer("axis", -1), rank);
    const I64 k = c.opset < 10 ? c.integer("k", 0) : c.integer(1), length = x.shape[axis];
    if (k < 0 || k > length) c.fail(fmt::format("k is {} of {} elements; repair the model", k, length));
    const bool largest = c.integer("largest", 1) != 0;
    Shape shape = x.shape;
    shape[axis] = k;
    Tensor values = c.make(x.dtype, shape), indices = c.make(DType::i64, shape);
    const I64 inner = extent(x.shape, axis + 1, rank), outer = extent(x.shape, 0, axis);
    const Less less{x};
    std::vector<I64> order(static_cast<std::size_t>(length));
    for (I64 o = 0; o < outer; ++o)
        for (I64 i = 0; i < inner; ++i) {
            const auto at = [&](I64 e) { return (o * length + e) * inner + i; };
            std::iota(order.begin(), order.end(), I64{0});
            std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](I64 a, I64 b) {
                const I64 p = at(a), q = at(b);
                if (largest ? less(q, p) : less(p, q)) return true;
                if (largest ? less(p, q) : less(q, p)) return false;
                return a < b;
            });
            for (I64 n = 0; n < k; ++n) {
                const I64 to = (o * k + n) * inner + i;
                copy_elements(x, at(order[static_cast<std::size_t>(n)]), values, to, 1);
                indices.as<I64>()[static_cast<std::size_t>(to)] = order[static_cast<std::size_t>(n)];
            }
        }
    Results out = one(std::move(values));
    out.push_back(std::move(indices));
    return out;
}

/// Unique-11: of elements, or of slices along `axis`; outputs Y, indices of first occurrence, inverse indices, counts.
Results unique(const Call& c) {
    const bool flat = c.attribute("axis") == nullptr;
    const Tensor& given = c.in(0);
    const Tensor x = flat ? reshaped(given, {given.count()}) : given;
    const std::size_t rank = x.shape.size(), axis = flat ? 0 : c.axis(c.integer("axis", 0), rank);
    const I64 length = x.shape[axis], inner = extent(x.shape, axis + 1, rank), outer = extent(x.shape, 0, axis);
    const Less less{x};
    /// Order of slices: element by element in row-major order.
    const auto compare = [&](I64 a, I64 b) {
        for (I64 o = 0; o < outer; ++o)
            for (I64 i = 0; i < inner; ++i) {
                const I64 p = (o * length + a) * inner + i, q = (o * length + b) * inner + i;
                if (less(p, q)) return -1;
                if (less(q, p)) return 1;
            }
        return 0;
    };
    std::vector<I64> order(static_cast<std::size_t>(length));
    std::iota(order.begin(), order.end(), I64{0});
    std::stable_sort(order.begin(), order.end(), [&](I64 a, I64 b) { return compare(a, b) < 0; });
    struct Group {
        I64 first, count;
    };
    std::vector<Group> groups;
    std::vector<I64> group_of(static_cast<std::size_t>(length));
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || compare(order[i - 1], order[i]) != 0) groups.push_back({order[i], 0});
        ++groups.back().count;
        group_of[static_cast<std::size_t>(order[i])] = static_cast<I64>(groups.size()) - 1;
    }
    std::vector<I64> place(groups.size());  // sorted group -> position in the result
    std::iota(place.begin(), place.end(), I64{0});
    if (c.integer("sorted", 1) == 0) {
        std::vector<I64> by_first = place;
        std::sort(by_first.begin(), by_first.end(),
                  [&](I64 a, I64 b) { return groups[static_cast<std::size_t>(a)].first < groups[static_cast<std::size_t>(b)].first; });
        for (std::size_t i = 0; i < by_first.size(); ++i) place[static_cast<std::size_t>(by_first[i])] = static_cast<I64>(i);
    }
    const auto n = static_cast<I64>(groups.size());
    Shape shape = x.shape;
    shape[axis] = n;
    Tensor y = c.make(x.dtype, shape), indices = c.make(DType::i64, {n}), inverse = c.make(DType::i64, {length}), counts = c.make(DType::i64, {n});
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const I64 to = place[g];
        indices.as<I64>()[static_cast<std::size_t>(to)] = groups[g].first;
        counts.as<I64>()[static_cast<std::size_t>(to)] = groups[g].count;
        for (I64 o = 0; o < outer; ++o) copy_elements(x, (o * length + groups[g].first) * inner, y, (o * n + to) * inner, inner);
    }
    for (std::size_t i = 0; i < group_of.size(); ++i) inverse.as<I64>()[i] = place[static_cast<std::size_t>(group_of[i])];
    Results out = one(std::move(y));
    out.push_back(std::move(indices));
    out.push_back(std::move(inverse));
    out.push_back(std::move(counts));
    return out;
}

/// NonZero-9: [rank, count], coordinates in row-major order. A scalar counts as one dimension.
Results non_zero(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    std::vector<I64> found;
    for (I64 i = 0, n = x.count(); i < n; ++i)
        if (is_float(x.dtype) ? x.value(i) != 0 : x.integer(i) != 0) found.push_back(i);
    Tensor out = c.make(DType::i64, {static_cast<I64>(rank), static_cast<I64>(found.size())});
    const auto strides = strides_of(x.shape);
    for (std::size_t d = 0; d < rank; ++d)
        for (std::size_t k = 0; k < found.size(); ++k) out.as<I64>()[d * found.size() + k] = found[k] / strides[d] % x.shape[d];
    return one(std::move(out));
}

/// Compress-11: slices of an axis (or elements of the flat input) whose condition is true; a short condition ends the selection.
Results compress(const Call& c) {
    const bool flat = c.attribute("axis") == nullptr;
    const Tensor& given = c.in(0);
    const Tensor x = flat ? reshaped(given, {given.count()}) : given;
    const std::size_t rank = x.shape.size(), axis = flat ? 0 : c.axis(c.integer("axis", 0), rank);
    const I64 length = x.shape[axis], inner = extent(x.shape, axis + 1, rank), outer = extent(x.shape, 0, axis);
    const auto condition = c.list(1);
    std::vector<I64> kept;
    for (std::size_t i = 0; i < condition.size(); ++i)
        if (condition[i]) {
            if (static_cast<I64>(i) >= length) c.bad_shape(1, fmt::format("it selects element {} of {}; repair the model", i, length));
            kept.push_back(static_cast<I64>(i));
        }
    Shape shape = x.shape;
    shape[axis] = static_cast<I64>(kept.size());
    Tensor out = c.make(x.dtype, shape);
    I64 to = 0;
    for (I64 o = 0; o < outer; ++o)
        for (const I64 k : kept) {
            copy_elements(x, (o * length + k) * inner, out, to, inner);
            to += inner;
        }
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> sort_operators() {
    static constexpr Operator table[] = {{"Compress", compress, 9}, {"NonZero", non_zero, 9}, {"TopK", top_k}, {"Unique", unique, 11}};
    return table;
}

}  // namespace assay::workloads::hostops
