#include "workloads/passes/taps.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::workloads {
namespace {

/// Keys' cubic convolution for a distance in [0, 2].
double keys(double a, double x) {
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

}  // namespace

Taps taps_of(NodeId id, const Resize& r, std::size_t axis) {
    const ResizeAxis& a = r.axes[axis];
    if (r.antialias && a.scale < 1) throw NodeError(id, "antialias=1 has no instruction");
    const bool cubic = r.mode == Resize::Mode::cubic;
    const int count = cubic ? 4 : 2;
    Taps taps;
    taps.index.resize(static_cast<std::size_t>(count));
    taps.weight.resize(static_cast<std::size_t>(count));
    taps.identity = a.in == a.out;
    for (std::int64_t i = 0; i < a.out; ++i) {
        const double x = r.coordinate(axis, i), below = std::floor(x), t = x - below;
        if (r.outside(axis, x)) throw NodeError(id, "a crop that reaches outside the input has no instruction");
        taps.identity = taps.identity && x == static_cast<double>(i);
        const auto first = static_cast<std::int64_t>(below) - (cubic ? 1 : 0);
        std::array<double, 4> w{1 - t, t};
        if (cubic) w = {keys(r.cubic_a, t + 1), keys(r.cubic_a, t), keys(r.cubic_a, 1 - t), keys(r.cubic_a, 2 - t)};
        double total = 0;
        for (int k = 0; k < count; ++k) {
            if (r.exclude_outside && (first + k < 0 || first + k >= a.in)) w[static_cast<std::size_t>(k)] = 0;
            total += w[static_cast<std::size_t>(k)];
        }
        for (int k = 0; k < count; ++k) {
            const auto at = static_cast<std::size_t>(k);
            taps.index[at].push_back(std::clamp<std::int64_t>(first + k, 0, a.in - 1));
            taps.weight[at].push_back(r.exclude_outside ? w[at] / total : w[at]);
        }
    }
    return taps;
}

}  // namespace assay::workloads
