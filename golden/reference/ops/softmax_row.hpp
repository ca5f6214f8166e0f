#pragma once
// The normalisation that Softmax and Attention share within the reference.
#include <algorithm>
#include <cmath>
#include <vector>

#include "golden/reference/functions.hpp"
#include "golden/reference/value.hpp"

namespace assay::golden::ops {

/// One vector: y = exp(x - max x) / sum. `at(i)` is the element index of its i-th entry, in x and y alike; y.err holds an entry for each
/// element in the bound modes. A vector of -inf alone gives NaN.
template <class At>
void normalise(const Numerics& num, const Value& x, Value& y, std::int64_t length, At at) {
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
        if (!num.bounds()) continue;
        // exp turns the absolute error of x - max into a relative one, then adds its own.
        // What underflows is zero on the chip and next to nothing here: wholly wrong is no error of the sum.
        const bool underflows = ti < kFlush;
        relative[static_cast<std::size_t>(i)] = underflows ? (ti > 0 ? 1.0 : 0.0) : std::expm1(x.error(at(i)) + largest_err + rounding(d)) + exp_relative(d);
        weighted += relative[static_cast<std::size_t>(i)] * ti;
    }
    const double sum_relative = weighted / sum + static_cast<double>(length) * kU32;
    for (std::int64_t i = 0; i < length; ++i) {
        const auto to = static_cast<std::size_t>(at(i));
        y.f[to] = num.round(t[static_cast<std::size_t>(i)] / sum);
        if (num.bounds()) y.err[to] = y.f[to] * std::expm1(relative[static_cast<std::size_t>(i)] + sum_relative) + rounding(y.f[to]);
    }
}

}  // namespace assay::golden::ops
