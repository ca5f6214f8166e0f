// ArgMax, ArgMin, TopK and CumSum. Indices are doubtful only where operands' errors reach over the distance between candidates.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

/// A tensor as outer x length x inner around one axis.
struct Axis {
    std::int64_t outer = 1, length = 1, inner = 1;
    Axis(const Shape& shape, std::int64_t axis) {
        for (std::size_t d = 0; d < shape.size(); ++d) {
            auto& to = static_cast<std::int64_t>(d) < axis ? outer : static_cast<std::int64_t>(d) == axis ? length : inner;
            to *= shape[d];
        }
    }
    std::int64_t at(std::int64_t o, std::int64_t j, std::int64_t i) const { return (o * length + j) * inner + i; }
};

/// a comes before b in descending order; NaN counts as the largest. Integers compare as such: a double does not hold them all.
bool greater_at(const Value& x, std::int64_t a, std::int64_t b) {
    if (!x.floating()) {
        const std::int64_t p = x.n[static_cast<std::size_t>(a)], q = x.n[static_cast<std::size_t>(b)];
        return x.dtype == DType::u64 ? static_cast<std::uint64_t>(p) > static_cast<std::uint64_t>(q) : p > q;
    }
    const double p = x.f[static_cast<std::size_t>(a)], q = x.f[static_cast<std::size_t>(b)];
    return std::isnan(p) ? !std::isnan(q) : p > q;
}

bool doubtful(const Value& x, std::int64_t a, std::int64_t b) {
    const double reach = x.error(a) + x.error(b);
    return reach > 0 && std::fabs(x.at(a) - x.at(b)) <= reach;
}

Outputs arg(const Node& node, bool largest) {
    const Value& x = node.in(0);
    const std::int64_t axis = node.axis(node.integer("axis", 0), x.rank());
    const bool keep = node.integer("keepdims", 1) != 0, last = node.integer("select_last_index", 0) != 0;
    const Axis a(x.shape, axis);
    if (a.length == 0) node.fail(fmt::format("axis {} of shape {} is empty", axis, to_string(x.shape)));
    Shape shape = x.shape;
    if (keep)
        shape[static_cast<std::size_t>(axis)] = 1;
    else
        shape.erase(shape.begin() + axis);
    Value y(DType::i64, shape);
    if (!x.err.empty()) y.err.assign(y.n.size(), 0.0);
    for (std::int64_t o = 0; o < a.outer; ++o)
        for (std::int64_t i = 0; i < a.inner; ++i) {
            std::int64_t best = 0;
            const auto beats = [&](std::int64_t j, std::int64_t k) {
                return largest ? greater_at(x, a.at(o, j, i), a.at(o, k, i)) : greater_at(x, a.at(o, k, i), a.at(o, j, i));
            };
            for (std::int64_t j = 1; j < a.length; ++j)
                if (beats(j, best) || (last && !beats(best, j))) best = j;
            const auto to = static_cast<std::size_t>(o * a.inner + i);
            y.n[to] = best;
            if (y.err.empty()) continue;
            for (std::int64_t j = 0; j < a.length; ++j)
                if (doubtful(x, a.at(o, j, i), a.at(o, best, i))) y.err[to] = std::max(y.err[to], static_cast<double>(std::abs(j - best)));
        }
    return {std::move(y)};
}

}  // namespace

Outputs arg_max(const Node& node) { return arg(node, true); }
Outputs arg_min(const Node& node) { return arg(node, false); }

