// Operators of object detection: RoiAlign-10, -16, -22; MaxRoiPool-1, -22; NonMaxSuppression-10, -11.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/parallel.hpp"
#include "golden/reference/ulp.hpp"

namespace assay::golden::ops {
namespace {

/// Four neighbours of a sample and their weights; outside the image by more than one element all weights are 0.
struct Corner {
    std::array<std::int64_t, 4> at{};
    std::array<double, 4> weight{};
};

Corner corner_of(double y, double x, std::int64_t height, std::int64_t width) {
    const auto h = static_cast<double>(height), w = static_cast<double>(width);
    if (!(y >= -1 && y <= h && x >= -1 && x <= w)) return {};
    // Within an element of the border the border's own elements are read.
    const auto side = [](double v, std::int64_t size) {
        v = std::max(v, 0.0);
        const std::int64_t low = std::min(static_cast<std::int64_t>(v), size - 1), high = std::min(low + 1, size - 1);
        return std::tuple{low, high, low == size - 1 ? 0.0 : v - static_cast<double>(low)};
    };
    const auto [y0, y1, ty] = side(y, height);
    const auto [x0, x1, tx] = side(x, width);
    return {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1}, {(1 - ty) * (1 - tx), (1 - ty) * tx, ty * (1 - tx), ty * tx}};
}

}  // namespace

Outputs roi_align(const Node& node) {
    const Value &x = node.real(0), &rois = node.real(1);
    const std::vector<std::int64_t> images = node.integers(2);
    const std::string mode = node.text("mode", "avg");
    if (mode != "avg" && mode != "max") node.fail(fmt::format("mode=\"{}\" is not known; use avg or max", mode));
    const std::string coordinates = node.version() < 16 ? "output_half_pixel" : node.text("coordinate_transformation_mode", "half_pixel");
    if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
        node.fail(fmt::format("coordinate_transformation_mode=\"{}\" is not known; use half_pixel or output_half_pixel", coordinates));
    const bool half = coordinates == "half_pixel";
    const std::int64_t height = node.integer("output_height", 1), width = node.integer("output_width", 1), ratio = node.integer("sampling_ratio", 0);
    const double scale = node.real("spatial_scale", 1.0f);
    if (x.rank() != 4 || rois.rank() != 2 || rois.shape[1] != 4 || static_cast<std::int64_t>(images.size()) != rois.shape[0] || height < 1 ||
        width < 1 || ratio < 0 || x.shape[2] < 1 || x.shape[3] < 1)
        node.fail(fmt::format("input {}, regions {}, {} batch indices, output {} x {}", to_string(x.shape), to_string(rois.shape), images.size(),
                              height, width));
    const std::int64_t channels = x.shape[1], plane = x.shape[2] * x.shape[3];
    Value y(x.dtype, {rois.shape[0], channels, height, width});
    if (node.bounds()) y.err.resize(y.f.size());
    const Numerics& num = node.numerics();
    for (std::int64_t r = 0; r < rois.shape[0]; ++r) {
        const std::int64_t image = images[static_cast<std::size_t>(r)];
        if (image < 0 || image >= x.shape[0]) node.fail(fmt::format("batch index {} of {} images", image, x.shape[0]));
        std::array<double, 4> box{};  // x1, y1, x2, y2
        double reach = 1;
        for (std::size_t i = 0; i < 4; ++i) {
            box[i] = num.round(num.round(rois.at(r * 4 + static_cast<std::int64_t>(i)) * scale) - (half ? 0.5 : 0.0));
            reach = std::max(reach, std::fabs(box[i]));
        }
        double roi_w = box[2] - box[0], roi_h = box[3] - box[1];
        if (!half) {
            roi_w = std::max(roi_w, 1.0);
            roi_h = std::max(roi_h, 1.0);
        }
        const double bin_h = roi_h / static_cast<double>(height), bin_w = roi_w / static_cast<double>(width);
        const double grid_h = ratio > 0 ? static_cast<double>(ratio) : std::ceil(bin_h), grid_w = ratio > 0 ? static_cast<double>(ratio) : std::ceil(bin_w);
        if (!(grid_h * grid_w * static_cast<double>(height * width) < 0x1p26))
            node.fail(fmt::format("region {} of {} x {} elements takes too many samples", r, roi_h, roi_w));
        const auto rows = static_cast<std::int64_t>(std::max(grid_h, 0.0)), cols = static_cast<std::int64_t>(std::max(grid_w, 0.0));
        // Coordinates come from a handful of operations on the region's corners: their roundings, in elements, moving both coordinates.
        const bool vague = rois.error(r * 4) + rois.error(r * 4 + 1) + rois.error(r * 4 + 2) + rois.error(r * 4 + 3) > 0;
        const double moved = 16 * kU32 * reach;
        parallel_for(height * width, static_cast<double>(height * width * channels * rows * cols) * 4, [&](std::int64_t out) {
            const auto ph = static_cast<double>(out / width), pw = static_cast<double>(out % width);
            std::vector<Corner> samples;
            for (std::int64_t iy = 0; iy < rows; ++iy)
                for (std::int64_t ix = 0; ix < cols; ++ix)
                    samples.push_back(corner_of(box[1] + ph * bin_h + (static_cast<double>(iy) + 0.5) * bin_h / grid_h,
                                                box[0] + pw * bin_w + (static_cast<double>(ix) + 0.5) * bin_w / grid_w, x.shape[2], x.shape[3]));
            const auto count = static_cast<double>(std::max<std::size_t>(samples.size(), 1));
            for (std::int64_t c = 0; c < channels; ++c) {
                const std::int64_t first = (image * channels + c) * plane;
                double sum = 0, magnitude = 0, error = 0, largest = 0, largest_error = 0;
                bool any = false;
                for (const Corner& s : samples) {
                    double sample = 0, low = HUGE_VAL, high = -HUGE_VAL;
                    for (std::size_t i = 0; i < 4; ++i) {
                        const double v = x.at(first + s.at[i]), term = num.round(num.round(s.weight[i]) * v), e = s.weight[i] * x.error(first + s.at[i]);
                        sample = num.round(sample + term);
                        magnitude += std::fabs(s.weight[i] * v);
                        error += e;
                        low = std::min(low, v);
                        high = std::max(high, v);
                        // "max" takes the largest of the weighted neighbours, as the specification's reference does, not of the samples.
                        if (!any || term > largest) largest = term;
                        any = true;
                        largest_error = std::max(largest_error, e + moved * std::fabs(v) + 4 * rounding(term));
                    }
                    error += 2 * 2 * moved * (high - low);  // as GridSample's bound
                    sum = num.round(sum + sample);
                }
                const auto to = static_cast<std::size_t>((r * channels + c) * height * width + out);
                y.f[to] = mode == "avg" ? num.round(sum / count) : largest;
                if (!node.bounds()) continue;
                y.err[to] = mode == "avg" ? error / count + ((4 + count) * kU32 + 4 * kU32) * magnitude / count + rounding(y.f[to]) : largest_error;
                if (vague) y.err[to] = HUGE_VAL;
            }
        });
    }
    return {std::move(y)};
}

