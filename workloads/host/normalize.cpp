// Softmax and the normalisations.
#include <fmt/core.h>

#include <cmath>

#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// Calls f on every line of x along dimensions [axis, axis_end), strided by what follows; each line is a span that f changes in place.
template <class F>
Results by_lines(const Call& c, std::size_t axis, std::size_t axis_end, F&& f) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    const I64 length = extent(x.shape, axis, axis_end), inner = extent(x.shape, axis_end, rank), outer = extent(x.shape, 0, axis);
    std::vector<double> v = reals_of(x), line(static_cast<std::size_t>(length));
    for (I64 o = 0; o < outer; ++o)
        for (I64 i = 0; i < inner; ++i) {
            double* at = v.data() + o * length * inner + i;
            for (I64 k = 0; k < length; ++k) line[static_cast<std::size_t>(k)] = at[k * inner];
            f(std::span<double>(line));
            for (I64 k = 0; k < length; ++k) at[k * inner] = line[static_cast<std::size_t>(k)];
        }
    return one(tensor_of(c, x.dtype, x.shape, std::span<const double>(v)));
}

/// Softmax-13 works along one axis (default the last); before, along all dimensions from `axis` (default 1) on, taken as one.
template <class F>
Results softmax_like(const Call& c, F&& f) {
    const std::size_t rank = c.in(0).shape.size();
    if (rank == 0) return by_lines(c, 0, 0, f);
    if (c.opset >= 13) {
        const std::size_t axis = c.axis(c.integer("axis", -1), rank);
        return by_lines(c, axis, axis + 1, f);
    }
    const I64 axis = c.integer("axis", 1);
    return by_lines(c, axis == static_cast<I64>(rank) ? rank : c.axis(axis, rank), rank, f);
}

double top_of(std::span<const double> v) {
    double top = -HUGE_VAL;
    for (const double x : v) top = std::max(top, x);
    return top;
}

Results softmax(const Call& c) {
    return softmax_like(c, [](std::span<double> v) {
        const double top = top_of(v);
        double sum = 0;
        for (double& x : v) sum += x = std::exp(x - top);
        for (double& x : v) x /= sum;
    });
}

Results log_softmax(const Call& c) {
    return softmax_like(c, [](std::span<double> v) {
        const double top = top_of(v);
        double sum = 0;
        for (const double x : v) sum += std::exp(x - top);
        const double log_sum = std::log(sum);
        for (double& x : v) x = x - top - log_sum;
    });
}

Results hardmax(const Call& c) {
    return softmax_like(c, [](std::span<double> v) {
        std::size_t best = 0;
        for (std::size_t i = 1; i < v.size(); ++i)
            if (v[i] > v[best]) best = i;
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = i == best;
    });
}

/// BatchNormalization-15. In training mode (attribute, or more outputs before version 14) the batch's own mean and population variance
/// normalise, and outputs 1 and 2 are the running ones: old * momentum + batch * (1 - momentum).
Results batch_normalization(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    if (rank < 1) c.bad_shape(0, "a batch dimension is expected; repair the model");
    const I64 channels = rank > 1 ? x.shape[1] : 1, inner = extent(x.shape, std::min<std::size_t>(2, rank), rank), batch = x.shape[0];
    for (std::size_t i = 1; i < 5; ++i)
        if (c.in(i).count() != channels) c.bad_shape(i, fmt::format("{} channels are expected; repair the model", channels));
    const double epsilon = c.real("epsilon", 1e-5f), momentum = c.real("momentum", 0.9f);
    const bool training = c.integer("training_mode", 0) != 0;
    if (c.opset < 14 && c.output_count() > 1) c.fail("training outputs are not supported before opset 14; export the model for inference");
    std::vector<double> v = reals_of(x);
    const auto scale = reals_of(c.in(1)), bias = reals_of(c.in(2));
    auto mean = reals_of(c.in(3)), variance = reals_of(c.in(4));
    std::vector<double> running_mean = mean, running_variance = variance;
    const double count = static_cast<double>(batch * inner);
    for (I64 ch = 0; ch < channels; ++ch) {
        const auto k = static_cast<std::size_t>(ch);
        const auto each = [&](auto&& f) {
            for (I64 n = 0; n < batch; ++n)
                for (I64 i = 0; i < inner; ++i) f(v[static_cast<std::size_t>((n * channels + ch) * inner + i)]);
        };
        if (training) {
            double sum = 0, squares = 0;
            each([&](double e) { sum += e; });
            mean[k] = sum / count;
            each([&](double e) { squares += (e - mean[k]) * (e - mean[k]); });
            variance[k] = squares / count;
            running_mean[k] = running_mean[k] * momentum + mean[k] * (1 - momentum);
            running_variance[k] = running_variance[k] * momentum + variance[k] * (1 - momentum);
        }
        const double factor = scale[k] / std::sqrt(variance[k] + epsilon);
        each([&](double& e) { e = (e - mean[k]) * factor + bias[k]; });
    }
    Results out = one(tensor_of(c, x.dtype, x.shape, std::span<const double>(v)));
    if (training) {
        out.push_back(tensor_of(c, c.in(3).dtype, c.in(3).shape, std::span<const double>(running_mean)));
        out.push_back(tensor_of(c, c.in(4).dtype, c.in(4).shape, std::span<const double>(running_variance)));
    }
    return out;
}

