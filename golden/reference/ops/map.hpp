#pragma once
// Element by element over float tensors, in bounded arithmetic.
#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {

/// y[i] = f(functions, x[i]); f takes and gives Bounded. Keeps errors only in the bound modes.
template <class F>
Outputs map_bounded(const Node& node, F f) {
    const Value& x = node.real(0);
    const Functions functions(node.numerics());
    Value y(x.dtype, x.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        const Bounded operand{x.f[i], x.error(static_cast<std::int64_t>(i))};
        const Bounded r = f(functions, operand);
        y.f[i] = r.v;
        if (!node.bounds()) continue;
        // Products of an infinite operand with a zero error: the class of the result decides, not a distance.
        y.err[i] = !std::isfinite(r.v) ? 0.0 : std::isnan(r.e) ? (std::isfinite(x.f[i]) ? HUGE_VAL : 8 * rounding(r.v)) : r.e;
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
