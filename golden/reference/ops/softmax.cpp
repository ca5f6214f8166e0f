// Softmax-1 and -11 (the input flattened to a matrix at `axis`) and Softmax-13 (along one axis).
#include <algorithm>
#include <cmath>

#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

/// One normalised vector: `at(i)` is the element index of its i-th entry.
template <class At>
void normalise(const Node& node, const Value& x, Value& y, std::int64_t length, At at) {
    const Numerics& num = node.numerics();
    double largest = -HUGE_VAL, largest_err = 0;
    for (std::int64_t i = 0; i < length; ++i) {
        largest = std::max(largest, x.at(at(i)));
        largest_err = std::max(largest_err, x.error(at(i)));
    }
    double sum = 0, weighted = 0;
    std::vector<double> t(static_cast<std::size_t>(length)), relative(t.size(), 0.0);
    for (std::int64_t i = 0; i < length; ++i) {
        const double d = num.round(x.at(at(i)) - largest);
        double& ti = t[static_cast<std::size_t>(i)];
        ti = num.exp(d);
        sum = num.round(sum + ti);
        if (!node.bounds()) continue;
        // exp turns the absolute error of x - max into a relative one, then adds its own.
        relative[static_cast<std::size_t>(i)] = std::expm1(x.error(at(i)) + largest_err + rounding(d)) + exp_relative(d);
        weighted += relative[static_cast<std::size_t>(i)] * ti;
    }
    const double sum_relative = weighted / sum + static_cast<double>(length) * kU32;
    for (std::int64_t i = 0; i < length; ++i) {
        const auto to = static_cast<std::size_t>(at(i));
        y.f[to] = num.round(t[static_cast<std::size_t>(i)] / sum);
        if (node.bounds()) y.err[to] = y.f[to] * std::expm1(relative[static_cast<std::size_t>(i)] + sum_relative) + rounding(y.f[to]);
    }
}

}  // namespace

Outputs softmax(const Node& node) {
    const Value& x = node.real(0);
    const bool flattens = node.version() < 13;
    const std::int64_t given = node.integer("axis", flattens ? 1 : -1);
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    const auto axis = static_cast<std::size_t>(x.rank() == 0 ? 0 : node.axis(given, x.rank()));
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
            for (std::int64_t i = 0; i < inner; ++i)
                normalise(node, x, y, length, [&](std::int64_t j) { return (o * length + j) * inner + i; });
    return {std::move(y)};
}

}  // namespace assay::golden::ops