Outputs max_roi_pool(const Node& node) {
    const Value &x = node.real(0), &rois = node.real(1);
    const auto pooled = node.integers("pooled_shape");
    const double scale = node.real("spatial_scale", 1.0f);
    if (!pooled || pooled->size() != 2 || (*pooled)[0] < 1 || (*pooled)[1] < 1 || x.rank() != 4 || rois.rank() != 2 || rois.shape[1] != 5)
        node.fail(fmt::format("input {} and regions {}; pooled_shape must have two positive entries", to_string(x.shape), to_string(rois.shape)));
    const std::int64_t rows = (*pooled)[0], cols = (*pooled)[1], height = x.shape[2], width = x.shape[3];
    Value y(x.dtype, {rois.shape[0], x.shape[1], rows, cols});
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::int64_t r = 0; r < rois.shape[0]; ++r) {
        const double image = rois.at(r * 5);
        if (!(image >= 0 && image < static_cast<double>(x.shape[0]))) node.fail(fmt::format("batch index {} of {} images", image, x.shape[0]));
        std::array<double, 4> box{};  // x1, y1, x2, y2 in whole elements, both ends included
        for (std::size_t i = 0; i < 4; ++i) {
            box[i] = std::round(rois.at(r * 5 + 1 + static_cast<std::int64_t>(i)) * scale);
            if (!(std::fabs(box[i]) < 0x1p31)) node.fail(fmt::format("region {} reaches to {}", r, box[i]));
        }
        const double bin_w = std::max(box[2] - box[0] + 1, 1.0) / static_cast<double>(cols), bin_h = std::max(box[3] - box[1] + 1, 1.0) / static_cast<double>(rows);
        for (std::int64_t c = 0; c < x.shape[1]; ++c)
            for (std::int64_t out = 0; out < rows * cols; ++out) {
                const auto ph = static_cast<double>(out / cols), pw = static_cast<double>(out % cols);
                const auto edge = [](double v, std::int64_t size) { return std::clamp<std::int64_t>(static_cast<std::int64_t>(v), 0, size); };
                const std::int64_t y0 = edge(std::floor(ph * bin_h) + box[1], height), y1 = edge(std::ceil((ph + 1) * bin_h) + box[1], height);
                const std::int64_t x0 = edge(std::floor(pw * bin_w) + box[0], width), x1 = edge(std::ceil((pw + 1) * bin_w) + box[0], width);
                double best = y0 < y1 && x0 < x1 ? -HUGE_VAL : 0.0, error = 0;  // an empty bin is 0
                for (std::int64_t i = y0; i < y1; ++i)
                    for (std::int64_t j = x0; j < x1; ++j) {
                        const std::int64_t at = ((static_cast<std::int64_t>(image) * x.shape[1] + c) * height + i) * width + j;
                        if (x.at(at) > best || std::isnan(x.at(at))) best = x.at(at);
                        error = std::max(error, x.error(at));
                    }
                const auto to = static_cast<std::size_t>((r * x.shape[1] + c) * rows * cols + out);
                y.f[to] = best;
                if (node.bounds()) y.err[to] = error;
            }
    }
    if (uncertain(rois)) unbounded(y);
    return {std::move(y)};
}

