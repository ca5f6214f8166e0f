// ReduceMean, ReduceSum, ReduceMax: axes as an attribute, or as an input since ReduceSum-13 and since 18 of the others.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

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

Outputs sum(const Node& node, int axes_input_since, bool mean) {
    const Value& x = mean ? node.real(0) : node.in(0);
    const Plan p = plan(node, x, axes_input_since);
    if (p.nothing) return {x};
    Value y(x.dtype, p.shape);
    const Numerics& num = node.numerics();
    std::vector<double> sum_abs(y.f.size()), err(y.f.size());
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        const auto to = static_cast<std::size_t>(p.group[i]);
        if (!y.floating()) {
            y.n[to] = wrap(y.dtype, y.n[to] + x.n[i]);
            continue;
        }
        y.f[to] = num.round(y.f[to] + x.f[i]);
        sum_abs[to] += std::fabs(x.f[i]);
        err[to] += x.error(static_cast<std::int64_t>(i));
    }
    const auto n = static_cast<double>(p.length);
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        if (mean) y.f[i] = num.round(y.f[i] / n);
        err[i] += sum_error(n, sum_abs[i]);
        if (mean) err[i] = err[i] / n + 2 * rounding(y.f[i]);
    }
    if (node.bounds() && y.floating()) y.err = std::move(err);
    return {std::move(y)};
}

}  // namespace

Outputs reduce_mean(const Node& node) { return sum(node, 18, true); }
Outputs reduce_sum(const Node& node) { return sum(node, 13, false); }

Outputs reduce_max(const Node& node) {
    const Value& x = node.in(0);
    const Plan p = plan(node, x, 18);
    if (p.nothing) return {x};
    Value y(x.dtype, p.shape);
    for (std::int64_t i = 0; i < y.count(); ++i) y.set(i, y.floating() ? -HUGE_VAL : static_cast<double>(lowest(y.dtype)));
    if (node.bounds()) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
    for (std::size_t i = 0; i < p.group.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i), to = p.group[i];
        if (x.at(at) > y.at(to) || std::isnan(x.at(at))) y.set(to, x.at(at));
        if (node.bounds()) y.err[static_cast<std::size_t>(to)] = std::max(y.err[static_cast<std::size_t>(to)], x.error(at));
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
