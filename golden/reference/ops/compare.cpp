// Equal, Greater, Less, GreaterOrEqual, LessOrEqual, Where and PRelu. Where the chip's operands may lie on either side, both answers are honest.
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

Outputs where(const Node& node) {
    const Value &condition = node.in(0), &x = node.in(1), &z = node.in(2);
    if (condition.dtype != DType::boolean || x.dtype != z.dtype)
        node.fail(fmt::format("a condition of {} and branches of {} and {}", name_of(condition.dtype), name_of(x.dtype), name_of(z.dtype)));
    const Shape shape = broadcast_of(node, broadcast_of(node, condition.shape, x.shape), z.shape);
    const auto ic = broadcast_index(condition.shape, shape), ix = broadcast_index(x.shape, shape), iz = broadcast_index(z.shape, shape);
    Value y(x.dtype, shape);
    const bool errors = !x.err.empty() || !z.err.empty() || !condition.err.empty();
    if (errors) y.err.assign(ic.size(), 0.0);
    for (std::size_t i = 0; i < ic.size(); ++i) {
        const bool first = condition.n[static_cast<std::size_t>(ic[i])] != 0;
        const Value& from = first ? x : z;
        const std::int64_t at = first ? ix[i] : iz[i];
        if (y.floating()) y.f[i] = from.f[static_cast<std::size_t>(at)];
        else y.n[i] = from.n[static_cast<std::size_t>(at)];
        if (!errors) continue;
        y.err[i] = from.error(at);
        if (condition.error(ic[i]) > 0)  // either branch is honest
            y.err[i] = std::max(x.error(ix[i]), z.error(iz[i])) + std::fabs(x.at(ix[i]) - z.at(iz[i]));
    }
    return {std::move(y)};
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
