// GridSample and AffineGrid.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

double reflect(double x, double low, double high) {
    const double range = high - low;
    if (range <= 0) return low;
    const double from = x < low ? low - x : x > high ? x - high : -1;
    if (from < 0) return x;
    const double n = std::floor(from / range), r = from - n * range;
    const bool same_side = std::fmod(n, 2) == 0;
    return (x < low) == same_side ? low + r : high - r;
}

struct Tap {
    I64 source;  // -1: a padding zero
    double weight;
};

/// Taps of one dimension for a coordinate in elements.
std::vector<Tap> taps_of(double x, I64 n, const std::string& mode, const std::string& padding, bool corners) {
    const double low = corners ? 0.0 : -0.5, high = corners ? static_cast<double>(n - 1) : static_cast<double>(n) - 0.5;
    if (!std::isfinite(x)) x = -1e9;  // as far outside as any coordinate
    x = std::clamp(x, -1e9, 1e9);
    if (mode == "nearest") x = std::nearbyint(x);
    const auto pad = [&](double v) {
        if (v >= low && v <= high) return v;
        return padding == "border" ? std::clamp(v, 0.0, static_cast<double>(n - 1)) : padding == "reflection" ? reflect(v, low, high) : v;
    };
    const auto pixel = [&](double k) -> I64 {
        if (k >= 0 && k < static_cast<double>(n)) return static_cast<I64>(k);
        if (padding == "zeros") return -1;
        return static_cast<I64>(std::clamp(padding == "border" ? k : std::trunc(reflect(k, low, high)), 0.0, static_cast<double>(n - 1)));
    };
    x = pad(x);
    if (mode == "nearest") return {{pixel(std::trunc(x)), 1.0}};
    const double first = std::floor(x), t = x - first;
    if (mode == "linear") return {{pixel(first), 1 - t}, {pixel(first + 1), t}};
    constexpr double a = -0.75;
    const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    return {{pixel(first - 1), far(t + 1)}, {pixel(first), near(t)}, {pixel(first + 1), near(1 - t)}, {pixel(first + 2), far(2 - t)}};
}

/// GridSample-20 in any number of spatial dimensions; the grid's last coordinate is that of the first spatial dimension.
Results grid_sample(const Call& c) {
    const Tensor &x = c.in(0), &grid = c.in(1);
    if (x.shape.size() < 3 || grid.shape.size() != x.shape.size()) c.bad_shape(1, fmt::format("it does not fit the input {}; repair the model", to_string(x.shape)));
    const std::size_t rank = x.shape.size() - 2;
    if (grid.shape.back() != static_cast<I64>(rank) || grid.shape[0] != x.shape[0]) c.bad_shape(1, fmt::format("it does not fit the input {}; repair the model", to_string(x.shape)));
    std::string mode = c.text("mode", "linear");
    if (mode == "bilinear") mode = "linear";
    if (mode == "bicubic") mode = "cubic";
    const std::string padding = c.text("padding_mode", "zeros");
    c.require(mode == "linear" || mode == "cubic" || mode == "nearest", "mode must be linear, cubic or nearest; repair the model");
    c.require(padding == "zeros" || padding == "border" || padding == "reflection", "padding_mode must be zeros, border or reflection; repair the model");
    const bool corners = c.integer("align_corners", 0) != 0;
    Shape result{x.shape[0], x.shape[1]};
    result.insert(result.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    Tensor out = c.make(x.dtype, result);
    const auto v = reals_of(x), g = reals_of(grid);
    std::vector<double> y(static_cast<std::size_t>(out.count()), 0.0);
    const Shape spatial(x.shape.begin() + 2, x.shape.end());
    const auto strides = strides_of(spatial);
    const I64 plane = element_count(spatial), points = extent(result, 2, result.size()), channels = x.shape[1];
    c.work(static_cast<double>(y.size()) * std::pow(mode == "cubic" ? 4.0 : 2.0, static_cast<double>(rank)));
    for (const I64 e : spatial)
        if (e == 0 && !y.empty()) c.bad_shape(0, "nothing to sample; repair the model");
    std::vector<Tap> combined, next;
    for (I64 n = 0; n < x.shape[0]; ++n)
        for (I64 p = 0; p < points; ++p) {
            combined.assign(1, {0, 1.0});
            for (std::size_t d = 0; d < rank; ++d) {
                const double at = g[static_cast<std::size_t>((n * points + p) * static_cast<I64>(rank)) + (rank - 1 - d)];
                const double extent_ = static_cast<double>(spatial[d]);
                const auto taps = taps_of(corners ? (at + 1) / 2 * (extent_ - 1) : ((at + 1) * extent_ - 1) / 2, spatial[d], mode, padding, corners);
                next.clear();
                for (const Tap& a : combined)
                    for (const Tap& b : taps)
                        if (a.source >= 0 && b.source >= 0 && b.weight != 0) next.push_back({a.source + b.source * strides[d], a.weight * b.weight});
                combined.swap(next);
            }
            for (I64 ch = 0; ch < channels; ++ch) {
                double sum = 0;
                for (const Tap& t : combined) sum += t.weight * v[static_cast<std::size_t>((n * channels + ch) * plane + t.source)];
                y[static_cast<std::size_t>((n * channels + ch) * points + p)] = sum;
            }
        }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// AffineGrid-20: theta [N, d, d + 1] applied to the centres (or with align_corners the corners) of a grid over [-1, 1].
Results affine_grid(const Call& c) {
    const Tensor& theta = c.in(0);
    const auto size = c.list(1);
    if (size.size() != 4 && size.size() != 5) c.bad_shape(1, "four or five sizes are expected; repair the model");
    const auto rank = static_cast<I64>(size.size()) - 2;
    if (theta.shape != Shape{size[0], rank, rank + 1}) c.bad_shape(0, fmt::format("{}x{}x{} is expected; repair the model", size[0], rank, rank + 1));
    const bool corners = c.integer("align_corners", 0) != 0;
    Shape result{size[0]};
    result.insert(result.end(), size.begin() + 2, size.end());
    result.push_back(rank);
    Tensor out = c.make(theta.dtype, result);
    const auto t = reals_of(theta);
    std::vector<double> y(static_cast<std::size_t>(out.count()));
    const Shape spatial(size.begin() + 2, size.end());
    const auto strides = strides_of(spatial);
    const I64 points = element_count(spatial);
    for (I64 n = 0; n < size[0]; ++n)
        for (I64 p = 0; p < points; ++p)
            for (I64 r = 0; r < rank; ++r) {
                double sum = t[static_cast<std::size_t>((n * rank + r) * (rank + 1) + rank)];
                for (I64 k = 0; k < rank; ++k) {  // coordinate k runs along the last spatial dimension but k
                    const auto d = static_cast<std::size_t>(rank - 1 - k);
                    const double i = static_cast<double>(p / strides[d] % spatial[d]), extent_ = static_cast<double>(spatial[d]);
                    const double at = corners ? (extent_ > 1 ? -1 + 2 * i / (extent_ - 1) : -1) : -1 + (2 * i + 1) / extent_;
                    sum += t[static_cast<std::size_t>((n * rank + r) * (rank + 1) + k)] * at;
                }
                y[static_cast<std::size_t>((n * points + p) * rank + r)] = sum;
            }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> grid_operators() {
    static constexpr Operator table[] = {{"AffineGrid", affine_grid, 20}, {"GridSample", grid_sample, 16}};
    return table;
}

}  // namespace assay::workloads::hostops
