#include "workloads/passes/resize.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "workloads/passes/index_map.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

std::optional<std::vector<double>> constant_reals(const Graph& graph, const Node& node, std::size_t i, const char* name) {
    std::vector<double> values;
    if (const auto a = node.attributes.find(name); a != node.attributes.end()) {
        for (const float f : a->second.floats) values.push_back(static_cast<double>(f));
        return values;
    }
    const ValueId value = node.input(i);
    if (value == kNoValue) return values;
    if (!graph.is_constant(value)) return std::nullopt;
    const Tensor& t = *graph.value(value).constant;
    for (std::int64_t k = 0; k < t.count(); ++k) values.push_back(t.value(k));
    return values;
}

Resize::Mode mode_of(NodeId id, const std::string& mode) {
    if (mode == "nearest") return Resize::Mode::nearest;
    if (mode == "linear" || mode == "bilinear") return Resize::Mode::linear;
    if (mode == "cubic") return Resize::Mode::cubic;
    throw NodeError(id, fmt::format("mode=\"{}\" is unknown; use nearest, linear or cubic", mode));
}

void apply_scales(NodeId id, Resize& r, const std::vector<std::size_t>& axes, const std::vector<double>& scales) {
    if (scales.size() != axes.size())
        throw MalformedNode(id, fmt::format("scales has {} entries for {} dimensions; repair the model", scales.size(), axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
        ResizeAxis& a = r.axes[axes[i]];
        if (!(scales[i] > 0) || scales[i] > 1e6) throw MalformedNode(id, fmt::format("scale {} is out of range; repair the model", scales[i]));
        a.scale = scales[i];
        a.width = scales[i] * static_cast<double>(a.in);
        a.out = static_cast<std::int64_t>(std::floor(static_cast<float>(a.in) * static_cast<float>(scales[i])));  // as ONNX infers it
    }
}

void apply_sizes(NodeId id, const Node& node, Resize& r, const std::vector<std::size_t>& axes, const std::vector<std::int64_t>& sizes) {
    if (sizes.size() != axes.size())
        throw MalformedNode(id, fmt::format("sizes has {} entries for {} dimensions; repair the model", sizes.size(), axes.size()));
    const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
    double common = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        ResizeAxis& a = r.axes[axes[i]];
        if (sizes[i] < 1 || a.in < 1) throw MalformedNode(id, fmt::format("a size of {} from {}; repair the model", sizes[i], a.in));
        a.out = sizes[i];
        a.width = static_cast<double>(sizes[i]);
        a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
        if (i == 0 || (policy == "not_larger" ? a.scale < common : a.scale > common)) common = a.scale;
    }
    if (policy == "stretch") return;
    if (policy != "not_larger" && policy != "not_smaller")
        throw MalformedNode(id, fmt::format("keep_aspect_ratio_policy=\"{}\" is unknown; repair the model", policy));
    for (const std::size_t axis : axes) {
        r.axes[axis].scale = common;
        r.axes[axis].width = common * static_cast<double>(r.axes[axis].in);
        r.axes[axis].out = static_cast<std::int64_t>(std::floor(common * static_cast<double>(r.axes[axis].in) + 0.5));
    }
}

}  // namespace

std::optional<Resize> resize_of(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const Value& x = graph.value(node.inputs[0]);
    Resize r;
    r.mode = mode_of(id, node.text("mode", "nearest"));
    // Upsample-7/9 and Resize-10 have neither coordinate nor rounding modes: x / scale, rounded down. Their scales are input 1.
    const bool plain = node.op == "Upsample" || graph.opset < 11;
    r.transform = plain ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
    r.nearest_mode = plain ? "floor" : node.text("nearest_mode", "round_prefer_floor");
    r.cubic_a = static_cast<double>(node.real("cubic_coeff_a", -0.75f));
    r.exclude_outside = node.integer("exclude_outside", 0) != 0;
    r.antialias = node.integer("antialias", 0) != 0;
    r.extrapolation = static_cast<double>(node.real("extrapolation_value", 0.0f));
    for (const std::int64_t n : x.shape) r.axes.push_back({n, n, 1.0, static_cast<double>(n), 0.0, 1.0});
    std::vector<std::size_t> axes;
    for (const std::int64_t a : node.integers("axes")) axes.push_back(static_cast<std::size_t>(normal_axis(id, a, x.shape.size())));
    if (axes.empty())
        for (std::size_t d = 0; d < x.shape.size(); ++d) axes.push_back(d);
    const auto scales = constant_reals(graph, node, plain ? 1 : 2, "scales");
    if (!scales) return std::nullopt;
    if (r.transform == "tf_crop_and_resize") {
        const auto roi = constant_reals(graph, node, 1, "roi");
        if (!roi) return std::nullopt;
        if (roi->size() != 2 * axes.size()) throw MalformedNode(id, "roi needs two entries a dimension; repair the model");
        for (std::size_t i = 0; i < axes.size(); ++i) {
            r.axes[axes[i]].roi_start = (*roi)[i];
            r.axes[axes[i]].roi_end = (*roi)[axes.size() + i];
        }
    }
    if (!scales->empty()) {
        apply_scales(id, r, axes, *scales);
    } else {
        const auto sizes = constant_integers(graph, id, 3);
        if (!sizes) return std::nullopt;
        apply_sizes(id, node, r, axes, *sizes);
    }
    return r;
}

double Resize::coordinate(std::size_t axis, std::int64_t index) const {
    const ResizeAxis& a = axes[axis];
    const auto x = static_cast<double>(index), in = static_cast<double>(a.in), out = static_cast<double>(a.out);
    if (transform == "asymmetric") return x / a.scale;
    if (transform == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
    if (transform == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0.0;
    if (transform == "align_corners") return a.width != 1 ? x * (in - 1) / (a.width - 1) : 0.0;
    if (transform == "tf_crop_and_resize")
        return a.width != 1 ? a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (a.width - 1)
                         : 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    if (transform == "half_pixel_symmetric") {
        const double adjustment = out / a.width;
        return in / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
    }
    return (x + 0.5) / a.scale - 0.5;  // half_pixel
}

bool Resize::outside(std::size_t axis, double x) const {
    return transform == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axes[axis].in - 1));
}

std::vector<std::int64_t> nearest_indices(const Resize& r, std::size_t axis) {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < r.axes[axis].out; ++i) {
        const double x = r.coordinate(axis, i);
        const double rounded = r.nearest_mode == "floor"               ? std::floor(x)
                               : r.nearest_mode == "ceil"              ? std::ceil(x)
                               : r.nearest_mode == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                                       : std::ceil(x - 0.5);
        const auto last = static_cast<double>(r.axes[axis].in - 1);
        list.push_back(r.outside(axis, x) ? kFill : static_cast<std::int64_t>(std::clamp(rounded, 0.0, last)));
    }
    return list;
}

}  // namespace assay::workloads
