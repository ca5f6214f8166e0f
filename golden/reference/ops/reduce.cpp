// The Reduce family: axes as an attribute, or as an input since ReduceSum-13 and since 18 of the others.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

/// Elements of the input that each output element gathers, and the output's shape.
struct Plan {
    Shape shape;
    std::vector<std::int64_t> group;  ///< output element of each input element
    std::int64_t length = 1;          ///< input elements an output element
    bool nothing = false;             ///< noop_with_empty_axes
};

Plan plan(const Node& node, const Value& x, int axes_input_since) {
    std::vector<std::int64_t> axes;
    Plan p;
    if (node.version() >= axes_input_since) {
        if (node.has(1)) axes = node.integers(1);
        p.nothing = axes.empty() && node.integer("noop_with_empty_axes", 0) != 0;
        node.integer("noop_with_empty_axes", 0);
    } else {
        axes = node.integers("axes").value_or(std::vector<std::int64_t>{});
    }
    std::vector<bool> reduced(x.shape.size(), axes.empty() && !p.nothing);
    for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>(node.axis(axis, x.rank()))] = true;
    const bool keep = node.integer("keepdims", 1) != 0;
    Shape kept = x.shape;
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
        if (reduced[d]) {
            p.length *= x.shape[d];
            kept[d] = 1;
        }
        if (!reduced[d] || keep) p.shape.push_back(kept[d]);
    }
    p.group = broadcast_index(kept, x.shape);
    return p;
}

/// Sum over each group of term(x), then finish(functions, sum, group length). Integers go through `integer` and wrap.
template <class T, class F, class I>
Outputs accumulate(const Node& node, int axes_input_since, T term, F finish, I integer) {
    const Value& x = node.in(0);
    const Plan p = plan(node, x, axes_input_since);
    if (p.nothing) return {x};
    Value y(x.dtype, p.shape);
    if (!y.floating()) {
        integer(x, p, y);
        return {std::move(y)};
    }
    const Functions f(node.numerics());
    std::vector<double> sum_abs(y.f.size()), err(y.f.size());
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        const auto to = static_cast<std::size_t>(p.group[i]);
        const Bounded t = term(f, Bounded{x.f[i], x.error(static_cast<std::int64_t>(i))});
        y.f[to] = f.numerics().round(y.f[to] + t.v);
        sum_abs[to] += std::fabs(t.v);
        err[to] += t.e;
    }
    const auto n = static_cast<double>(p.length);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        const Bounded r = finish(f, Bounded{y.f[i], err[i] + sum_error(n, sum_abs[i])}, n);
        y.f[i] = r.v;
        if (node.bounds()) y.err[i] = std::isfinite(r.v) ? r.e : 0.0;
    }
    return {std::move(y)};
}

/// Integers: the wrapped sum of term(x).
template <class T>
auto wrapped_sum(T term) {
    return [term](const Value& x, const Plan& p, Value& y) {
        for (std::size_t i = 0; i < p.group.size(); ++i) {
            auto& to = y.n[static_cast<std::size_t>(p.group[i])];
            to = wrap(y.dtype, static_cast<std::int64_t>(static_cast<std::uint64_t>(to) + static_cast<std::uint64_t>(term(x.n[i]))));
        }
    };
}

/// Integers through real numbers: finish(sum of term(x), length), truncated.
template <class T, class F>
auto truncated(T term, F finish) {
    return [term, finish](const Value& x, const Plan& p, Value& y) {
        std::vector<double> sum(y.n.size());
        for (std::size_t i = 0; i < p.group.size(); ++i) sum[static_cast<std::size_t>(p.group[i])] += term(static_cast<double>(x.n[i]));
        for (std::size_t i = 0; i < y.n.size(); ++i) {
            const double r = std::trunc(finish(sum[i], static_cast<double>(p.length)));
            y.n[i] = r >= static_cast<double>(highest(y.dtype))   ? highest(y.dtype)
                     : !(r > static_cast<double>(lowest(y.dtype))) ? lowest(y.dtype)
                                                                   : static_cast<std::int64_t>(r);
        }
    };
}

std::int64_t times(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); }
Bounded same(const Functions&, Bounded x) { return x; }
Bounded magnitude(const Functions&, Bounded x) { return {std::fabs(x.v), x.e}; }
Bounded square(const Functions& f, Bounded x) { return f.mul(x, x); }
Bounded as_it_is(const Functions&, Bounded sum, double) { return sum; }

/// ReduceMax and ReduceMin; `better(a, b)`: a replaces b.
template <class B>
Outputs extreme(const Node& node, double worst, std::int64_t worst_integer, B better) {
    const Value& x = node.in(0);
    const Plan p = plan(node, x, 18);
    if (p.nothing) return {x};
    Value y(x.dtype, p.shape);
    std::fill(y.f.begin(), y.f.end(), worst);
    std::fill(y.n.begin(), y.n.end(), worst_integer);
    if (node.bounds()) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        const auto to = static_cast<std::size_t>(p.group[i]);
        if (!y.floating()) {
            if (better(x.n[i], y.n[to])) y.n[to] = x.n[i];
        } else if (better(x.f[i], y.f[to]) || std::isnan(x.f[i])) {
            y.f[to] = x.f[i];
        }
        if (node.bounds()) y.err[to] = std::max(y.err[to], x.error(static_cast<std::int64_t>(i)));
    }
    return {std::move(y)};
}

}  // namespace

