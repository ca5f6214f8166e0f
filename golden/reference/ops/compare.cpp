// Equal, Greater, Less, GreaterOrEqual, LessOrEqual and PRelu. Where the chip's operands may lie on either side, both answers are honest.
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

Shape broadcast_of(const Node& node, const Shape& a, const Shape& b) {
    try {
        return broadcast(a, b);
    } catch (const Error& error) {
        node.fail(error.what());
    }
}

template <class F>
Outputs compare(const Node& node, F holds) {
    const Value &a = node.in(0), &b = node.in(1);
    if (a.dtype != b.dtype) node.fail(fmt::format("operands are {} and {}, must be of one type", name_of(a.dtype), name_of(b.dtype)));
    Value y(DType::boolean, broadcast_of(node, a.shape, b.shape));
    const auto ia = broadcast_index(a.shape, y.shape), ib = broadcast_index(b.shape, y.shape);
    if (node.bounds() && (!a.err.empty() || !b.err.empty())) y.err.assign(y.n.size(), 0.0);
    for (std::size_t i = 0; i < y.n.size(); ++i) {
        const std::int64_t p = ia[i], q = ib[i];
        // int64 compares as integers: a double does not hold them all.
        y.n[i] = a.floating() ? holds(a.f[static_cast<std::size_t>(p)], b.f[static_cast<std::size_t>(q)])
                              : holds(a.n[static_cast<std::size_t>(p)], b.n[static_cast<std::size_t>(q)]);
        if (!y.err.empty() && std::fabs(a.at(p) - b.at(q)) <= a.error(p) + b.error(q) && a.error(p) + b.error(q) > 0) y.err[i] = 1;
    }
    return {std::move(y)};
}

}  // namespace

Outputs equal(const Node& node) {
    return compare(node, [](auto a, auto b) { return a == b; });
}
Outputs greater(const Node& node) {
    return compare(node, [](auto a, auto b) { return a > b; });
}
Outputs less(const Node& node) {
    return compare(node, [](auto a, auto b) { return a < b; });
}
Outputs greater_or_equal(const Node& node) {
    return compare(node, [](auto a, auto b) { return a >= b; });
}
Outputs less_or_equal(const Node& node) {
    return compare(node, [](auto a, auto b) { return a <= b; });
}

Outputs prelu(const Node& node) {
    const Value &x = node.in(0), &slope = node.in(1);
    if (x.dtype != slope.dtype) node.fail(fmt::format("input is {}, slope {}", name_of(x.dtype), name_of(slope.dtype)));
    if (broadcast_of(node, x.shape, slope.shape) != x.shape) node.fail(fmt::format("slope {} does not broadcast to {}", to_string(slope.shape), to_string(x.shape)));
    const auto is = broadcast_index(slope.shape, x.shape);
    const Numerics& num = node.numerics();
    Value y = x;
    y.unrounded.clear();
    y.unrounded_err.clear();
    if (node.bounds() && y.floating()) y.err.assign(y.f.size(), 0.0);
    for (std::size_t i = 0; i < is.size(); ++i) {
        if (!y.floating()) {
            if (y.n[i] < 0) y.n[i] = wrap(y.dtype, y.n[i] * slope.n[static_cast<std::size_t>(is[i])]);
            continue;
        }
        const double v = x.f[i], s = slope.at(is[i]), e = x.error(static_cast<std::int64_t>(i)), es = slope.error(is[i]);
        y.f[i] = v < 0 ? num.round(v * s) : v;
        if (!node.bounds()) continue;
        const double scaled = std::fabs(s) * e + std::fabs(v) * es + e * es + rounding(v * s);
        y.err[i] = v - e > 0 ? e : v + e < 0 ? scaled : std::max(e, scaled);
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
