// NonMaxSuppression, RoiAlign, MaxRoiPool.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

struct Box {
    double y0, x0, y1, x1;
    double area() const { return std::max(0.0, y1 - y0) * std::max(0.0, x1 - x0); }
};

double overlap(const Box& a, const Box& b) {
    const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    if (h <= 0 || w <= 0) return 0;
    const double both = h * w, either = a.area() + b.area() - both;
    return either > 0 ? both / either : 0;
}

/// NonMaxSuppression-11: by batch and class the boxes above score_threshold, best first, without those that overlap a chosen one by more
/// than iou_threshold.
Results non_max_suppression(const Call& c) {
    const Tensor &boxes = c.in(0), &scores = c.in(1);
    if (boxes.shape.size() != 3 || boxes.shape[2] != 4) c.bad_shape(0, "batch x boxes x 4 is expected; repair the model");
    if (scores.shape.size() != 3 || scores.shape[0] != boxes.shape[0] || scores.shape[2] != boxes.shape[1]) c.bad_shape(1, "batch x classes x boxes is expected; repair the model");
    const I64 most = c.has(2) ? c.integer(2) : 0;
    const double iou = c.has(3) ? c.real(3) : 0, threshold = c.has(4) ? c.real(4) : -HUGE_VAL;
    const bool centres = c.integer("center_point_box", 0) != 0;
    const auto b = reals_of(boxes), s = reals_of(scores);
    const I64 batch = boxes.shape[0], count = boxes.shape[1], classes = scores.shape[1];
    c.work(static_cast<double>(batch) * static_cast<double>(classes) * static_cast<double>(count) *
           static_cast<double>(std::min(std::max<I64>(most, 0), count) + 20));
    std::vector<I64> chosen;
    std::vector<I64> order(static_cast<std::size_t>(count));
    for (I64 n = 0; n < batch; ++n) {
        std::vector<Box> box;
        for (I64 i = 0; i < count; ++i) {
            const double* p = b.data() + (n * count + i) * 4;
            box.push_back(centres ? Box{p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2}
                                  : Box{std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])});
        }
        for (I64 k = 0; k < classes; ++k) {
            const double* score = s.data() + (n * classes + k) * count;
            order.clear();
            for (I64 i = 0; i < count; ++i)
                if (score[i] > threshold) order.push_back(i);
            std::stable_sort(order.begin(), order.end(), [&](I64 i, I64 j) { return score[i] > score[j]; });
            std::vector<I64> kept;
            for (const I64 i : order) {
                if (static_cast<I64>(kept.size()) >= most) break;
                if (std::none_of(kept.begin(), kept.end(), [&](I64 j) { return overlap(box[static_cast<std::size_t>(i)], box[static_cast<std::size_t>(j)]) > iou; })) {
                    kept.push_back(i);
                    chosen.insert(chosen.end(), {n, k, i});
                }
            }
        }
    }
    return one(tensor_of(c, DType::i64, {static_cast<I64>(chosen.size()) / 3, 3}, std::span<const I64>(chosen)));
}