Outputs reduce_sum(const Node& node) {
    return accumulate(node, 13, same, as_it_is, wrapped_sum([](std::int64_t v) { return v; }));
}
Outputs reduce_mean(const Node& node) {
    return accumulate(
        node, 18, same,
        [](const Functions& f, Bounded sum, double n) {
            // A division, or a product with the rounded reciprocal: two roundings.
            Bounded y = f.div(sum, {n, 0});
            y.e += rounding(y.v);
            return y;
        },
        truncated([](double v) { return v; }, [](double sum, double n) { return sum / n; }));
}
Outputs reduce_l1(const Node& node) {
    return accumulate(node, 18, magnitude, as_it_is, wrapped_sum([](std::int64_t v) { return v < 0 ? times(v, -1) : v; }));
}
Outputs reduce_sum_square(const Node& node) {
    return accumulate(node, 18, square, as_it_is, wrapped_sum([](std::int64_t v) { return times(v, v); }));
}
Outputs reduce_l2(const Node& node) {
    return accumulate(
        node, 18, square, [](const Functions& f, Bounded sum, double) { return f.sqrt(sum); },
        truncated([](double v) { return v * v; }, [](double sum, double) { return std::sqrt(sum); }));
}
Outputs reduce_log_sum(const Node& node) {
    return accumulate(
        node, 18, same, [](const Functions& f, Bounded sum, double) { return f.log(sum); },
        truncated([](double v) { return v; }, [](double sum, double) { return std::log(sum); }));
}

Outputs reduce_log_sum_exp(const Node& node) {
    const Value& x = node.in(0);
    const Plan p = plan(node, x, 18);
    if (p.nothing) return {x};
    const auto groups = static_cast<std::size_t>(element_count(p.shape));
    const Numerics& num = node.numerics();
    std::vector<double> top(groups, -HUGE_VAL), sum(groups), weighted(groups);
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        double& t = top[static_cast<std::size_t>(p.group[i])];
        const double v = x.at(static_cast<std::int64_t>(i));
        if (v > t || std::isnan(v)) t = v;
    }
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        const auto to = static_cast<std::size_t>(p.group[i]), at = i;
        const double v = x.at(static_cast<std::int64_t>(at)), d = std::isinf(top[to]) ? 0.0 : num.round(v - top[to]);
        const double t = std::isinf(top[to]) && v != top[to] ? 0.0 : num.exp(d);
        sum[to] = num.round(sum[to] + t);
        // Whether the chip takes the largest off first or not, its exponentials see no argument beyond these.
        const double own = std::max(kExpUlp * kUlp32, exp_relative(std::max(std::fabs(v), std::fabs(d))));
        weighted[to] += t * (std::expm1(x.error(static_cast<std::int64_t>(at)) + rounding(d)) + own);
    }
    Value y(x.dtype, p.shape);
    if (node.bounds() && y.floating()) y.err.resize(groups);
    for (std::size_t i = 0; i < groups; ++i) {
        const double log = num.round(std::log(sum[i])), r = std::isinf(top[i]) ? top[i] : num.round(top[i] + log);
        y.set(static_cast<std::int64_t>(i), y.floating() ? r : std::isfinite(r) ? std::trunc(r) : 0.0);
        if (y.err.empty()) continue;
        const double relative = weighted[i] / sum[i] + static_cast<double>(p.length) * kU32;
        y.err[i] = std::isfinite(r) ? relative + kLogUlp * kUlp32 * std::fabs(log) + rounding(r) : 0.0;
    }
    return {std::move(y)};
}

Outputs reduce_prod(const Node& node) {
    const Value& x = node.in(0);
    const Plan p = plan(node, x, 18);
    if (p.nothing) return {x};
    Value y(x.dtype, p.shape);
    std::fill(y.f.begin(), y.f.end(), 1.0);
    std::fill(y.n.begin(), y.n.end(), 1);
    std::vector<double> largest(y.f.size(), 1.0);  // of the product of the operands' intervals
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        const auto to = static_cast<std::size_t>(p.group[i]);
        if (!y.floating()) {
            y.n[to] = wrap(y.dtype, times(y.n[to], x.n[i]));
            continue;
        }
        y.f[to] = node.numerics().round(y.f[to] * x.f[i]);
        largest[to] *= std::fabs(x.f[i]) + x.error(static_cast<std::int64_t>(i));
    }
    if (node.bounds() && y.floating()) {
        y.err.resize(y.f.size());
        for (std::size_t i = 0; i < y.f.size(); ++i) {
            const double n = static_cast<double>(p.length);
            y.err[i] = std::isfinite(y.f[i]) ? largest[i] - std::fabs(y.f[i]) + 1.01 * n * kU32 * largest[i] + kFlush : 0.0;
        }
    }
    return {std::move(y)};
}

Outputs reduce_max(const Node& node) {
    return extreme(node, -HUGE_VAL, lowest(node.in(0).dtype), [](auto a, auto b) { return a > b; });
}
Outputs reduce_min(const Node& node) {
    return extreme(node, HUGE_VAL, highest(node.in(0).dtype), [](auto a, auto b) { return a < b; });
}

}  // namespace assay::golden::ops