Outputs non_max_suppression(const Node& node) {
    const Value &boxes = node.real(0), &scores = node.real(1);
    if (boxes.rank() != 3 || scores.rank() != 3 || boxes.shape[2] != 4 || scores.shape[0] != boxes.shape[0] || scores.shape[2] != boxes.shape[1])
        node.fail(fmt::format("boxes {} and scores {}", to_string(boxes.shape), to_string(scores.shape)));
    const std::int64_t count = boxes.shape[1], classes = scores.shape[1];
    const double most = node.has(2) ? node.scalar(2) : 0, overlap = node.has(3) ? node.scalar(3) : 0;
    const double threshold = node.has(4) ? node.scalar(4) : -HUGE_VAL;
    const bool centre = node.integer("center_point_box", 0) != 0;
    if (!(overlap >= 0 && overlap <= 1)) node.fail(fmt::format("iou_threshold is {}, must lie in [0, 1]", overlap));
    struct Box {
        double y0, x0, y1, x1;
    };
    const auto box_of = [&](std::int64_t batch, std::int64_t i) {
        const std::int64_t at = (batch * count + i) * 4;
        const double a = boxes.at(at), b = boxes.at(at + 1), c = boxes.at(at + 2), d = boxes.at(at + 3);
        if (centre) return Box{b - d / 2, a - c / 2, b + d / 2, a + c / 2};
        return Box{std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};  // any two opposite corners
    };
    bool close = false;  // a decision that fp32 may take otherwise
    std::vector<std::array<std::int64_t, 3>> chosen;
    for (std::int64_t batch = 0; batch < boxes.shape[0]; ++batch)
        for (std::int64_t c = 0; c < classes; ++c) {
            const std::int64_t first = (batch * classes + c) * count;
            std::vector<std::int64_t> order;
            for (std::int64_t i = 0; i < count; ++i)
                if (scores.at(first + i) > threshold) order.push_back(i);
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return scores.at(first + a) > scores.at(first + b); });
            std::vector<std::int64_t> kept;
            for (const std::int64_t i : order) {
                if (static_cast<double>(kept.size()) >= most) break;
                const Box a = box_of(batch, i);
                const bool hidden = std::any_of(kept.begin(), kept.end(), [&](std::int64_t j) {
                    const Box b = box_of(batch, j);
                    const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
                    if (!(h > 0 && w > 0)) return false;
                    const double shared = h * w, total = (a.y1 - a.y0) * (a.x1 - a.x0) + (b.y1 - b.y0) * (b.x1 - b.x0) - shared;
                    const double ratio = total > 0 ? shared / total : 0.0;
                    close |= std::fabs(ratio - overlap) <= 16 * kU32;
                    return ratio > overlap;
                });
                if (!hidden) kept.push_back(i);
            }
            for (const std::int64_t i : kept) chosen.push_back({batch, c, i});
        }
    Value y(DType::i64, {static_cast<std::int64_t>(chosen.size()), 3});
    for (std::size_t i = 0; i < chosen.size(); ++i) std::copy(chosen[i].begin(), chosen[i].end(), y.n.begin() + static_cast<std::ptrdiff_t>(3 * i));
    if (node.bounds() && (close || uncertain(boxes) || uncertain(scores))) unbounded(y);
    return {std::move(y)};
}

}  // namespace assay::golden::ops
