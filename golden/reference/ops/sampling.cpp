// Operators that read between the elements of their input: GridSample-16, -20, -22; AffineGrid-20; DeformConv-19, -22.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/matrix.hpp"
#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/parallel.hpp"
#include "golden/reference/window.hpp"

namespace assay::golden::ops {
namespace {

constexpr double kFar = 0x1p40;          ///< past this no coordinate names an element; NaN and infinities count as far too
constexpr std::size_t kMaxSpatial = 6;  ///< 4^6 taps of a cubic sample are as many as make sense

enum class Padding { zeros, border, reflection };
enum class Kind { nearest, linear, cubic };

struct Tap {
    std::int64_t index = -1;  ///< along one dimension; -1: padding, which is zero
    double weight = 1;
};
struct AxisTaps {
    std::array<Tap, 4> taps;
    int count = 0;
};

/// A coordinate folded back at both ends of [low, high] as often as needed.
double reflected(double x, double low, double high) {
    const double range = high - low;
    if (range <= 0) return low;
    if (x >= low && x <= high) return x;
    const double away = x < low ? low - x : x - high, turns = std::floor(away / range), rest = away - turns * range;
    const bool even = std::fmod(turns, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

struct Sampler {
    Kind kind = Kind::linear;
    Padding padding = Padding::zeros;
    bool align = false;

    /// The element that position i (whole, maybe outside) of a dimension reads.
    std::int64_t element(double i, std::int64_t dim) const {
        const auto d = static_cast<double>(dim);
        if (padding == Padding::border) return static_cast<std::int64_t>(std::clamp(i, 0.0, d - 1));
        if (padding == Padding::reflection)
            return std::clamp<std::int64_t>(static_cast<std::int64_t>(align ? reflected(i, 0, d - 1) : reflected(i, -0.5, d - 0.5)), 0, dim - 1);
        return i >= 0 && i < d ? static_cast<std::int64_t>(i) : -1;
    }

    AxisTaps taps(double x, std::int64_t dim) const {
        AxisTaps out;
        const auto d = static_cast<double>(dim);
        if (!(std::fabs(x) < kFar)) {
            if (padding != Padding::zeros) out.taps[static_cast<std::size_t>(out.count++)] = {x > 0 ? dim - 1 : 0, 1};
            return out;
        }
        if (kind == Kind::nearest) x = std::nearbyint(x);  // halves to even
        const double low = align ? 0.0 : -0.5, high = align ? d - 1 : d - 0.5;
        if (x < low || x > high) {
            if (padding == Padding::border) x = std::clamp(x, 0.0, d - 1);
            if (padding == Padding::reflection) x = reflected(x, low, high);
        }
        const double base = std::floor(x), t = x - base;
        const auto add = [&](double i, double weight) { out.taps[static_cast<std::size_t>(out.count++)] = {element(i, dim), weight}; };
        if (kind == Kind::nearest) {
            add(padding == Padding::reflection ? std::trunc(x) : x, 1);
        } else if (kind == Kind::linear) {
            add(base, 1 - t);
            add(base + 1, t);
        } else {
            constexpr double a = -0.75;
            const auto near = [&](double u) { return ((a + 2) * u - (a + 3)) * u * u + 1; };
            const auto far = [&](double u) { return ((a * u - 5 * a) * u + 8 * a) * u - 4 * a; };
            add(base - 1, far(1 + t));
            add(base, near(t));
            add(base + 1, near(1 - t));
            add(base + 2, far(2 - t));
        }
        return out;
    }
};

/// One sample's elements: products of its taps along every dimension.
struct Point {
    std::vector<std::int64_t> index;  ///< in a plane; -1: zero
    std::vector<double> weight;
};

Point combine(const std::vector<AxisTaps>& axes, const Shape& spatial) {
    Point out{{0}, {1.0}};
    for (std::size_t d = 0; d < axes.size(); ++d) {
        Point next;
        for (std::size_t i = 0; i < out.index.size(); ++i)
            for (int t = 0; t < axes[d].count; ++t) {
                const Tap& tap = axes[d].taps[static_cast<std::size_t>(t)];
                next.index.push_back(out.index[i] < 0 || tap.index < 0 ? -1 : out.index[i] * spatial[d] + tap.index);
                next.weight.push_back(out.weight[i] * tap.weight);
            }
        out = std::move(next);
    }
    return out;
}

struct Sample {
    double value = 0, error = 0;
};

/// `moved`: how far the chip's own coordinates may lie from these, summed over the dimensions, in elements.
Sample read(const Value& x, std::int64_t plane, const Point& point, double moved, Kind kind, const Numerics& num) {
    double sum = 0, magnitude = 0, error = 0, low = 0, high = 0;
    for (std::size_t i = 0; i < point.index.size(); ++i) {
        const double v = point.index[i] < 0 ? 0.0 : x.at(plane + point.index[i]), w = point.weight[i];
        sum = num.round(sum + num.round(num.round(w) * v));
        magnitude += std::fabs(w * v);
        if (point.index[i] >= 0) error += std::fabs(w) * x.error(plane + point.index[i]);
        low = i ? std::min(low, v) : v;
        high = i ? std::max(high, v) : v;
    }
    if (kind == Kind::nearest) return {sum, error};
    // A weight changes by at most 1 an element (linear), or the absolute derivatives of the four cubic weights add up to less than 4: the sample
    // moves by the spread of what it reads as often. The spread of the next cell is taken to be no more than as much again.
    const double slope = (kind == Kind::cubic ? 4 : 1) * 2 * (high - low);
    const auto n = static_cast<double>(point.index.size());
    return {sum, error + moved * slope + (n + 4) * kU32 * magnitude + kFlush};
}

}  // namespace

Outputs grid_sample(const Node& node) {
    const Value &x = node.in(0), &grid = node.real(1);
    const std::size_t rank = x.shape.size() >= 2 ? x.shape.size() - 2 : 0;
    if (rank < 1 || rank > kMaxSpatial || grid.shape.size() != x.shape.size() || grid.shape.back() != static_cast<std::int64_t>(rank) ||
        grid.shape[0] != x.shape[0])
        node.fail(fmt::format("input {} and grid {}", to_string(x.shape), to_string(grid.shape)));
    Sampler sampler;
    const bool old = node.version() < 20;
    const std::string mode = node.text("mode", old ? "bilinear" : "linear"), padding = node.text("padding_mode", "zeros");
    if (mode == (old ? "bilinear" : "linear"))
        sampler.kind = Kind::linear;
    else if (mode == (old ? "bicubic" : "cubic"))
        sampler.kind = Kind::cubic;
    else if (mode == "nearest")
        sampler.kind = Kind::nearest;
    else
        node.fail(fmt::format("mode=\"{}\" is not known; use {}", mode, old ? "bilinear, bicubic or nearest" : "linear, cubic or nearest"));
    if (padding == "border")
        sampler.padding = Padding::border;
    else if (padding == "reflection")
        sampler.padding = Padding::reflection;
    else if (padding != "zeros")
        node.fail(fmt::format("padding_mode=\"{}\" is not known; use zeros, border or reflection", padding));
    sampler.align = node.integer("align_corners", 0) != 0;
    if (!x.floating() && sampler.kind != Kind::nearest) node.fail(fmt::format("mode=\"{}\" of {}", mode, name_of(x.dtype)));
    const Shape spatial(x.shape.begin() + 2, x.shape.end());
    const std::int64_t plane = element_count(spatial), points = extent(grid.shape, 1, grid.shape.size() - 1);
    Shape shape{x.shape[0], x.shape[1]};
    shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    Value y(x.dtype, shape);
    if (plane == 0 && y.count() > 0) node.fail(fmt::format("input {} has no elements to sample", to_string(x.shape)));
    const bool bounds = node.bounds() && y.floating();
    if (bounds) y.err.resize(y.f.size());
    const Numerics& num = node.numerics();
    parallel_for(x.shape[0] * points, static_cast<double>(y.count()) * 8, [&](std::int64_t job) {
        const std::int64_t n = job / points, p = job % points;
        std::vector<AxisTaps> axes(rank);
        double moved = 0;
        bool tie = false;
        for (std::size_t d = 0; d < rank; ++d) {
            const std::int64_t at = job * static_cast<std::int64_t>(rank) + static_cast<std::int64_t>(rank - 1 - d);  // x, y, z: the last dimension first
            const double g = grid.at(at), size = static_cast<double>(spatial[d]);
            const double position = sampler.align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
            // Sum, product, difference: a rounding each, of no more than the size and the position; the grid's own error is scaled by half the size.
            const double error = grid.error(at) * size / 2 + 4 * kU32 * (std::fabs(position) + size);
            moved += error;
            tie |= std::fabs(position - std::floor(position) - 0.5) <= error;
            axes[d] = sampler.taps(position, spatial[d]);
        }
        const Point point = combine(axes, spatial);
        for (std::int64_t c = 0; c < x.shape[1]; ++c) {
            const std::int64_t first = (n * x.shape[1] + c) * plane, to = (n * x.shape[1] + c) * points + p;
            if (!y.floating()) {
                y.n[static_cast<std::size_t>(to)] = point.index.empty() || point.index[0] < 0 ? 0 : x.n[static_cast<std::size_t>(first + point.index[0])];
                continue;
            }
            const Sample sample = read(x, first, point, moved, sampler.kind, num);
            y.f[static_cast<std::size_t>(to)] = sample.value;
            // Halfway between two elements either is honest, and which ones these are is not followed up.
            if (bounds) y.err[static_cast<std::size_t>(to)] = sampler.kind == Kind::nearest && tie ? HUGE_VAL : sample.error;
        }
    });
    return {std::move(y)};
}

Outputs affine_grid(const Node& node) {
    const Value& theta = node.real(0);
    const std::vector<std::int64_t> size = node.integers(1);
    const std::int64_t rank = static_cast<std::int64_t>(size.size()) - 2;
    if ((rank != 2 && rank != 3) || theta.shape != Shape{size[0], rank, rank + 1})
        node.fail(fmt::format("theta {} and size {}", to_string(theta.shape), to_string(size)));
    const bool align = node.integer("align_corners", 0) != 0;
    Shape shape{size[0]};
    shape.insert(shape.end(), size.begin() + 2, size.end());
    const Shape spatial(size.begin() + 2, size.end());
    shape.push_back(rank);
    Value y(theta.dtype, shape);
    if (node.bounds()) y.err.resize(y.f.size());
    const Numerics& num = node.numerics();
    const std::int64_t points = element_count(spatial);
    for (std::int64_t job = 0; job < size[0] * points; ++job) {
        std::int64_t rest = job % points;
        std::array<double, 4> base{};  // x, y, z, 1
        for (std::int64_t d = rank; d-- > 0;) {
            const std::int64_t dim = spatial[static_cast<std::size_t>(d)], i = rest % dim;
            rest /= dim;
            const auto at = static_cast<std::size_t>(rank - 1 - d);
            base[at] = !align ? static_cast<double>(2 * i + 1) / static_cast<double>(dim) - 1
                       : dim > 1 ? 2 * static_cast<double>(i) / static_cast<double>(dim - 1) - 1
                                 : 0.0;
            base[at] = num.round(base[at]);
        }
        base[static_cast<std::size_t>(rank)] = 1;
        for (std::int64_t r = 0; r < rank; ++r) {
            double sum = 0, magnitude = 0, error = 0;
            for (std::int64_t c = 0; c <= rank; ++c) {
                const std::int64_t at = ((job / points) * rank + r) * (rank + 1) + c;
                const double b = base[static_cast<std::size_t>(c)];
                sum = num.round(sum + num.round(theta.at(at) * b));
                magnitude += std::fabs(theta.at(at)) * (std::fabs(b) + 1);  // a position is the difference of a quotient and 1
                error += theta.error(at) * std::fabs(b);
            }
            const auto to = static_cast<std::size_t>(job * rank + r);
            y.f[to] = sum;
            if (node.bounds()) y.err[to] = error + static_cast<double>(rank + 3) * kU32 * magnitude + kFlush;
        }
    }
    return {std::move(y)};
}

Outputs deform_conv(const Node& node) {
    const Value &x = node.real(0), &w = node.real(1), &offset = node.real(2);
    const std::size_t rank = x.shape.size() >= 3 ? x.shape.size() - 2 : 0;
    const std::int64_t groups = node.integer("group", 1), offset_groups = node.integer("offset_group", 1);
    if (rank < 1 || rank > kMaxSpatial || w.rank() != x.rank() || groups < 1 || offset_groups < 1 || x.shape[1] % groups || w.shape[0] % groups ||
        w.shape[1] != x.shape[1] / groups || x.shape[1] % offset_groups)
        node.fail(fmt::format("group={}, offset_group={}: input {} and weights {} do not fit", groups, offset_groups, to_string(x.shape), to_string(w.shape)));
    const Shape spatial(x.shape.begin() + 2, x.shape.end());
    const Window window = read_window(node, spatial, Shape(w.shape.begin() + 2, w.shape.end()), false);
    const std::int64_t batch = x.shape[0], channels = x.shape[1], positions = window.positions, taps = window.taps;
    const auto dims = static_cast<std::int64_t>(rank);
    const auto check = [&](const Value& v, std::int64_t depth, const char* what) {
        Shape wanted{batch, depth};
        wanted.insert(wanted.end(), window.out.begin(), window.out.end());
        if (v.shape != wanted) node.fail(fmt::format("{} of {}, must be {}", what, to_string(v.shape), to_string(wanted)));
    };
    check(offset, offset_groups * taps * dims, "offset");
    const Value* mask = node.has(4) ? &node.real(4) : nullptr;
    if (mask) check(*mask, offset_groups * taps, "mask");
    std::vector<double> bias, bias_err;
    if (node.has(3)) {
        if (node.real(3).count() != w.shape[0]) node.fail(fmt::format("bias of {} elements for {} filters", node.in(3).count(), w.shape[0]));
        bias = node.in(3).f;
        bias_err = node.in(3).err;
    }
    Shape shape{batch, w.shape[0]};
    shape.insert(shape.end(), window.out.begin(), window.out.end());
    Value y(x.dtype, shape);
    const Numerics& num = node.numerics();
    if (num.bounds()) y.err.resize(y.f.size());
    const Sampler sampler{Kind::linear, Padding::zeros, true};
    const std::int64_t in_group = channels / groups, out_group = w.shape[0] / groups, depth = taps * in_group;
    check_size({depth, positions});
    for (std::int64_t n = 0; n < batch; ++n)
        for (std::int64_t g = 0; g < groups; ++g) {
            Operand weights{Matrix(out_group, depth), {}}, columns{Matrix(depth, positions), {}};
            if (!w.err.empty()) weights.err.resize(out_group, depth);
            if (num.bounds()) columns.err.resize(depth, positions);
            for (std::int64_t k = 0; k < depth; ++k) {
                const std::int64_t tap = k / in_group, channel = g * in_group + k % in_group, og = channel / (channels / offset_groups);
                for (std::int64_t o = 0; o < out_group; ++o) {
                    const std::int64_t at = ((g * out_group + o) * in_group + k % in_group) * taps + tap;
                    weights.value(o, k) = w.at(at);
                    if (!w.err.empty()) weights.err(o, k) = w.error(at);
                }
                for (std::int64_t p = 0; p < positions; ++p) {
                    std::vector<AxisTaps> axes(rank);
                    double moved = 0;
                    std::int64_t rest_tap = tap, rest = p;
                    for (std::size_t d = rank; d-- > 0;) {
                        const std::int64_t i = rest_tap % window.kernel[d], o = rest % window.out[d];
                        rest_tap /= window.kernel[d];
                        rest /= window.out[d];
                        const std::int64_t at = ((n * offset_groups + og) * taps * dims + tap * dims + static_cast<std::int64_t>(d)) * positions + p;
                        const auto start = static_cast<double>(o * window.strides[d] - window.pads_begin[d] + i * window.dilations[d]);
                        const double position = start + offset.at(at);
                        moved += offset.error(at) + 2 * kU32 * (std::fabs(start) + std::fabs(position) + 1);
                        axes[d] = sampler.taps(position, spatial[d]);
                    }
                    Sample s = read(x, (n * channels + channel) * window.in_count, combine(axes, spatial), moved, Kind::linear, num);
                    if (mask) {
                        const std::int64_t at = ((n * offset_groups + og) * taps + tap) * positions + p;
                        const double product = num.round(s.value * mask->at(at));
                        s.error = std::fabs(mask->at(at)) * s.error + (std::fabs(s.value) + s.error) * mask->error(at) + rounding(product);
                        s.value = product;
                    }
                    columns.value(k, p) = s.value;
                    if (num.bounds()) columns.err(k, p) = s.error;
                }
            }
            Product product = multiply(weights, columns, num, true);
            const auto part = [&](const std::vector<double>& all) {
                return all.empty() ? all : std::vector<double>(all.begin() + g * out_group, all.begin() + (g + 1) * out_group);
            };
            add_bias(product, part(bias), part(bias_err), true, num);
            const std::int64_t to = (n * w.shape[0] + g * out_group) * positions;
            std::copy_n(product.value.data(), product.value.size(), y.f.begin() + to);
            if (num.bounds()) std::copy_n(product.err.data(), product.err.size(), y.err.begin() + to);
        }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
