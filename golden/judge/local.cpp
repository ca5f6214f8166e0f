#include "golden/judge/local.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::golden {
namespace {

constexpr double kMaxF32 = std::numeric_limits<float>::max();

enum class Match { same, differs, both_finite };

/// Non-finite values must agree in class and place: NaN equals only NaN, infinities their sign. Where the reference lies within its
/// allowance of fp32's range, overflow and the largest finite numbers are both honest.
Match match_class(double device, double reference, double allow) {
    if (std::isfinite(device) && std::isfinite(reference) && std::fabs(reference) <= kMaxF32) return Match::both_finite;
    if (std::isnan(device) || std::isnan(reference)) return std::isnan(device) && std::isnan(reference) ? Match::same : Match::differs;
    if (std::isfinite(device) && !std::isfinite(reference)) return Match::differs;
    if (std::isfinite(device)) return std::fabs(reference) - allow <= kMaxF32 ? Match::both_finite : Match::differs;
    const bool overflows = std::isinf(reference) || std::fabs(reference) + allow >= kMaxF32;
    return overflows && std::signbit(device) == std::signbit(reference) ? Match::same : Match::differs;
}

/// The two further evaluations that decide grey elements; made only when an element asks.
class Grey {
public:
    explicit Grey(const LocalQuestion& question) : question_(question) {}
    /// Within what constant or one-signed operands may reach, and equal to golden's own emulation (but for what follows the product).
    bool accepts(std::int64_t i, double device, double reference) {
        if (!worst_) {
            const auto in_mode = [&](Mode mode) {
                return std::make_unique<Value>(question_.reference.evaluate(question_.output, question_.feeds, question_.rule, mode, question_.exact));
            };
            worst_ = in_mode(Mode::bound_worst);
            emulated_ = in_mode(Mode::bound_emulated);
        }
        return std::fabs(device - reference) <= worst_->error(i) && std::fabs(device - emulated_->at(i)) <= emulated_->error(i);
    }

private:
    const LocalQuestion& question_;
    std::unique_ptr<Value> worst_, emulated_;
};

void judge_elements(TensorVerdict& verdict, const Tensor& device, const Value& g, const LocalQuestion& question) {
    LocalError& local = *verdict.local;
    Grey grey(question);
    std::int64_t unbounded = 0, class_failures = 0;
    double worst_ratio = -1;
    ElementReport worst;
    const auto fail = [&](std::int64_t i, double ratio) {
        const ElementReport report{i, coordinates(i, device.shape), device.value(i), g.at(i), g.error(i)};
        if (!verdict.first_failing) verdict.first_failing = report;
        if (ratio > worst_ratio) {
            worst_ratio = ratio;
            worst = report;
        }
        ++local.failed;
    };
    for (std::int64_t i = 0; i < device.count(); ++i) {
        const double d = device.value(i), r = g.at(i), allow = g.error(i);
        const Match match = match_class(d, r, allow);
        if (match == Match::same) continue;
        if (match == Match::differs) {
            ++class_failures;
            fail(i, HUGE_VAL);
            continue;
        }
        const double difference = std::fabs(d - r);
        verdict.max_abs = std::max(verdict.max_abs, difference);
        if (r != 0) verdict.max_rel = std::max(verdict.max_rel, difference / std::fabs(r));
        if (!std::isfinite(allow)) {
            ++unbounded;
            continue;
        }
        // An integer may be off by one where a rounding boundary is in reach, never by more.
        const double bound = g.floating() ? allow : std::min(allow, 1.0);
        const double ratio = difference == 0 ? 0.0 : difference / bound;
        local.max_ratio = std::max(local.max_ratio, ratio);
        // Where the reference is exact, so is the sign of a zero (IEEE 754-2019 §6.3): a flipped sign bit is a wrong result.
        if (g.floating() && allow == 0 && d == 0 && r == 0 && std::signbit(d) != std::signbit(r))
            fail(i, HUGE_VAL);
        else if (difference <= bound)
            local.lsb += !g.floating() && difference > 0;
        else if (grey.accepts(i, d, r))
            ++local.grey;
        else
            fail(i, ratio);
    }
    local.max_abs = verdict.max_abs;
    if (local.failed > 0) {
        verdict.verdict = Verdict::fail;
        verdict.reason = fmt::format("{} of {} elements {}; worst {}", local.failed, device.count(),
                                     class_failures == local.failed ? "differ in being finite" : "beyond the allowance", describe(worst));
    } else if (unbounded > 0) {
        verdict.verdict = Verdict::inconclusive;
        verdict.reason = fmt::format("{} of {} elements have no finite allowance", unbounded, device.count());
    } else {
        verdict.verdict = Verdict::pass;
    }
}

}  // namespace

std::vector<std::int64_t> coordinates(std::int64_t index, const Shape& shape) {
    std::vector<std::int64_t> at(shape.size());
    for (std::size_t d = shape.size(); d-- > 0; index /= shape[d]) at[d] = index % shape[d];
    return at;
}

std::string describe(const ElementReport& e) {
    return fmt::format("[{}]: device {:.9g}, reference {:.9g}, allowed {:.3g}", fmt::join(e.at, ","), e.device, e.expected, e.allow);
}

TensorVerdict judge_local(const Tensor& device, const LocalQuestion& question, std::uint64_t unwritten_bytes) {
    TensorVerdict verdict;
    verdict.name = question.output;
    verdict.dtype = name_of(device.dtype);
    verdict.shape = to_string(device.shape);
    verdict.precision = question.rule.precision;
    if (unwritten_bytes > 0) {
        verdict.verdict = Verdict::fail;
        verdict.reason = fmt::format("{} of {} bytes were never written", unwritten_bytes, device.bytes.size());
        return verdict;
    }
    const Value g = question.reference.evaluate(question.output, question.feeds, question.rule, Mode::bound, question.exact);
    if (device.shape != g.shape || device.dtype != g.dtype) {
        verdict.verdict = Verdict::fail;
        verdict.reason = fmt::format("{} of shape {}, the reference has {} of shape {}", name_of(device.dtype), to_string(device.shape),
                                     name_of(g.dtype), to_string(g.shape));
        return verdict;
    }
    verdict.elements = device.count();
    if (verdict.elements == 0) {
        verdict.verdict = Verdict::pass;
        verdict.reason = "only its shape was judged: it has no elements";
        return verdict;
    }
    verdict.local.emplace();
    judge_elements(verdict, device, g, question);
    return verdict;
}

}  // namespace assay::golden
