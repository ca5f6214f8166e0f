// Resize-10, -11, -13, -18, -19 and Upsample-7, -9: along one axis at a time, each output a weighted sum of inputs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/parallel.hpp"

namespace assay::golden::ops {
namespace {

struct Tap {
    std::int64_t index = 0;
    double weight = 1;
};
using Taps = std::vector<Tap>;  ///< of one output; empty: the extrapolation value

struct Rule {
    std::string mode = "nearest", coordinates = "asymmetric", nearest = "floor";
    double cubic = -0.75, extrapolation = 0;
    bool exclude_outside = false, antialias = false;
};

struct Axis {
    std::int64_t in = 1, out = 1;
    double scale = 1, roi_start = 0, roi_end = 1;
};

double original(const Node& node, const Rule& rule, const Axis& a, std::int64_t at) {
    // The specification's output length is the product before it is rounded down.
    const auto x = static_cast<double>(at), in = static_cast<double>(a.in), out = static_cast<double>(a.out), length = a.scale * in;
    if (rule.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
    if (rule.coordinates == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0.0;
    if (rule.coordinates == "align_corners") return a.out == 1 ? 0.0 : x * (in - 1) / (length - 1);
    if (rule.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
    if (rule.coordinates == "asymmetric") return x / a.scale;
    if (rule.coordinates == "half_pixel_symmetric") return in / 2 * (1 - out / length) + (x + 0.5) / a.scale - 0.5;
    if (rule.coordinates == "tf_crop_and_resize")
        return a.out > 1 ? a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1) : 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    node.fail(fmt::format("coordinate_transformation_mode=\"{}\" is not known", rule.coordinates));
}

std::int64_t nearest_of(const Node& node, const Rule& rule, double x) {
    if (rule.nearest == "floor") return static_cast<std::int64_t>(std::floor(x));
    if (rule.nearest == "ceil") return static_cast<std::int64_t>(std::ceil(x));
    if (rule.nearest == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(x + 0.5));
    if (rule.nearest == "round_prefer_floor") return static_cast<std::int64_t>(std::ceil(x - 0.5));
    node.fail(fmt::format("nearest_mode=\"{}\" is not known", rule.nearest));
}

double kernel(const Rule& rule, double distance) {
    const double t = std::fabs(distance), a = rule.cubic;
    if (rule.mode == "linear") return std::max(0.0, 1 - t);
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0.0;
}

Taps taps_of(const Node& node, const Rule& rule, const Axis& a, std::int64_t at) {
    const double x = original(node, rule, a, at);
    // Also what a region of interest holds may lead here; past 2^40 no index is exact in fp32 anyway.
    if (!(std::fabs(x) < 0x1p40)) node.fail(fmt::format("output {} lies at {} of an input of {}", at, x, a.in));
    if (rule.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1))) return {};
    const auto inside = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, a.in - 1); };
    if (rule.mode == "nearest") return {{inside(nearest_of(node, rule, x)), 1.0}};
    // Smoothing stretches the kernel over as many inputs as one output stands for; what lies outside then never counts.
    const double squeeze = rule.antialias ? std::min(1.0, a.scale) : 1.0, radius = (rule.mode == "linear" ? 1 : 2) / squeeze;
    const bool drop_outside = rule.exclude_outside || rule.antialias;
    Taps taps;
    double sum = 0;
    auto i = static_cast<std::int64_t>(std::floor(x - radius)) + 1;
    if (drop_outside) i = std::clamp<std::int64_t>(i, 0, a.in);
    for (; static_cast<double>(i) < x + radius || taps.empty(); ++i) {
        const double weight = kernel(rule, (static_cast<double>(i) - x) * squeeze);
        if (static_cast<double>(i) > x + radius + 1 || (drop_outside && i >= a.in)) break;
        if (weight == 0 || (drop_outside && (i < 0 || i >= a.in))) continue;
        taps.push_back({inside(i), weight});
        sum += weight;
    }
    if (drop_outside)
        for (Tap& tap : taps) tap.weight /= sum;
    return taps;
}

