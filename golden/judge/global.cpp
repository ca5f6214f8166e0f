#include "golden/judge/global.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "golden/judge/local.hpp"
#include "golden/judge/metrics.hpp"

namespace assay::golden {
namespace {

constexpr std::int64_t kMostOutliers = 1000;  // one element in so many may be the publisher's own before the output is in doubt
constexpr double kPublishedLsb = 2;  // issue 2: published int8 outputs come from another integer runtime

void worsen(TensorVerdict& verdict, Verdict to, const std::string& reason) {
    // A tensor is judged by what was worst; equal verdicts keep the first reason, which is the local one.
    if (worse(verdict.verdict, to) == verdict.verdict && verdict.verdict != Verdict::miss) return;
    verdict.verdict = to;
    verdict.reason = reason;
}

Verdict by_ratio(double r) { return r <= kGlobalPass ? Verdict::pass : r <= kGlobalFail ? Verdict::inconclusive : Verdict::fail; }

/// Largest element of each row of `classes`: the set of its indices, since integer outputs tie.
bool same_top(const Tensor& a, const Tensor& b, std::int64_t classes, std::int64_t& row) {
    for (row = 0; row < a.count() / classes; ++row) {
        double top_a = -HUGE_VAL, top_b = -HUGE_VAL;
        for (std::int64_t c = 0; c < classes; ++c) {
            top_a = std::max(top_a, a.value(row * classes + c));
            top_b = std::max(top_b, b.value(row * classes + c));
        }
        bool shared = false;
        for (std::int64_t c = 0; c < classes; ++c) shared |= a.value(row * classes + c) == top_a && b.value(row * classes + c) == top_b;
        if (!shared) return false;
    }
    return true;
}

double largest_finite(const Value& value) {
    double largest = 0;
    for (const double v : value.f)
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    return largest;
}

}  // namespace

double relative_level(const Value& fp64, const Value& emulation) {
    double error = 0;
    for (std::size_t i = 0; i < fp64.f.size(); ++i)
        if (std::isfinite(fp64.f[i]) && std::isfinite(emulation.f[i])) error = std::max(error, std::fabs(emulation.f[i] - fp64.f[i]));
    const double largest = largest_finite(fp64);
    return largest > 0 ? error / largest : 0;
}

double rms_level(const Value& fp64, const Value& emulation) {
    double error = 0, signal = 0;
    for (std::size_t i = 0; i < fp64.f.size(); ++i) {
        if (!std::isfinite(fp64.f[i]) || !std::isfinite(emulation.f[i])) continue;
        error += (emulation.f[i] - fp64.f[i]) * (emulation.f[i] - fp64.f[i]);
        signal += fp64.f[i] * fp64.f[i];
    }
    return signal > 0 ? std::sqrt(error / signal) : 0.0;
}

void judge_global(TensorVerdict& verdict, const Tensor& device, const GlobalQuestion& question) {
    const Value& golden = question.golden;
    if (device.shape != golden.shape || is_float(device.dtype) != golden.floating()) {
        worsen(verdict, Verdict::fail,
               fmt::format("{} of shape {}, golden has {} of shape {}", name_of(device.dtype), to_string(device.shape),
                           name_of(golden.dtype), to_string(golden.shape)));
        return;
    }
    if (device.count() == 0) return worsen(verdict, Verdict::pass, "only its shape was judged: it has no elements");
    const Ratios ratios = global_ratios(device, golden, question.fp64, question.emulation, question.level);
    verdict.global = GlobalError{ratios.r_rms, ratios.r_max, ratios.max_abs};
    verdict.elements = device.count();
    const Similarity s = similarity(device, golden);
    verdict.pcc = s.pcc;
    verdict.cosine = s.cosine;
    verdict.psnr = s.psnr;
    if (ratios.class_mismatches > 0) {
        const std::int64_t i = ratios.first_mismatch;
        const ElementReport element{i, coordinates(i, device.shape), device.value(i), golden.at(i), 0};
        if (!verdict.first_failing) verdict.first_failing = element;
        return worsen(verdict, Verdict::fail,
                      fmt::format("{} elements differ from golden in being finite; first {}", ratios.class_mismatches, describe(element)));
    }
    const double r = std::max(ratios.r_rms, ratios.r_max);
    worsen(verdict, by_ratio(r),
           r <= kGlobalPass ? ""
                            : fmt::format("global error {:.3g} times that of the emulation (rms {:.3g}, max {:.3g}; at most {} passes)", r,
                                          ratios.r_rms, ratios.r_max, kGlobalPass));
}

TensorVerdict judge_published(const PublishedQuestion& q) {
    TensorVerdict verdict;
    verdict.role = "published";
    verdict.dtype = name_of(q.device.dtype);
    verdict.shape = to_string(q.device.shape);
    if (q.device.shape != q.published.shape || q.device.dtype != q.published.dtype) {
        worsen(verdict, Verdict::fail,
               fmt::format("{} of shape {}, the published output is {} of shape {}", verdict.dtype, verdict.shape,
                           name_of(q.published.dtype), to_string(q.published.shape)));
        return verdict;
    }
    if (q.device.count() == 0) {
        worsen(verdict, Verdict::pass, "only its shape was judged: it has no elements");
        return verdict;
    }
    verdict.elements = q.device.count();
    const bool floating = is_float(q.device.dtype);
    const double largest = largest_finite(q.fp64);
    const double own_error = global_ratios(q.device, q.fp64, q.fp64, q.emulation).yardstick_max;
    const double allow = floating ? kGlobalPass * (own_error + std::max(q.fp32_level * largest, ulp_f32(largest))) : kPublishedLsb;
    const Value published = to_value(q.published);
    const Similarity s = similarity(q.device, published);
    verdict.pcc = s.pcc;
    verdict.cosine = s.cosine;
    verdict.psnr = s.psnr;
    double worst_ratio = 0, worst_outlier = 0;
    std::int64_t outliers = 0;
    std::optional<ElementReport> first_outlier;
    for (std::int64_t i = 0; i < q.device.count(); ++i) {
        const double d = q.device.value(i), p = q.published.value(i);
        const bool same = std::isnan(p) ? std::isnan(d) : d == p;
        const double difference = same ? 0.0 : std::fabs(d - p), ratio = std::isfinite(difference) ? difference / allow : HUGE_VAL;
        if (std::isfinite(difference)) verdict.max_abs = std::max(verdict.max_abs, difference);
        if (std::isfinite(difference) && p != 0) verdict.max_rel = std::max(verdict.max_rel, difference / std::fabs(p));
        // Where the network is not continuous (a peak that is one or is none) the runtime that published may be the one that differs: an element
        // on which the device agrees with fp64 and the published value does not says nothing about the device.
        const double own = q.fp64.at(i);
        if (floating && ratio > 1 && std::fabs(d - own) <= allow && !(std::fabs(p - own) <= allow)) {
            if (outliers++ == 0) first_outlier = ElementReport{i, coordinates(i, q.device.shape), d, p, allow};
            worst_outlier = std::max(worst_outlier, ratio);
            continue;
        }
        if (ratio > 1 && !verdict.first_failing) verdict.first_failing = ElementReport{i, coordinates(i, q.device.shape), d, p, allow};
        worst_ratio = std::max(worst_ratio, ratio);
    }
    if (outliers * kMostOutliers > q.device.count()) {  // published outputs are first-class: this many are no accident
        worst_ratio = std::max(worst_ratio, worst_outlier);
        if (!verdict.first_failing) verdict.first_failing = first_outlier;
    }
    // Beyond one allowance a float is in doubt up to two (4 against 2 in the ratio); integers have no doubt.
    const Verdict decided = worst_ratio <= 1                                       ? Verdict::pass
                            : floating && worst_ratio <= kGlobalFail / kGlobalPass ? Verdict::inconclusive
                                                                                   : Verdict::fail;
    worsen(verdict, decided,
           decided == Verdict::pass ? ""
                                    : fmt::format("{:.3g} times the allowance of {:.3g} from the published output; first {}", worst_ratio,
                                                  allow, describe(*verdict.first_failing)));
    std::int64_t row = 0;
    if (q.classifier && !same_top(q.device, q.published, q.device.shape.back(), row))
        worsen(verdict, Verdict::fail, fmt::format("the top class of row {} differs from the published one", row));
    return verdict;
}

}  // namespace assay::golden