struct Moments {
    double mean, inverse_deviation;
};

Moments moments_of(std::span<const double> v, double epsilon) {
    double sum = 0, squares = 0;
    for (const double x : v) sum += x;
    const double mean = sum / static_cast<double>(v.size());
    for (const double x : v) squares += (x - mean) * (x - mean);
    return {mean, 1 / std::sqrt(squares / static_cast<double>(v.size()) + epsilon)};
}

/// InstanceNormalization-6 is group normalisation with a channel a group. GroupNormalization-18 has scale and bias by group, 21 by channel.
Results grouped(const Call& c, I64 groups, bool by_group) {
    const Tensor& x = c.in(0);
    if (x.shape.size() < 2) c.bad_shape(0, "batch and channels are expected; repair the model");
    const I64 channels = x.shape[1], inner = extent(x.shape, 2, x.shape.size());
    if (groups < 1 || channels % groups != 0) c.fail(fmt::format("{} channels in {} groups; repair the model", channels, groups));
    const I64 expected = by_group ? groups : channels;
    for (std::size_t i : {1u, 2u})
        if (c.in(i).count() != expected) c.bad_shape(i, fmt::format("{} values are expected; repair the model", expected));
    const double epsilon = c.real("epsilon", 1e-5f);
    std::vector<double> v = reals_of(x);
    const auto scale = reals_of(c.in(1)), bias = reals_of(c.in(2));
    const I64 per_group = channels / groups, length = per_group * inner;
    for (I64 n = 0; n < x.shape[0]; ++n)
        for (I64 g = 0; g < groups; ++g) {
            const std::span<double> line(v.data() + (n * groups + g) * length, static_cast<std::size_t>(length));
            const Moments m = moments_of(line, epsilon);
            for (I64 k = 0; k < length; ++k) {
                const auto p = static_cast<std::size_t>(by_group ? g : g * per_group + k / inner);
                double& e = line[static_cast<std::size_t>(k)];
                e = (e - m.mean) * m.inverse_deviation * scale[p] + bias[p];
            }
        }
    return one(tensor_of(c, x.dtype, x.shape, std::span<const double>(v)));
}

Results instance_normalization(const Call& c) {
    if (c.in(0).shape.size() < 2) c.bad_shape(0, "batch and channels are expected; repair the model");
    return grouped(c, c.in(0).shape[1], false);
}
Results group_normalization(const Call& c) { return grouped(c, c.integer("num_groups", 0), c.opset < 21); }

/// Elements of `t`, which broadcasts to the dimensions [axis, rank) of x, at that shape.
std::vector<double> spread_tail(const Call& c, const Tensor& t, const Shape& shape) { return reals_of(spread(c, t, shape)); }

/// LayerNormalization-17: outputs Y, Mean and InvStdDev (1 / sqrt(variance + epsilon)) with the normalised dimensions kept as 1.
Results layer_normalization(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size(), axis = c.axis(c.integer("axis", -1), rank);
    const Shape tail(x.shape.begin() + static_cast<std::ptrdiff_t>(axis), x.shape.end());
    const auto scale = spread_tail(c, c.in(1), tail);
    const auto bias = c.has(2) ? spread_tail(c, c.in(2), tail) : std::vector<double>(scale.size(), 0.0);
    const double epsilon = c.real("epsilon", 1e-5f);
    std::vector<double> v = reals_of(x), means, deviations;
    const auto length = static_cast<I64>(scale.size());
    for (I64 o = 0, outer = extent(x.shape, 0, axis); o < outer; ++o) {
        const std::span<double> line(v.data() + o * length, static_cast<std::size_t>(length));
        const Moments m = moments_of(line, epsilon);
        for (std::size_t k = 0; k < line.size(); ++k) line[k] = (line[k] - m.mean) * m.inverse_deviation * scale[k] + bias[k];
        means.push_back(m.mean);
        deviations.push_back(m.inverse_deviation);
    }
    Shape kept = x.shape;
    for (std::size_t d = axis; d < rank; ++d) kept[d] = 1;
    const DType stash = dtype_from_onnx(static_cast<int>(c.integer("stash_type", 1)), "attribute 'stash_type'");
    Results out = one(tensor_of(c, x.dtype, x.shape, std::span<const double>(v)));
    out.push_back(tensor_of(c, stash, kept, std::span<const double>(means)));
    out.push_back(tensor_of(c, stash, kept, std::span<const double>(deviations)));
    return out;
}