Outputs top_k(const Node& node) {
    const Value& x = node.in(0);
    std::int64_t k = 0;
    if (node.version() < 10) {
        k = node.integer("k", -1);
    } else {
        if (node.in(1).count() != 1) node.fail(fmt::format("K of shape {} must be one element", to_string(node.in(1).shape)));
        k = node.integers(1)[0];
    }
    const std::int64_t axis = node.axis(node.integer("axis", -1), x.rank());
    const bool largest = node.integer("largest", 1) != 0;
    node.integer("sorted", 1);  // unsorted output may have any order; sorted is one
    const Axis a(x.shape, axis);
    if (k < 0 || k > a.length) node.fail(fmt::format("k = {}: axis {} has {} elements", k, axis, a.length));
    Shape shape = x.shape;
    shape[static_cast<std::size_t>(axis)] = k;
    std::vector<std::int64_t> from(static_cast<std::size_t>(element_count(shape)));
    Value indices(DType::i64, shape);
    std::vector<double> doubt(x.err.empty() ? 0 : from.size()), moved(doubt.size());
    std::vector<std::int64_t> order(static_cast<std::size_t>(a.length));
    for (std::int64_t o = 0; o < a.outer; ++o)
        for (std::int64_t i = 0; i < a.inner; ++i) {
            std::iota(order.begin(), order.end(), 0);
            // Equal elements: the lower index comes first, either way.
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t p, std::int64_t q) {
                return largest ? greater_at(x, a.at(o, p, i), a.at(o, q, i)) : greater_at(x, a.at(o, q, i), a.at(o, p, i));
            });
            double worst = 0;
            if (!doubt.empty())
                for (std::int64_t j = 0; j < a.length; ++j) worst = std::max(worst, x.error(a.at(o, j, i)));
            for (std::int64_t j = 0; j < k; ++j) {
                const auto to = static_cast<std::size_t>((o * k + j) * a.inner + i);
                const std::int64_t here = order[static_cast<std::size_t>(j)];
                from[to] = a.at(o, here, i);
                indices.n[to] = here;
                if (doubt.empty()) continue;
                moved[to] = worst;  // the j-th of moved numbers lies within the largest move of the j-th of the numbers
                for (const std::int64_t next : {j - 1, j + 1})
                    if (next >= 0 && next < a.length && doubtful(x, from[to], a.at(o, order[static_cast<std::size_t>(next)], i)))
                        doubt[to] = static_cast<double>(a.length);
            }
        }
    Value values = x.gather(from, shape);
    values.unrounded.clear();
    values.unrounded_err.clear();
    if (!doubt.empty()) {
        values.err = std::move(moved);
        indices.err = std::move(doubt);
    }
    return {std::move(values), std::move(indices)};
}

Outputs cum_sum(const Node& node) {
    const Value& x = node.in(0);
    const std::int64_t axis = node.axis(static_cast<std::int64_t>(node.scalar(1)), x.rank());
    const bool exclusive = node.integer("exclusive", 0) != 0, reverse = node.integer("reverse", 0) != 0;
    const Axis a(x.shape, axis);
    const Numerics& num = node.numerics();
    Value y(x.dtype, x.shape);
    if (node.bounds() && y.floating()) y.err.resize(y.f.size());
    for (std::int64_t o = 0; o < a.outer; ++o)
        for (std::int64_t i = 0; i < a.inner; ++i) {
            double sum = 0, sum_abs = 0, err = 0;
            std::uint64_t integer = 0;
            for (std::int64_t step = 0; step < a.length; ++step) {
                const auto at = static_cast<std::size_t>(a.at(o, reverse ? a.length - 1 - step : step, i));
                const auto store = [&] {
                    if (!y.floating()) {
                        y.n[at] = wrap(y.dtype, static_cast<std::int64_t>(integer));
                        return;
                    }
                    y.f[at] = sum;
                    if (node.bounds()) y.err[at] = err + sum_error(static_cast<double>(step + 1), sum_abs);
                };
                if (exclusive) store();
                if (y.floating()) {
                    sum = num.round(sum + x.f[at]);
                    sum_abs += std::fabs(x.f[at]);
                    err += x.error(static_cast<std::int64_t>(at));
                } else {
                    integer += static_cast<std::uint64_t>(x.n[at]);
                }
                if (!exclusive) store();
            }
        }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
