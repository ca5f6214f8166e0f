#include "golden/judge/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::golden {

double ulp_f32(double x) {
    const double magnitude = std::fabs(x);
    if (!(magnitude >= 0x1p-126)) return 0x1p-126;  // the chip has no subnormals: the step next to zero is the smallest normal
    return std::ldexp(1.0, std::min(std::ilogb(magnitude), 127) - 23);
}

Similarity similarity(const Tensor& device, const Value& reference) {
    double n = 0, sum_x = 0, sum_y = 0, peak = 0;
    const std::int64_t count = device.count();
    const auto finite = [&](std::int64_t i) { return std::isfinite(device.value(i)) && std::isfinite(reference.at(i)); };
    for (std::int64_t i = 0; i < count; ++i) {
        if (!finite(i)) continue;
        n += 1;
        sum_x += device.value(i);
        sum_y += reference.at(i);
        peak = std::max(peak, std::fabs(reference.at(i)));
    }
    double xx = 0, yy = 0, xy = 0, cxx = 0, cyy = 0, cxy = 0, squared = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        if (!finite(i)) continue;
        const double x = device.value(i), y = reference.at(i), cx = x - sum_x / n, cy = y - sum_y / n;
        xx += x * x, yy += y * y, xy += x * y;
        cxx += cx * cx, cyy += cy * cy, cxy += cx * cy;
        squared += (x - y) * (x - y);
    }
    constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
    Similarity out;
    out.pcc = cxx > 0 && cyy > 0 ? cxy / std::sqrt(cxx * cyy) : kUndefined;
    out.cosine = xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kUndefined;
    out.psnr = n == 0 || peak == 0 ? kUndefined : squared == 0 ? HUGE_VAL : 10 * std::log10(peak * peak * n / squared);
    return out;
}

Ratios global_ratios(const Tensor& device, const Value& golden, const Value& fp64, const Value& emulation, double level) {
    Ratios out;
    double n = 0, signal_squares = 0, device_squares = 0, emulation_squares = 0, ulp_squares = 0, emulation_max = 0, largest = 0;
    for (std::int64_t i = 0; i < device.count(); ++i) {
        const double d = device.value(i), g = golden.at(i), own = fp64.at(i), e = emulation.at(i);
        const bool same_class = std::isfinite(d) ? std::isfinite(e) : std::isnan(d) ? std::isnan(e) : d == e;
        const bool as_golden = std::isfinite(d) ? std::isfinite(g) : std::isnan(d) ? std::isnan(g) : d == g;
        if (!same_class && !as_golden) {
            if (out.class_mismatches++ == 0) out.first_mismatch = i;
            continue;
        }
        if (!std::isfinite(d) || !std::isfinite(g)) continue;
        n += 1;
        largest = std::max(largest, std::fabs(g));
        out.max_abs = std::max(out.max_abs, std::fabs(d - g));
        device_squares += (d - g) * (d - g);
        signal_squares += g * g;
        const double ulp = fp64.floating() ? ulp_f32(g) : 1.0;
        ulp_squares += ulp * ulp;
        if (!std::isfinite(e) || !std::isfinite(own)) continue;
        emulation_max = std::max(emulation_max, std::fabs(e - own));
        emulation_squares += (e - own) * (e - own);
    }
    if (!fp64.floating()) level = 0;
    out.yardstick_max = std::max({emulation_max, fp64.floating() ? ulp_f32(largest) : 1.0, level * largest});
    if (n == 0) return out;
    out.r_rms = std::sqrt(device_squares / std::max({emulation_squares, ulp_squares, level * level * signal_squares}));
    out.r_max = out.max_abs / out.yardstick_max;
    return out;
}

}  // namespace assay::golden