/// RMSNormalization-23: x / sqrt(mean(x^2) + epsilon) * scale over dimensions [axis, rank).
Results rms_normalization(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size(), axis = c.axis(c.integer("axis", -1), rank);
    const auto scale = spread_tail(c, c.in(1), Shape(x.shape.begin() + static_cast<std::ptrdiff_t>(axis), x.shape.end()));
    const double epsilon = c.real("epsilon", 1e-5f);
    std::vector<double> v = reals_of(x);
    const auto length = static_cast<I64>(scale.size());
    for (I64 o = 0, outer = extent(x.shape, 0, axis); o < outer; ++o) {
        const std::span<double> line(v.data() + o * length, static_cast<std::size_t>(length));
        double squares = 0;
        for (const double e : line) squares += e * e;
        const double factor = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
        for (std::size_t k = 0; k < line.size(); ++k) line[k] = line[k] * factor * scale[k];
    }
    return one(tensor_of(c, x.dtype, x.shape, std::span<const double>(v)));
}

Results lp_normalization(const Call& c) {
    const std::size_t axis = c.axis(c.integer("axis", -1), c.in(0).shape.size());
    const I64 p = c.integer("p", 2);
    c.require(p == 1 || p == 2, "p must be 1 or 2; repair the model");
    return by_lines(c, axis, axis + 1, [p](std::span<double> v) {
        double norm = 0;
        for (const double x : v) norm += p == 1 ? std::fabs(x) : x * x;
        if (p == 2) norm = std::sqrt(norm);
        for (double& x : v) x = norm == 0 ? 0 : x / norm;
    });
}

/// MeanVarianceNormalization-13: (x - mean) / (deviation + 1e-9) over `axes`, default all but the channels.
Results mean_variance_normalization(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    std::vector<bool> reduced(rank, false);
    for (const I64 axis : c.integers("axes", {0, 2, 3})) reduced[c.axis(axis, rank)] = true;
    std::vector<std::size_t> perm, back(rank);
    for (const bool last : {false, true})
        for (std::size_t d = 0; d < rank; ++d)
            if (reduced[d] == last) perm.push_back(d);
    I64 length = 1;
    for (std::size_t d = 0; d < rank; ++d) {
        back[perm[d]] = d;
        if (reduced[d]) length *= x.shape[d];
    }
    const Tensor moved = permuted(c, x, perm);
    std::vector<double> v = reals_of(moved);
    for (std::size_t first = 0; first < v.size(); first += static_cast<std::size_t>(length)) {
        const std::span<double> line(v.data() + first, static_cast<std::size_t>(length));
        double sum = 0, squares = 0;
        for (const double e : line) sum += e;
        const double mean = sum / static_cast<double>(length);
        for (const double e : line) squares += (e - mean) * (e - mean);
        const double deviation = std::sqrt(squares / static_cast<double>(length)) + 1e-9;
        for (double& e : line) e = (e - mean) / deviation;
    }
    return one(permuted(c, tensor_of(c, x.dtype, moved.shape, std::span<const double>(v)), back));
}

/// LRN-13: x / (bias + alpha / size * sum of squares of the channels around)^beta.
Results lrn(const Call& c) {
    const Tensor& x = c.in(0);
    if (x.shape.size() < 2) c.bad_shape(0, "batch and channels are expected; repair the model");
    const I64 size = c.integer("size", 0), channels = x.shape[1], inner = extent(x.shape, 2, x.shape.size());
    c.require(size >= 1, "size must be at least 1; repair the model");
    const double alpha = c.real("alpha", 1e-4f), beta = c.real("beta", 0.75f), bias = c.real("bias", 1.0f);
    const std::vector<double> v = reals_of(x);
    std::vector<double> y(v.size());
    const I64 before = (size - 1) / 2, after = size - 1 - before;
    c.work(static_cast<double>(v.size()) * static_cast<double>(std::min(size, channels)));
    for (I64 n = 0; n < x.shape[0]; ++n)
        for (I64 ch = 0; ch < channels; ++ch)
            for (I64 i = 0; i < inner; ++i) {
                double squares = 0;
                for (I64 k = std::max<I64>(0, ch - before); k <= std::min(channels - 1, ch + std::min(after, channels)); ++k) {
                    const double e = v[static_cast<std::size_t>((n * channels + k) * inner + i)];
                    squares += e * e;
                }
                const auto at = static_cast<std::size_t>((n * channels + ch) * inner + i);
                y[at] = v[at] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
            }
    return one(tensor_of(c, x.dtype, x.shape, std::span<const double>(y)));
}

}  // namespace

std::span<const Operator> normalize_operators() {
    static constexpr Operator table[] = {
        {"BatchNormalization", batch_normalization, 7},
        {"GroupNormalization", group_normalization, 18},
        {"Hardmax", hardmax},
        {"InstanceNormalization", instance_normalization},
        {"LRN", lrn},
        {"LayerNormalization", layer_normalization, 17},
        {"LogSoftmax", log_softmax},
        {"LpNormalization", lp_normalization},
        {"MeanVarianceNormalization", mean_variance_normalization, 9},
        {"RMSNormalization", rms_normalization, 23},
        {"Softmax", softmax},
    };
    return table;
}

}  // namespace assay::workloads::hostops
