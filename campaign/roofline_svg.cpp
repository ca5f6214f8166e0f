// The roofline as a picture.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "campaign/markup.hpp"
#include "campaign/roofline.hpp"

namespace assay::campaign {
namespace {

constexpr double kWidth = 760, kHeight = 420, kLeft = 70, kRight = 150, kTop = 16, kBottom = 44;

/// Dark enough on white, apart for colour-blind readers (Okabe and Ito).
const char* colour_of(Limit limit) {
    switch (limit) {
        case Limit::mxu: return "#0072b2";
        case Limit::vpu: return "#d55e00";
        case Limit::hbm: return "#009e73";
        case Limit::latency: return "#cc79a7";
        case Limit::dependency: return "#e69f00";
        default: return "#777777";
    }
}

/// A logarithmic axis over whole decades.
struct Axis {
    double low = 0, high = 1;        ///< powers of ten
    double from = 0, to = 0;         ///< pixels
    double at(double value) const { return from + (std::log10(value) - low) / (high - low) * (to - from); }
};

Axis axis(double least, double most, double from, double to) { return {std::floor(std::log10(least)), std::max(std::ceil(std::log10(most)), std::floor(std::log10(least)) + 1), from, to}; }

std::string grid(const Axis& x, const Axis& y) {
    std::string svg;
    for (double e = x.low; e <= x.high; ++e) {
        const double at = x.at(std::pow(10, e));
        svg += fmt::format("<line x1={0:.1f} x2={0:.1f} y1={1} y2={2} stroke=\"#ddd\" /><text x={0:.1f} y={3} text-anchor=middle>{4:g}</text>\n", at, kTop, kHeight - kBottom,
                           kHeight - kBottom + 16, std::pow(10, e));
    }
    for (double e = y.low; e <= y.high; ++e) {
        const double at = y.at(std::pow(10, e));
        svg += fmt::format("<line x1={0} x2={1} y1={2:.1f} y2={2:.1f} stroke=\"#ddd\" /><text x={3} y={4:.1f} text-anchor=end>{5:g}</text>\n", kLeft, kWidth - kRight, at, kLeft - 6,
                           at + 4, std::pow(10, e));
    }
    return svg + fmt::format("<text x={} y={} text-anchor=middle>operations a byte of device memory</text><text transform=\"translate(14 {}) rotate(-90)\" "
                             "text-anchor=middle>operations a cycle</text>\n",
                             (kLeft + kWidth - kRight) / 2, kHeight - 8, (kTop + kHeight - kBottom) / 2);
}

/// The slope of device memory up to `peak`, and the flat roof after it.
std::string roof(const Axis& x, const Axis& y, double bandwidth, double peak, const char* title) {
    const double left = std::max(std::pow(10, x.low), std::pow(10, y.low) / bandwidth), ridge = std::max(peak / bandwidth, left), right = std::pow(10, x.high);
    return fmt::format("<polyline fill=none stroke=\"#444\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" /><text x={} y={:.1f}>{} {:g}</text>\n", x.at(left),
                       y.at(std::min(left * bandwidth, peak)), x.at(std::min(ridge, right)), y.at(std::min(peak, right * bandwidth)), x.at(right),
                       y.at(std::min(peak, right * bandwidth)), kWidth - kRight + 6, y.at(peak) + 4, title, peak);
}

}  // namespace

std::string roofline_svg(const simkernel::Program& program, const std::vector<LayerRoofline>& layers, const simkernel::ChipConfig& chip) {
    std::vector<std::size_t> shown;
    std::uint64_t cycles = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        cycles += layers[i].cycles;
        if (layers[i].intensity > 0 && layers[i].achieved > 0) shown.push_back(i);
    }
    if (shown.empty()) return "";
    const Roofs top = roofs(chip, cores_of(program));
    const double matrix = 2 * top.mxu, vector = top.vpu, bandwidth = top.memory;
    double least_x = matrix / bandwidth, most_x = least_x, least_y = vector, most_y = matrix;
    for (const std::size_t i : shown) {
        least_x = std::min(least_x, layers[i].intensity), most_x = std::max(most_x, layers[i].intensity);
        least_y = std::min(least_y, layers[i].achieved), most_y = std::max(most_y, layers[i].achieved);
    }
    const Axis x = axis(least_x, most_x, kLeft, kWidth - kRight), y = axis(least_y, most_y, kHeight - kBottom, kTop);
    std::string svg = fmt::format("<svg width={} height={} role=img font-size=12>\n", kWidth, kHeight) + grid(x, y) + roof(x, y, bandwidth, matrix, "matrix unit") +
                      roof(x, y, bandwidth, vector, "vector unit");
    for (const std::size_t i : shown) {
        const LayerRoofline& layer = layers[i];
        const double radius = 3 + 14 * std::sqrt(static_cast<double>(layer.cycles) / static_cast<double>(std::max<std::uint64_t>(cycles, 1)));
        svg += fmt::format("<circle cx={:.1f} cy={:.1f} r={:.1f} fill=\"{}\" fill-opacity=.7><title>{} ({}): {} cycles, {:.3g} operations a byte, {:.3g} a cycle of {:.3g}, limited by "
                           "{}</title></circle>\n",
                           x.at(layer.intensity), y.at(layer.achieved), radius, colour_of(layer.limit), escape_markup(program.layers[i].name), escape_markup(program.layers[i].op),
                           layer.cycles, layer.intensity, layer.achieved, layer.attainable, name_of(layer.limit));
    }
    double row = kTop + 60;
    for (const Limit limit : {Limit::mxu, Limit::vpu, Limit::hbm, Limit::latency, Limit::dependency}) {
        svg += fmt::format("<circle cx={} cy={} r=5 fill=\"{}\" /><text x={} y={}>{}</text>\n", kWidth - kRight + 12, row + 60, colour_of(limit), kWidth - kRight + 22, row + 64, name_of(limit));
        row += 18;
    }
    return svg + "</svg>\n";
}

}  // namespace assay::campaign