/// The value resized along dimension d.
Value along(const Node& node, const Rule& rule, const Value& x, std::size_t d, const Axis& axis) {
    Shape shape = x.shape;
    shape[d] = axis.out;
    check_size(shape);
    const std::int64_t inner = element_count(Shape(x.shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, x.shape.end()));
    const std::int64_t outer = element_count(Shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(d)));
    std::vector<Taps> taps;
    std::vector<double> moved;  ///< how far coordinates formed in fp32 may lie from these: a handful of roundings, in elements
    for (std::int64_t o = 0; o < axis.out; ++o) {
        taps.push_back(taps_of(node, rule, axis, o));
        moved.push_back(4 * kU32 * (std::fabs(original(node, rule, axis, o)) + 1));
    }
    const bool moves = rule.mode == "nearest";
    if (moves) {
        std::vector<std::int64_t> index;
        index.reserve(static_cast<std::size_t>(element_count(shape)));
        for (std::int64_t a = 0; a < outer; ++a)
            for (const Taps& t : taps)
                for (std::int64_t i = 0; i < inner; ++i) index.push_back(t.empty() ? -1 : (a * axis.in + t[0].index) * inner + i);
        return x.gather(index, shape, rule.extrapolation);
    }
    const Numerics& num = node.numerics();
    Value y(x.dtype, shape);
    if (node.bounds()) y.err.resize(y.f.size());
    // Along the axis the kernel changes by at most 1 an element (linear), or the four cubic weights by less than 4 together.
    const double steepest = rule.mode == "linear" ? 1 : 4;
    parallel_for(outer, static_cast<double>(y.count()) * 8, [&](std::int64_t a) {
        auto to = static_cast<std::size_t>(a * axis.out * inner);
        for (std::size_t o = 0; o < taps.size(); ++o)
            for (std::int64_t i = 0; i < inner; ++i, ++to) {
                const Taps& t = taps[o];
                double sum = t.empty() ? rule.extrapolation : 0.0, error = 0, magnitude = 0;
                for (const Tap& tap : t) {
                    const std::int64_t from = (a * axis.in + tap.index) * inner + i;
                    sum = num.round(sum + num.round(num.round(tap.weight) * x.at(from)));
                    magnitude += std::fabs(tap.weight * x.at(from));
                    error += std::fabs(tap.weight) * x.error(from);
                }
                y.f[to] = sum;
                if (!node.bounds()) continue;
                // Weights, products and sums are rounded once each. A coordinate that lies elsewhere moves the result by what is read there.
                double low = HUGE_VAL, high = -HUGE_VAL;
                for (const Tap& tap : t)
                    for (std::int64_t near = std::max<std::int64_t>(0, tap.index - 1); near <= std::min(axis.in - 1, tap.index + 1); ++near) {
                        low = std::min(low, x.at((a * axis.in + near) * inner + i));
                        high = std::max(high, x.at((a * axis.in + near) * inner + i));
                    }
                y.err[to] = error + (static_cast<double>(t.size()) + 4) * kU32 * magnitude + kFlush;
                if (high > low) y.err[to] += steepest * moved[o] * (high - low);
            }
    });
    return y;
}

}  // namespace

