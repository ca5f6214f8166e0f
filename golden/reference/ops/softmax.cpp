// Softmax, LogSoftmax and Hardmax: versions 1 and 11 (the input flattened to a matrix at `axis`) and 13 (along one axis).
#include <algorithm>
#include <cmath>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/softmax_row.hpp"

namespace assay::golden::ops {
namespace {

/// Calls body(length, at) for each vector that is normalised; at(j) is the element index of its j-th entry.
template <class Body>
void for_each_vector(const Node& node, const Value& x, Body body) {
    const bool flattens = node.version() < 13;
    const std::int64_t given = node.integer("axis", flattens ? 1 : -1);
    const auto axis = static_cast<std::size_t>(x.rank() == 0 ? 0 : flattens && given == x.rank() ? given : node.axis(given, x.rank()));
    std::int64_t outer = 1, inner = 1, length = 1;
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
        if (d < axis)
            outer *= x.shape[d];
        else if (d == axis || flattens)
            length *= x.shape[d];
        else
            inner *= x.shape[d];
    }
    if (length > 0)
        for (std::int64_t o = 0; o < outer; ++o)
            for (std::int64_t i = 0; i < inner; ++i) body(length, [=](std::int64_t j) { return (o * length + j) * inner + i; });
}

}  // namespace

Outputs softmax(const Node& node) {
    const Value& x = node.real(0);
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for_each_vector(node, x, [&](std::int64_t length, auto at) { normalise(node.numerics(), x, y, length, at); });
    return {std::move(y)};
}

Outputs log_softmax(const Node& node) {
    const Value& x = node.real(0);
    const Numerics& num = node.numerics();
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for_each_vector(node, x, [&](std::int64_t length, auto at) {
        double largest = -HUGE_VAL, sum = 0, weighted = 0;
        for (std::int64_t i = 0; i < length; ++i) largest = std::max(largest, x.at(at(i)));
        for (std::int64_t i = 0; i < length; ++i) {
            const double d = num.round(x.at(at(i)) - largest), t = num.exp(d);
            sum = num.round(sum + t);
            // An error of the largest itself cancels: it is taken off everywhere.
            weighted += t * (std::expm1(x.error(at(i)) + rounding(d)) + std::max(kExpUlp * kUlp32, exp_relative(d)));
        }
        const double log = num.round(std::log(sum));
        const double own = weighted / sum + static_cast<double>(length) * kU32 + kLogUlp * kUlp32 * std::fabs(log) + kFlush;
        for (std::int64_t i = 0; i < length; ++i) {
            const auto to = static_cast<std::size_t>(at(i));
            const double d = num.round(x.at(at(i)) - largest);
            y.f[to] = num.round(d - log);
            if (node.bounds()) y.err[to] = x.error(at(i)) + own + rounding(d) + rounding(y.f[to]) + rounding(largest + log);
        }
    });
    return {std::move(y)};
}

Outputs hardmax(const Node& node) {
    const Value& x = node.real(0);
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for_each_vector(node, x, [&](std::int64_t length, auto at) {
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < length; ++i)
            if (x.at(at(i)) > x.at(at(best))) best = i;
        y.f[static_cast<std::size_t>(at(best))] = 1;
        if (!node.bounds()) return;
        for (std::int64_t i = 0; i < length; ++i) {
            const double reach = x.error(at(i)) + x.error(at(best));
            if (i == best || reach == 0 || x.at(at(best)) - x.at(at(i)) > reach) continue;
            y.err[static_cast<std::size_t>(at(i))] = y.err[static_cast<std::size_t>(at(best))] = 1;  // either is honest
        }
    });
    return {std::move(y)};
}

}  // namespace assay::golden::ops
