// Operators of two (Min, Max: any number of) operands with NumPy broadcasting.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

/// Operands of one element: values and errors.
struct Pair {
    double a, b, ea, eb;
};

Shape broadcast_of(const Node& node, const Value& a, const Value& b) {
    try {
        return broadcast(a.shape, b.shape);
    } catch (const Error& error) {
        node.fail(error.what());
    }
}

/// Calls body(i, index into a, index into b) over the broadcast shape, without index tables when the shapes are equal.
template <class Body>
void for_each(const Value& a, const Value& b, const Shape& shape, Body body) {
    const std::int64_t count = element_count(shape);
    if (a.shape == shape && b.shape == shape) {
        for (std::int64_t i = 0; i < count; ++i) body(i, i, i);
        return;
    }
    const auto ia = broadcast_index(a.shape, shape), ib = broadcast_index(b.shape, shape);
    for (std::int64_t i = 0; i < count; ++i) body(i, ia[static_cast<std::size_t>(i)], ib[static_cast<std::size_t>(i)]);
}

template <class F, class E, class N>
Value combine(const Node& node, const Value& a, const Value& b, F value, E bound, N integer) {
    if (a.dtype != b.dtype) node.fail(fmt::format("operands are {} and {}, must be of one type", name_of(a.dtype), name_of(b.dtype)));
    Value y(a.dtype, broadcast_of(node, a, b));
    if (!y.floating()) {
        for_each(a, b, y.shape, [&](std::int64_t i, std::int64_t ia, std::int64_t ib) {
            y.n[static_cast<std::size_t>(i)] = wrap(y.dtype, integer(a.n[static_cast<std::size_t>(ia)], b.n[static_cast<std::size_t>(ib)]));
        });
        return y;
    }
    if (node.bounds()) y.err.resize(y.f.size());
    for_each(a, b, y.shape, [&](std::int64_t i, std::int64_t ia, std::int64_t ib) {
        const Pair p{a.at(ia), b.at(ib), a.error(ia), b.error(ib)};
        double& r = y.f[static_cast<std::size_t>(i)];
        r = value(p.a, p.b);
        if (node.bounds()) y.err[static_cast<std::size_t>(i)] = bound(p, r);
    });
    return y;
}

double ieee_min(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b); }
double ieee_max(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b); }

template <class F, class N>
Outputs fold(const Node& node, F value, N integer) {
    Value y = node.in(0);
    y.unrounded.clear();
    y.unrounded_err.clear();
    for (std::size_t i = 1; i < node.input_count(); ++i)
        y = combine(
            node, y, node.in(i), value, [](const Pair& p, double) { return std::max(p.ea, p.eb); }, integer);
    return {std::move(y)};
}

}  // namespace

Outputs add(const Node& node) {
    const Numerics& num = node.numerics();
    return {combine(
        node, node.in(0), node.in(1), [&](double a, double b) { return num.round(a + b); },
        [](const Pair& p, double r) { return p.ea + p.eb + rounding(r); },
        [](std::int64_t a, std::int64_t b) {
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        })};
}

Outputs sub(const Node& node) {
    const Numerics& num = node.numerics();
    return {combine(
        node, node.in(0), node.in(1), [&](double a, double b) { return num.round(a - b); },
        [](const Pair& p, double r) { return p.ea + p.eb + rounding(r); },
        [](std::int64_t a, std::int64_t b) {
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
        })};
}

Outputs mul(const Node& node) {
    const Numerics& num = node.numerics();
    return {combine(
        node, node.in(0), node.in(1), [&](double a, double b) { return num.round(a * b); },
        [](const Pair& p, double r) { return std::fabs(p.a) * p.eb + std::fabs(p.b) * p.ea + p.ea * p.eb + rounding(r); },
        [](std::int64_t a, std::int64_t b) {
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        })};
}

Outputs div(const Node& node) {
    const Numerics& num = node.numerics();
    return {combine(
        node, node.in(0), node.in(1), [&](double a, double b) { return num.round(a / b); },
        [](const Pair& p, double r) {
            const double least = std::fabs(p.b) - p.eb;  // an interval of the divisor that holds zero bounds nothing
            return least > 0 ? (p.ea + std::fabs(r) * p.eb) / least + rounding(r) : (p.eb > 0 ? HUGE_VAL : 0.0);
        },
        [&](std::int64_t a, std::int64_t b) {
            if (b == 0) node.fail("integer division by zero");
            return b == -1 ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(a)) : a / b;
        })};
}

Outputs min(const Node& node) {
    return fold(node, ieee_min, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
}

Outputs max(const Node& node) {
    return fold(node, ieee_max, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
}

namespace {

Value sum_of(const Node& node) {
    const Numerics& num = node.numerics();
    Value y = node.real(0);
    for (std::size_t i = 1; i < node.input_count(); ++i)
        y = combine(
            node, y, node.in(i), [&](double a, double b) { return num.round(a + b); },
            [](const Pair& p, double r) { return p.ea + p.eb + rounding(r); },
            [](std::int64_t, std::int64_t) { return std::int64_t{0}; });
    return y;
}

}  // namespace

Outputs sum(const Node& node) { return {sum_of(node)}; }

Outputs mean(const Node& node) {
    Value y = sum_of(node);
    const auto n = static_cast<double>(node.input_count());
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        y.f[i] = node.numerics().round(y.f[i] / n);
        if (node.bounds()) y.err[i] = y.err[i] / n + 2 * rounding(y.f[i]);  // a division, or a rounded reciprocal
    }
    return {std::move(y)};
}

Outputs pow(const Node& node) {
    const Numerics& num = node.numerics();
    const Value& x = node.in(0);
    Value y = node.in(1);
    // Base and exponent may differ in type (Pow-12); the result has the base's. An integer base is raised in double, exact below 2^53.
    if (!x.floating() || !y.floating()) {
        Value out(x.dtype, broadcast_of(node, x, y));
        for_each(x, y, out.shape, [&](std::int64_t i, std::int64_t ia, std::int64_t ib) {
            const double r = std::pow(x.at(ia), y.at(ib));
            out.set(i, out.floating() ? num.round(r) : std::trunc(r));
        });
        if (node.bounds() && out.floating()) out.err.assign(out.f.size(), HUGE_VAL);
        return {std::move(out)};
    }
    y.dtype = x.dtype;
    return {combine(
        node, x, y, [&](double a, double b) { return num.round(std::pow(a, b)); },
        [](const Pair& p, double r) {
            if (p.b == 2 && p.eb == 0) return 2 * std::fabs(p.a) * p.ea + p.ea * p.ea + rounding(r);  // the chip squares by multiplying
            if (p.b == 0.5 && p.eb == 0)
                return r - std::sqrt(std::max(0.0, p.a - p.ea)) + rounding(r);  // concave: the lower end is further
            // exp2(b log2 a): log2's error and the product's rounding move the result by |b log2 a| ln 2 times as much.
            const double log = std::fabs(std::log(std::fabs(p.a)));
            const double relative = std::fabs(p.b) * p.ea / std::max(std::fabs(p.a) - p.ea, kFlush) + log * p.eb +
                                    (kLog2Ulp * kUlp32 + kU32) * std::fabs(p.b) * log + kExp2Ulp * kUlp32;
            return p.a == 0 ? p.ea : std::fabs(r) * std::expm1(relative) + kFlush;
        },
        [](std::int64_t, std::int64_t) { return std::int64_t{0}; })};
}

}  // namespace assay::golden::ops