Outputs resize(const Node& node) {
    const Value& x = node.in(0);
    const std::size_t rank = x.shape.size();
    Rule rule;
    std::vector<Axis> axes(rank);
    for (std::size_t d = 0; d < rank; ++d) axes[d].in = axes[d].out = x.shape[d];
    rule.mode = node.text("mode", "nearest");
    if (rule.mode == "bilinear") rule.mode = "linear";  // Upsample-1's word
    std::vector<std::int64_t> which(rank);
    std::iota(which.begin(), which.end(), 0);
    std::vector<double> scales;
    std::vector<std::int64_t> sizes;
    if (node.version() == 7) {  // Upsample
        const onnx::AttributeProto* given = node.attribute("scales");
        if (!given) node.fail("attribute 'scales' is missing");
        scales.assign(given->floats().begin(), given->floats().end());
    } else if (node.version() < 11) {
        const Value& given = node.real(1);
        scales.assign(given.f.begin(), given.f.end());
    } else {
        rule.coordinates = node.text("coordinate_transformation_mode", "half_pixel");
        rule.nearest = node.text("nearest_mode", "round_prefer_floor");
        rule.cubic = node.real("cubic_coeff_a", -0.75f);
        rule.extrapolation = node.real("extrapolation_value", 0.0f);
        rule.exclude_outside = node.integer("exclude_outside", 0) != 0;
        if (node.version() >= 18) {
            rule.antialias = node.integer("antialias", 0) != 0;
            if (const auto given = node.integers("axes")) {
                which = *given;
                for (auto& axis : which) axis = node.axis(axis, x.rank());
            }
        }
        if (node.has(1) && rule.coordinates == "tf_crop_and_resize") {
            const Value& roi = node.real(1);
            if (roi.count() != 2 * static_cast<std::int64_t>(which.size())) node.fail(fmt::format("roi of {} elements for {} axes", roi.count(), which.size()));
            for (std::size_t i = 0; i < which.size(); ++i) {
                axes[static_cast<std::size_t>(which[i])].roi_start = roi.f[i];
                axes[static_cast<std::size_t>(which[i])].roi_end = roi.f[which.size() + i];
            }
        }
        if (node.has(2) && node.in(2).count() > 0) scales.assign(node.real(2).f.begin(), node.real(2).f.end());
        if (node.has(3) && node.in(3).count() > 0) sizes = node.integers(3);
    }
    const std::string policy = node.version() >= 18 ? node.text("keep_aspect_ratio_policy", "stretch") : "stretch";
    if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic") node.fail(fmt::format("mode=\"{}\" must be nearest, linear or cubic", rule.mode));
    if (rule.mode != "nearest" && !x.floating()) node.fail(fmt::format("mode \"{}\" of {} is not supported", rule.mode, name_of(x.dtype)));
    if ((scales.empty() ? sizes.size() : scales.size()) != which.size()) node.fail(fmt::format("{} scales and {} sizes for {} axes", scales.size(), sizes.size(), which.size()));
    if (!sizes.empty() && policy != "stretch") {
        if (policy != "not_larger" && policy != "not_smaller") node.fail(fmt::format("keep_aspect_ratio_policy=\"{}\" is not known", policy));
        double scale = policy == "not_larger" ? HUGE_VAL : 0.0;
        for (std::size_t i = 0; i < which.size(); ++i) {
            const double s = static_cast<double>(sizes[i]) / static_cast<double>(axes[static_cast<std::size_t>(which[i])].in);
            scale = policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
        }
        for (std::size_t i = 0; i < which.size(); ++i) {
            Axis& a = axes[static_cast<std::size_t>(which[i])];
            a.scale = scale;
            if (!(scale > 0 && scale < 0x1p31)) node.fail(fmt::format("sizes {} do not scale {}", to_string(sizes), to_string(x.shape)));
            a.out = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(a.in) + 0.5));
        }
    } else {
        for (std::size_t i = 0; i < which.size(); ++i) {
            Axis& a = axes[static_cast<std::size_t>(which[i])];
            if (!sizes.empty()) {
                a.out = sizes[i];
                a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
            } else {
                a.scale = scales[i];
                const double span = rule.coordinates == "tf_crop_and_resize" ? a.roi_end - a.roi_start : 1.0;
                const double out = std::floor(static_cast<double>(a.in) * span * a.scale);
                if (!(out >= 0 && out < 0x1p31)) node.fail(fmt::format("dimension {} of {} by {} gives {}", which[i], a.in, a.scale, out));
                a.out = static_cast<std::int64_t>(out);
            }
        }
    }
    Value y = x;
    for (std::size_t d = 0; d < rank; ++d) {
        if (axes[d].out < 0 || axes[d].in < 1 || !(axes[d].scale > 0))
            node.fail(fmt::format("dimension {} of {} by {} gives {}", d, axes[d].in, axes[d].scale, axes[d].out));
        if (axes[d].out != axes[d].in || axes[d].scale != 1 || rule.coordinates == "tf_crop_and_resize") y = along(node, rule, y, d, axes[d]);
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
