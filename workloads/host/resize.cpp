// Resize (10 to 19) and Upsample (7, 9): each resized dimension is a list of weighted taps for every output index; dimensions follow one
// another, since all interpolations are separable.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

struct Tap {
    I64 source;
    double weight;
};

struct Dimension {
    I64 in = 1, out = 1;
    double scale = 1, roi_begin = 0, roi_end = 1;
    bool resized = false;
};

struct Mode {
    std::string kind = "nearest", coordinates = "half_pixel", rounding = "round_prefer_floor";
    double cubic = -0.75, extrapolation = 0;
    bool exclude_outside = false, antialias = false;
};

double source_of(const Call& c, const Mode& m, const Dimension& d, I64 i) {
    const double x = static_cast<double>(i), in = static_cast<double>(d.in), wide = d.scale * in;
    if (m.coordinates == "half_pixel") return (x + 0.5) / d.scale - 0.5;
    if (m.coordinates == "pytorch_half_pixel") return d.out > 1 ? (x + 0.5) / d.scale - 0.5 : 0;
    if (m.coordinates == "asymmetric") return x / d.scale;
    if (m.coordinates == "align_corners") return wide == 1 || d.out == 1 ? 0 : x * (in - 1) / (wide - 1);
    if (m.coordinates == "half_pixel_symmetric") return in / 2 * (1 - static_cast<double>(d.out) / wide) + (x + 0.5) / d.scale - 0.5;
    if (m.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / d.scale;
    if (m.coordinates == "tf_crop_and_resize") {
        if (d.out <= 1) return 0.5 * (d.roi_begin + d.roi_end) * (in - 1);
        return d.roi_begin * (in - 1) + x * (d.roi_end - d.roi_begin) * (in - 1) / static_cast<double>(d.out - 1);
    }
    c.fail(fmt::format("coordinate_transformation_mode=\"{}\" is unknown; repair the model", m.coordinates));
}

double cubic_weight(double x, double a) {
    x = std::fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

I64 nearest(const Call& c, const Mode& m, double x) {
    double r = 0;
    if (m.rounding == "round_prefer_floor" || m.rounding.empty()) r = std::ceil(x - 0.5);
    else if (m.rounding == "round_prefer_ceil") r = std::floor(x + 0.5);
    else if (m.rounding == "floor" || m.rounding == "simple") r = std::floor(x);
    else if (m.rounding == "ceil") r = std::ceil(x);
    else c.fail(fmt::format("nearest_mode=\"{}\" is unknown; repair the model", m.rounding));
    return static_cast<I64>(r);
}

std::vector<Tap> taps_of(const Call& c, const Mode& m, const Dimension& d, double x) {
    const auto clamp = [&](double k) { return static_cast<I64>(std::clamp(k, 0.0, static_cast<double>(d.in - 1))); };
    if (m.kind == "nearest") return {{clamp(static_cast<double>(nearest(c, m, x))), 1.0}};
    // The kernel's half width in input elements; with antialias it widens as the output narrows (Resize-18).
    const double shrink = m.antialias ? std::min(d.scale, 1.0) : 1.0, half = (m.kind == "cubic" ? 2.0 : 1.0) / shrink;
    if (half > 1e6) c.fail("an antialiased scale below 1e-6; repair the model");
    std::vector<Tap> taps;
    double sum = 0;
    for (double k = std::floor(x - half) + 1; k < x + half; ++k) {
        const bool outside = k < 0 || k > static_cast<double>(d.in - 1);
        const double at = (k - x) * shrink;
        const double weight = outside && m.exclude_outside ? 0 : m.kind == "cubic" ? cubic_weight(at, m.cubic) : std::max(0.0, 1 - std::fabs(at));
        taps.push_back({clamp(k), weight});
        sum += weight;
    }
    if (m.antialias || m.exclude_outside)
        for (Tap& t : taps) t.weight = sum == 0 ? 0 : t.weight / sum;
    return taps;
}

Tensor interpolate(const Call& c, const Mode& m, const std::vector<Dimension>& dims) {
    const Tensor& x = c.in(0);
    Shape shape = x.shape, result;
    for (const Dimension& d : dims) result.push_back(d.out);
    Tensor out = c.make(x.dtype, result);
    std::vector<double> v = reals_of(x);
    std::vector<std::vector<bool>> outside(dims.size());
    bool any_outside = false;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        const Dimension& d = dims[axis];
        outside[axis].assign(static_cast<std::size_t>(d.out), false);
        const bool crops = m.coordinates == "tf_crop_and_resize";
        if (!d.resized || (d.in == d.out && d.scale == 1 && !crops)) continue;
        if (d.in == 0) c.bad_shape(0, "nothing to interpolate; repair the model");
        std::vector<std::vector<Tap>> taps;
        double total = 0;
        for (I64 i = 0; i < d.out; ++i) {
            const double at = source_of(c, m, d, i);
            if (!std::isfinite(at) || std::fabs(at) > 1e15) c.fail("a scale that maps to no element; repair the model");
            if (crops && (at < 0 || at > static_cast<double>(d.in - 1))) any_outside = outside[axis][static_cast<std::size_t>(i)] = true;
            taps.push_back(taps_of(c, m, d, at));
            total += static_cast<double>(taps.back().size());
        }
        const I64 outer = extent(shape, 0, axis), inner = extent(shape, axis + 1, shape.size());
        c.work(total * static_cast<double>(outer) * static_cast<double>(inner));
        shape[axis] = d.out;
        c.make(DType::u8, {std::min(element_count(shape), kMaxElements + 1)});
        std::vector<double> y(static_cast<std::size_t>(element_count(shape)), 0.0);
        for (I64 o = 0; o < outer; ++o)
            for (I64 i = 0; i < d.out; ++i)
                for (const Tap& t : taps[static_cast<std::size_t>(i)]) {
                    const double* from = v.data() + (o * d.in + t.source) * inner;
                    double* to = y.data() + (o * d.out + i) * inner;
                    for (I64 k = 0; k < inner; ++k) to[k] += t.weight * from[k];
                }
        v = std::move(y);
    }
    if (any_outside) {
        const auto strides = strides_of(result);
        for (std::size_t i = 0; i < v.size(); ++i)
            for (std::size_t d = 0; d < dims.size(); ++d)
                if (outside[d][static_cast<std::size_t>(static_cast<I64>(i) / strides[d] % result[d])]) v[i] = m.extrapolation;
    }
    store(out, 0, std::span<const double>(v));
    return out;
}

/// Output extents from scales: floor(extent * scale), the product in float32 as the scales are.
void apply_scales(const Call& c, std::vector<Dimension>& dims, const std::vector<std::size_t>& axes, const std::vector<double>& scales) {
    if (scales.size() != axes.size()) c.fail(fmt::format("{} scales for {} dimensions; repair the model", scales.size(), axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
        Dimension& d = dims[axes[i]];
        if (!(scales[i] > 0) || scales[i] > 1e9) c.fail(fmt::format("scale {} must be positive; repair the model", scales[i]));
        d.scale = scales[i];
        d.out = static_cast<I64>(std::floor(static_cast<float>(d.in) * static_cast<float>(scales[i])));
        d.resized = true;
    }
}

std::vector<Dimension> dimensions_of(const Tensor& x) {
    std::vector<Dimension> dims(x.shape.size());
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i].in = dims[i].out = x.shape[i];
    return dims;
}

std::vector<std::size_t> all_axes(std::size_t rank) {
    std::vector<std::size_t> axes(rank);
    for (std::size_t i = 0; i < rank; ++i) axes[i] = i;
    return axes;
}

/// Upsample-7 (attribute scales), Upsample-9 and Resize-10 (input scales): asymmetric coordinates, floor.
Results upsample(const Call& c) {
    const Tensor& x = c.in(0);
    Mode m;
    m.kind = c.text("mode", "nearest");
    if (m.kind == "bilinear") m.kind = "linear";
    c.require(m.kind == "nearest" || m.kind == "linear", "mode must be nearest or linear; repair the model");
    m.coordinates = "asymmetric";
    m.rounding = "floor";
    auto dims = dimensions_of(x);
    std::vector<double> scales;
    if (c.has(1))
        scales = reals_of(c.in(1));
    else
        for (const float s : c.reals("scales")) scales.push_back(s);
    apply_scales(c, dims, all_axes(dims.size()), scales);
    return one(interpolate(c, m, dims));
}

Results resize(const Call& c) {
    if (c.opset < 11) return upsample(c);
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    Mode m;
    m.kind = c.text("mode", "nearest");
    c.require(m.kind == "nearest" || m.kind == "linear" || m.kind == "cubic", "mode must be nearest, linear or cubic; repair the model");
    m.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
    m.rounding = c.text("nearest_mode", "round_prefer_floor");
    m.cubic = c.real("cubic_coeff_a", -0.75f);
    m.extrapolation = c.real("extrapolation_value", 0.0f);
    m.exclude_outside = c.integer("exclude_outside", 0) != 0;
    m.antialias = c.integer("antialias", 0) != 0;
    auto dims = dimensions_of(x);
    std::vector<std::size_t> axes = all_axes(rank);
    if (c.attribute("axes")) {
        axes.clear();
        for (const I64 axis : c.integers("axes")) axes.push_back(c.axis(axis, rank));
    }
    if (m.coordinates == "tf_crop_and_resize") {
        const auto roi = reals_of(c.in(1));
        if (roi.size() != 2 * axes.size()) c.bad_shape(1, fmt::format("{} entries are expected; repair the model", 2 * axes.size()));
        for (std::size_t i = 0; i < axes.size(); ++i) {
            dims[axes[i]].roi_begin = roi[i];
            dims[axes[i]].roi_end = roi[axes.size() + i];
        }
    }
    if (c.has(2) && c.in(2).count() > 0) {
        apply_scales(c, dims, axes, reals_of(c.in(2)));
        return one(interpolate(c, m, dims));
    }
    if (!c.has(3)) c.fail("neither scales nor sizes are given; repair the model");
    auto sizes = c.list(3);
    if (sizes.size() != axes.size()) c.fail(fmt::format("{} sizes for {} dimensions; repair the model", sizes.size(), axes.size()));
    const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
    double kept = policy == "not_larger" ? HUGE_VAL : 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const double own = static_cast<double>(sizes[i]) / static_cast<double>(dims[axes[i]].in);
        kept = policy == "not_larger" ? std::min(kept, own) : std::max(kept, own);
    }
    c.require(policy == "stretch" || policy == "not_larger" || policy == "not_smaller", "keep_aspect_ratio_policy is unknown; repair the model");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        Dimension& d = dims[axes[i]];
        if (sizes[i] < 0 || sizes[i] > kMaxElements) c.fail(fmt::format("a size of {}; repair the model", sizes[i]));
        d.resized = true;
        d.scale = policy == "stretch" ? static_cast<double>(sizes[i]) / static_cast<double>(d.in) : kept;
        const double rounded = std::floor(d.scale * static_cast<double>(d.in) + 0.5);
        if (!(rounded <= static_cast<double>(kMaxElements))) c.fail("a size out of range; repair the model");
        d.out = policy == "stretch" ? sizes[i] : static_cast<I64>(rounded);
    }
    return one(interpolate(c, m, dims));
}

}  // namespace

std::span<const Operator> resize_operators() {
    static constexpr Operator table[] = {{"Resize", resize, 10}, {"Upsample", upsample, 7}};
    return table;
}

}  // namespace assay::workloads::hostops