/// RoiAlign-16: averages (or maxima) of bilinear samples in each bin. Before version 16, and with "output_half_pixel", nothing is shifted
/// and a region is at least 1 x 1.
Results roi_align(const Call& c) {
    const Tensor &x = c.in(0), &rois = c.in(1);
    if (x.shape.size() != 4) c.bad_shape(0, "four dimensions are expected; repair the model");
    if (rois.shape.size() != 2 || rois.shape[1] != 4) c.bad_shape(1, "regions x 4 is expected; repair the model");
    const I64 regions = rois.shape[0], channels = x.shape[1], h = x.shape[2], w = x.shape[3];
    if (c.in(2).count() != regions) c.bad_shape(2, "a batch index for each region is expected; repair the model");
    const I64 out_h = c.integer("output_height", 1), out_w = c.integer("output_width", 1), ratio = c.integer("sampling_ratio", 0);
    if (out_h < 1 || out_w < 1 || ratio < 0 || ratio > 4096) c.fail("output_height, output_width and sampling_ratio are out of range; repair the model");
    const double scale = c.real("spatial_scale", 1.0f);
    const bool shift = c.opset >= 16 && c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    const bool maximum = c.text("mode", "avg") == "max";
    Tensor out = c.make(x.dtype, {regions, channels, out_h, out_w});
    const auto v = reals_of(x), r = reals_of(rois);
    std::vector<double> y(static_cast<std::size_t>(out.count()), 0.0);
    struct Sample {
        I64 at[4];
        double weight[4];
    };
    for (I64 n = 0; n < regions; ++n) {
        const I64 batch = c.in(2).integer(n);
        if (batch < 0 || batch >= x.shape[0]) c.fail(fmt::format("batch index {} of {}; repair the model", batch, x.shape[0]));
        const double offset = shift ? 0.5 : 0.0, *p = r.data() + n * 4;
        const double x0 = p[0] * scale - offset, y0 = p[1] * scale - offset;
        double width = p[2] * scale - offset - x0, height = p[3] * scale - offset - y0;
        if (!shift) width = std::max(width, 1.0), height = std::max(height, 1.0);
        const double bin_h = height / static_cast<double>(out_h), bin_w = width / static_cast<double>(out_w);
        if (!std::isfinite(bin_h) || !std::isfinite(bin_w) || std::fabs(bin_h) > 1e6 || std::fabs(bin_w) > 1e6) c.fail("a region out of range; repair the model");
        const I64 grid_h = ratio ? ratio : static_cast<I64>(std::ceil(bin_h)), grid_w = ratio ? ratio : static_cast<I64>(std::ceil(bin_w));
        c.work(static_cast<double>(regions) * static_cast<double>(channels * out_h * out_w) * static_cast<double>(std::max<I64>(grid_h, 1)) * static_cast<double>(std::max<I64>(grid_w, 1)));
        for (I64 i = 0; i < out_h; ++i)
            for (I64 j = 0; j < out_w; ++j) {
                std::vector<Sample> samples;
                for (I64 a = 0; a < grid_h; ++a)
                    for (I64 b = 0; b < grid_w; ++b) {
                        double sy = y0 + static_cast<double>(i) * bin_h + (static_cast<double>(a) + 0.5) * bin_h / static_cast<double>(grid_h);
                        double sx = x0 + static_cast<double>(j) * bin_w + (static_cast<double>(b) + 0.5) * bin_w / static_cast<double>(grid_w);
                        Sample s{};
                        if (sy >= -1 && sy <= static_cast<double>(h) && sx >= -1 && sx <= static_cast<double>(w) && h > 0 && w > 0) {
                            sy = std::clamp(sy, 0.0, static_cast<double>(h - 1));
                            sx = std::clamp(sx, 0.0, static_cast<double>(w - 1));
                            const auto ly = static_cast<I64>(sy), lx = static_cast<I64>(sx);
                            const I64 hy = std::min(ly + 1, h - 1), hx = std::min(lx + 1, w - 1);
                            const double fy = sy - static_cast<double>(ly), fx = sx - static_cast<double>(lx);
                            s = {{ly * w + lx, ly * w + hx, hy * w + lx, hy * w + hx}, {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx}};
                        }
                        samples.push_back(s);
                    }
                for (I64 ch = 0; ch < channels; ++ch) {
                    const double* plane = v.data() + (batch * channels + ch) * h * w;
                    double sum = 0, top = -HUGE_VAL;
                    for (const Sample& s : samples) {
                        double value = 0;
                        for (int q = 0; q < 4; ++q) {
                            const double part = s.weight[q] == 0 ? 0 : s.weight[q] * plane[s.at[q]];
                            value += part;
                            top = std::max(top, part);  // RoiAlign-10's "max" takes the greatest weighted corner, not the greatest sample
                        }
                        sum += value;
                    }
                    y[static_cast<std::size_t>(((n * channels + ch) * out_h + i) * out_w + j)] =
                        samples.empty() ? 0 : maximum ? top : sum / static_cast<double>(samples.size());
                }
            }
    }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// MaxRoiPool-1: regions (batch, x0, y0, x1, y1) rounded to elements, both ends inside; an empty bin gives 0.
Results max_roi_pool(const Call& c) {
    const Tensor &x = c.in(0), &rois = c.in(1);
    const auto pooled = c.integers("pooled_shape");
    if (x.shape.size() != 4) c.bad_shape(0, "four dimensions are expected; repair the model");
    if (rois.shape.size() != 2 || rois.shape[1] != 5) c.bad_shape(1, "regions x 5 is expected; repair the model");
    if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) c.fail("pooled_shape needs two positive entries; repair the model");
    const double scale = c.real("spatial_scale", 1.0f);
    const I64 regions = rois.shape[0], channels = x.shape[1], h = x.shape[2], w = x.shape[3];
    Tensor out = c.make(x.dtype, {regions, channels, pooled[0], pooled[1]});
    const auto v = reals_of(x), r = reals_of(rois);
    std::vector<double> y(static_cast<std::size_t>(out.count()), 0.0);
    c.work(static_cast<double>(y.size()) * static_cast<double>(h + 1) * static_cast<double>(w + 1));
    for (I64 n = 0; n < regions; ++n) {
        const double* p = r.data() + n * 5;
        if (!(p[0] >= 0 && p[0] < static_cast<double>(x.shape[0]))) c.fail(fmt::format("batch index {} of {}; repair the model", p[0], x.shape[0]));
        const auto batch = static_cast<I64>(p[0]);
        const auto edge = [&](double e) {
            const double at = std::round(e * scale);
            if (!(std::fabs(at) < 1e9)) c.fail("a region out of range; repair the model");
            return static_cast<I64>(at);
        };
        const I64 x0 = edge(p[1]), y0 = edge(p[2]), width = std::max<I64>(edge(p[3]) - x0 + 1, 1), height = std::max<I64>(edge(p[4]) - y0 + 1, 1);
        const auto bound = [](I64 i, I64 length, I64 bins, I64 first, I64 limit, bool up) {
            const double at = static_cast<double>(i) * static_cast<double>(length) / static_cast<double>(bins);
            return std::clamp<I64>(first + static_cast<I64>(up ? std::ceil(at) : std::floor(at)), 0, limit);
        };
        for (I64 ch = 0; ch < channels; ++ch)
            for (I64 i = 0; i < pooled[0]; ++i)
                for (I64 j = 0; j < pooled[1]; ++j) {
                    double top = -HUGE_VAL;
                    for (I64 a = bound(i, height, pooled[0], y0, h, false); a < bound(i + 1, height, pooled[0], y0, h, true); ++a)
                        for (I64 b = bound(j, width, pooled[1], x0, w, false); b < bound(j + 1, width, pooled[1], x0, w, true); ++b)
                            top = std::max(top, v[static_cast<std::size_t>(((batch * channels + ch) * h + a) * w + b)]);
                    y[static_cast<std::size_t>(((n * channels + ch) * pooled[0] + i) * pooled[1] + j)] = top == -HUGE_VAL ? 0 : top;
                }
    }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> detection_operators() {
    static constexpr Operator table[] = {{"MaxRoiPool", max_roi_pool}, {"NonMaxSuppression", non_max_suppression, 10}, {"RoiAlign", roi_align, 10}};
    return table;
}

}  // namespace assay::workloads::hostops
