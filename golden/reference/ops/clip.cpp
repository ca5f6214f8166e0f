// Clip-6 (bounds as attributes) and Clip-11 to 13 (bounds as optional scalar inputs).
#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {

Outputs clip(const Node& node) {
    const Value& x = node.in(0);
    double low = -std::numeric_limits<double>::infinity(), high = -low;
    if (node.version() < 11) {
        low = node.real("min", -HUGE_VALF);
        high = node.real("max", HUGE_VALF);
    } else {
        if (node.has(1)) low = node.scalar(1);
        if (node.has(2)) high = node.scalar(2);
    }
    Value y = x;
    // min(max(x, low), high): where low > high the result is high, as the specification's formula says.
    for (std::size_t i = 0; i < y.f.size(); ++i) {
        y.f[i] = std::isnan(x.f[i]) ? x.f[i] : std::min(std::max(x.f[i], low), high);
        // Both ends of the operand's interval beyond one bound: nothing of the error is left.
        if (!y.err.empty() && (x.f[i] + x.err[i] <= low || x.f[i] - x.err[i] >= high)) y.err[i] = 0;
    }
    for (std::size_t i = 0; i < y.n.size(); ++i) {
        if (static_cast<double>(y.n[i]) < low) y.n[i] = static_cast<std::int64_t>(low);
        if (static_cast<double>(y.n[i]) > high) y.n[i] = static_cast<std::int64_t>(high);
    }
    for (auto& v : y.unrounded) v = std::min(std::max(v, low), high);
    return {std::move(y)};
}

}  // namespace assay::golden::ops
