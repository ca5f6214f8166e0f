// Tables that signal processing multiplies by: HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix, version 17.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

/// Attribute output_datatype, a code of TensorProto.DataType.
DType output_type(const Node& node) {
    const std::int64_t code = node.integer("output_datatype", 1);
    switch (code) {
        case 1: return DType::f32;
        case 10: return DType::f16;
        case 11: return DType::f64;
        case 16: return DType::bf16;
        default: node.fail(fmt::format("output_datatype={} is not supported; use a float type (1, 10, 11, 16)", code));
    }
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is the size, or one less for the symmetric window.
Outputs cosine_window(const Node& node, double a0, double a1, double a2) {
    const double given = node.scalar(0);
    if (given < 0 || given > 0x1p30) node.fail(fmt::format("size {} is out of range", given));
    const auto size = static_cast<std::int64_t>(given);
    Value y(output_type(node), {size});
    if (node.bounds()) y.err.resize(y.f.size());
    const double period = node.integer("periodic", 1) != 0 ? given : std::max(given - 1, 1.0);
    for (std::int64_t n = 0; n < size; ++n) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(n) / period;
        const auto at = static_cast<std::size_t>(n);
        y.f[at] = node.numerics().round(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
        // fp32: pi, its product and the quotient round the angle three times; factors, products and sums round once each, all at most 1.
        if (node.bounds()) y.err[at] = a1 * (3 * kU32 * angle + kSineAbsolute) + a2 * (6 * kU32 * angle + kSineAbsolute) + 7 * kU32;
    }
    return {std::move(y)};
}

}  // namespace

Outputs hann_window(const Node& node) { return cosine_window(node, 0.5, 0.5, 0); }
Outputs hamming_window(const Node& node) { return cosine_window(node, 25.0 / 46, 21.0 / 46, 0); }
Outputs blackman_window(const Node& node) { return cosine_window(node, 0.42, 0.5, 0.08); }

/// Triangles over the bins of a spectrum. Their corners are the floors of frequencies spaced evenly in mel; where fp32 may land on the other
/// side of an integer, the triangles that the corner belongs to are not bounded.
Outputs mel_weight_matrix(const Node& node) {
    const double mels = node.scalar(0), length = node.scalar(1), rate = node.scalar(2), low = node.scalar(3), high = node.scalar(4);
    if (!(mels >= 1 && mels < 0x1p20 && length >= 1 && length < 0x1p24 && rate >= 1)) node.fail(fmt::format("{} bins of {} at {} Hz are out of range", mels, length, rate));
    if (!(low >= 0 && high >= low)) node.fail(fmt::format("edges {} and {} Hz are out of order", low, high));
    const auto count = static_cast<std::int64_t>(mels), bins = static_cast<std::int64_t>(length) / 2 + 1;
    const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const double step = (mel(high) - mel(low)) / (mels + 2);
    std::vector<std::int64_t> corner;
    std::vector<bool> sure;
    for (std::int64_t i = 0; i < count + 2; ++i) {
        const double m = mel(low) + static_cast<double>(i) * step, hertz = 700 * (std::pow(10, m / 2595) - 1), at = (length + 1) * hertz / rate;
        // An error of ten roundings of the mel value grows by the power's slope, and as many follow it.
        const double off = (length + 1) / rate * 10 * kU32 * ((m * std::numbers::ln10 / 2595 + 1) * (hertz + 700) + hertz);
        if (at >= static_cast<double>(bins)) node.fail(fmt::format("an edge of {} Hz is past half of {} Hz", high, rate));
        corner.push_back(static_cast<std::int64_t>(std::floor(at)));
        sure.push_back(at == 0 || std::floor(at - off) == std::floor(at + off));
    }
    Value y(output_type(node), {bins, count});
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::int64_t i = 0; i < count; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const auto left = corner[k], centre = corner[k + 1], right = corner[k + 2];
        for (std::int64_t bin = 0; bin < bins; ++bin) {
            double v = 0;
            if (bin == centre) v = 1;
            else if (left <= bin && bin < centre) v = static_cast<double>(bin - left) / static_cast<double>(centre - left);
            else if (centre < bin && bin < right) v = static_cast<double>(right - bin) / static_cast<double>(right - centre);
            const auto at = static_cast<std::size_t>(bin * count + i);
            y.f[at] = node.numerics().round(v);
            if (node.bounds()) y.err[at] = sure[k] && sure[k + 1] && sure[k + 2] ? 2 * rounding(v) : HUGE_VAL;
        }
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
