// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: of training, but functions of their inputs like any other.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// The loss from log-probabilities [N, C, d…] and targets [N, d…]: -weight[target] * log p, then none, sum or weighted mean.
Tensor loss_of(const Call& c, const std::vector<double>& log_p, const Shape& shape) {
    const Tensor& target = c.in(1);
    Shape expected = shape;
    expected.erase(expected.begin() + 1);
    if (target.shape != expected) c.bad_shape(1, fmt::format("{} is expected; repair the model", to_string(expected)));
    const I64 classes = shape[1], inner = extent(shape, 2, shape.size());
    if (c.has(2) && c.in(2).count() != classes) c.bad_shape(2, "a weight for each class is expected; repair the model");
    const auto weights = c.has(2) ? reals_of(c.in(2)) : std::vector<double>(static_cast<std::size_t>(classes), 1.0);
    const auto* ignore = c.attribute("ignore_index");
    const auto t = integers_of(target);
    std::vector<double> loss(t.size());
    double sum = 0, total = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        if (ignore && t[i] == ignore->i()) continue;
        const I64 k = t[i];
        if (k < 0 || k >= classes) c.fail(fmt::format("target {} of {} classes", k, classes));
        const I64 n = static_cast<I64>(i) / inner, d = static_cast<I64>(i) % inner;
        const double w = weights[static_cast<std::size_t>(k)];
        loss[i] = -w * log_p[static_cast<std::size_t>((n * classes + k) * inner + d)];
        sum += loss[i];
        total += w;
    }
    const std::string reduction = c.text("reduction", "mean");
    c.require(reduction == "none" || reduction == "sum" || reduction == "mean", "reduction must be none, sum or mean; repair the model");
    if (reduction == "none") return tensor_of(c, c.in(0).dtype, target.shape, std::span<const double>(loss));
    const double one_loss[] = {reduction == "sum" ? sum : sum / total};
    return tensor_of(c, c.in(0).dtype, {}, std::span<const double>(one_loss));
}

Results negative_log_likelihood(const Call& c) {
    if (c.in(0).shape.size() < 2) c.bad_shape(0, "batch and classes are expected; repair the model");
    return one(loss_of(c, reals_of(c.in(0)), c.in(0).shape));
}

Results softmax_cross_entropy(const Call& c) {
    const Shape& shape = c.in(0).shape;
    if (shape.size() < 2) c.bad_shape(0, "batch and classes are expected; repair the model");
    const I64 classes = shape[1], inner = extent(shape, 2, shape.size());
    auto v = reals_of(c.in(0));
    for (I64 n = 0; n < shape[0]; ++n)
        for (I64 d = 0; d < inner; ++d) {
            double* at = v.data() + n * classes * inner + d;
            double top = -HUGE_VAL, sum = 0;
            for (I64 k = 0; k < classes; ++k) top = std::max(top, at[k * inner]);
            for (I64 k = 0; k < classes; ++k) sum += std::exp(at[k * inner] - top);
            for (I64 k = 0; k < classes; ++k) at[k * inner] -= top + std::log(sum);
        }
    Results out = one(loss_of(c, v, shape));
    out.push_back(tensor_of(c, c.in(0).dtype, shape, std::span<const double>(v)));
    return out;
}

}  // namespace

std::span<const Operator> loss_operators() {
    static constexpr Operator table[] = {{"NegativeLogLikelihoodLoss", negative_log_likelihood, 12}, {"SoftmaxCrossEntropyLoss", softmax_cross_entropy, 12}};
    return table;
}

}  // namespace assay::workloads::hostops
