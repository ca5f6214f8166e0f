// Normalisations: mean and variance of groups of elements (Layer, Group, Instance, MeanVariance, RMS), p-norms, and LRN across
// channels. All are compositions of bounded sums, roots and products; the mean is taken off before squaring, as the specification's
// formulas do.
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

constexpr Bounded exactly(double v) { return {v, 0}; }
Bounded element(const Value& x, std::int64_t i) { return {x.at(i), x.error(i)}; }

void store(Value& y, std::int64_t i, Bounded b) {
    y.f[static_cast<std::size_t>(i)] = b.v;
    if (!y.err.empty()) y.err[static_cast<std::size_t>(i)] = std::isfinite(b.v) ? b.e : 0.0;
}

Value like(const Node& node, DType type, Shape shape) {
    Value y(type, std::move(shape));
    if (node.bounds()) y.err.resize(y.f.size());
    return y;
}

/// Sum of term(0 .. n-1), each addition rounded, in any order.
template <class T>
Bounded sum_of(const Functions& f, std::int64_t n, T term) {
    Bounded sum;
    double sum_abs = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        const Bounded t = term(j);
        sum.v = f.numerics().round(sum.v + t.v);
        sum.e += t.e;
        sum_abs += std::fabs(t.v);
    }
    sum.e += sum_error(static_cast<double>(n), sum_abs);
    return sum;
}

/// By a division, or by the rounded reciprocal of n: two roundings.
Bounded over_n(const Functions& f, Bounded sum, std::int64_t n) {
    Bounded y = f.div(sum, exactly(static_cast<double>(n)));
    y.e += rounding(y.v);
    return y;
}

struct Moments {
    Bounded mean, variance;
};

template <class At>
Moments moments(const Functions& f, const Value& x, std::int64_t n, At at) {
    Moments m;
    m.mean = over_n(f, sum_of(f, n, [&](std::int64_t j) { return element(x, at(j)); }), n);
    m.variance = over_n(f, sum_of(f, n, [&](std::int64_t j) {
                            const Bounded d = f.sub(element(x, at(j)), m.mean);
                            return f.mul(d, d);
                        }), n);
    return m;
}

/// (x - mean) / sqrt(variance + epsilon), and its factor.
template <class At, class Use>
void normalise(const Functions& f, const Value& x, std::int64_t n, double epsilon, At at, Use use) {
    const Moments m = moments(f, x, n, at);
    const Bounded factor = f.rsqrt(f.add(m.variance, exactly(epsilon)));
    for (std::int64_t j = 0; j < n; ++j) use(j, f.mul(f.sub(element(x, at(j)), m.mean), factor), m.mean, factor);
}

/// Index table by which `from` broadcasts to the trailing dimensions `to`.
std::vector<std::int64_t> fitted(const Node& node, const Value& from, const Shape& to, const char* what) {
    if (broadcast(from.shape, to) != to)
        node.fail(fmt::format("{} of shape {} does not broadcast to {}", what, to_string(from.shape), to_string(to)));
    return broadcast_index(from.shape, to);
}

/// stash_type asks for the precision of the statistics: fp32 (1), which the chip uses, and which fp64 holds.
void check_stash_type(const Node& node) {
    const std::int64_t type = node.integer("stash_type", 1);
    if (type != 1) node.fail(fmt::format("stash_type={} is not supported; only 1 (float32) is", type));
}

}  // namespace

Outputs layer_normalization(const Node& node) {
    const Value &x = node.real(0), &scale = node.real(1);
    const std::int64_t axis = node.axis(node.integer("axis", -1), x.rank());
    const double epsilon = node.real("epsilon", 1e-5f);
    check_stash_type(node);
    const Shape inner(x.shape.begin() + axis, x.shape.end());
    const std::int64_t n = element_count(inner), outer = n == 0 ? 0 : x.count() / n;
    const auto is = fitted(node, scale, inner, "Scale");
    const auto ib = node.has(2) ? fitted(node, node.real(2), inner, "B") : std::vector<std::int64_t>{};
    Shape reduced = x.shape;
    for (std::size_t d = static_cast<std::size_t>(axis); d < reduced.size(); ++d) reduced[d] = 1;
    Value y = like(node, x.dtype, x.shape), mean = like(node, DType::f32, reduced), factor = like(node, DType::f32, reduced);
    const Functions f(node.numerics());
    for (std::int64_t o = 0; o < outer; ++o)
        normalise(f, x, n, epsilon, [&](std::int64_t j) { return o * n + j; }, [&](std::int64_t j, Bounded r, Bounded m, Bounded inv) {
            const auto at = static_cast<std::size_t>(j);
            r = f.mul(r, element(scale, is[at]));
            if (!ib.empty()) r = f.add(r, element(node.in(2), ib[at]));
            store(y, o * n + j, r);
            store(mean, o, m);
            store(factor, o, inv);
        });
    return {std::move(y), std::move(mean), std::move(factor)};
}

Outputs rms_normalization(const Node& node) {
    const Value &x = node.real(0), &scale = node.real(1);
    const std::int64_t axis = node.axis(node.integer("axis", -1), x.rank());
    const double epsilon = node.real("epsilon", 1e-5f);
    check_stash_type(node);
    const Shape inner(x.shape.begin() + axis, x.shape.end());
    const std::int64_t n = element_count(inner), outer = n == 0 ? 0 : x.count() / n;
    const auto is = fitted(node, scale, inner, "scale");
    Value y = like(node, x.dtype, x.shape);
    const Functions f(node.numerics());
    for (std::int64_t o = 0; o < outer; ++o) {
        const Bounded squares = sum_of(f, n, [&](std::int64_t j) {
            const Bounded v = element(x, o * n + j);
            return f.mul(v, v);
        });
        const Bounded factor = f.rsqrt(f.add(over_n(f, squares, n), exactly(epsilon)));
        for (std::int64_t j = 0; j < n; ++j)
            store(y, o * n + j, f.mul(f.mul(element(x, o * n + j), factor), element(scale, is[static_cast<std::size_t>(j)])));
    }
    return {std::move(y)};
}

namespace {

/// Groups of whole channels of (N, C, ...); parameter(c) is the index into scale and bias of channel c.
template <class P>
Outputs by_channels(const Node& node, std::int64_t groups, double epsilon, P parameter) {
    const Value &x = node.real(0), &scale = node.real(1), &bias = node.real(2);
    const std::int64_t channels = x.shape[1];
    const std::int64_t plane = element_count(Shape(x.shape.begin() + 2, x.shape.end())), n = groups == 0 ? 0 : channels / groups * plane;
    Value y = like(node, x.dtype, x.shape);
    const Functions f(node.numerics());
    if (n == 0) return {std::move(y)};
    for (std::int64_t g = 0; g < x.shape[0] * groups; ++g)
        normalise(f, x, n, epsilon, [&](std::int64_t j) { return g * n + j; }, [&](std::int64_t j, Bounded r, Bounded, Bounded) {
            const std::int64_t c = parameter(g % groups * (channels / groups) + j / plane);
            store(y, g * n + j, f.add(f.mul(r, element(scale, c)), element(bias, c)));
        });
    return {std::move(y)};
}

void check_parameters(const Node& node, std::int64_t count) {
    for (std::size_t i : {1u, 2u})
        if (node.real(i).rank() != 1 || node.real(i).count() != count)
            node.fail(fmt::format("input {} has shape {}, must be one dimension of {}", i, to_string(node.in(i).shape), count));
}

}  // namespace

Outputs instance_normalization(const Node& node) {
    const Value& x = node.real(0);
    if (x.rank() < 2) node.fail(fmt::format("input of shape {} needs N and C", to_string(x.shape)));
    check_parameters(node, x.shape[1]);
    return by_channels(node, x.shape[1], node.real("epsilon", 1e-5f), [](std::int64_t c) { return c; });
}

Outputs group_normalization(const Node& node) {
    const Value& x = node.real(0);
    if (x.rank() < 2) node.fail(fmt::format("input of shape {} needs N and C", to_string(x.shape)));
    const std::int64_t groups = node.integer("num_groups", 0), channels = x.shape[1];
    if (groups < 1 || channels % groups) node.fail(fmt::format("num_groups={}: must divide the {} channels", groups, channels));
    const double epsilon = node.real("epsilon", 1e-5f);
    if (node.version() >= 21) check_stash_type(node);
    const bool by_group = node.version() < 21;  // version 18 scales each group, 21 each channel
    check_parameters(node, by_group ? groups : channels);
    return by_channels(node, groups, epsilon, [=](std::int64_t c) { return by_group ? c / (channels / groups) : c; });
}

Outputs mean_variance_normalization(const Node& node) {
    const Value& x = node.real(0);
    const auto axes = node.integers("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
    Shape kept = x.shape;
    for (const std::int64_t a : axes) kept[static_cast<std::size_t>(node.axis(a, x.rank()))] = 1;
    const auto group = broadcast_index(kept, x.shape);
    std::vector<std::vector<std::int64_t>> members(static_cast<std::size_t>(element_count(kept)));
    for (std::size_t i = 0; i < group.size(); ++i) members[static_cast<std::size_t>(group[i])].push_back(static_cast<std::int64_t>(i));
    Value y = like(node, x.dtype, x.shape);
    const Functions f(node.numerics());
    for (const auto& m : members) {
        const auto n = static_cast<std::int64_t>(m.size());
        Moments moment = moments(f, x, n, [&](std::int64_t j) { return m[static_cast<std::size_t>(j)]; });
        // The operator's function body takes E[x^2] - E[x]^2, which cancels: its roundings are those of the squares.
        double squares = 0;
        for (const std::int64_t i : m) squares += x.at(i) * x.at(i);
        moment.variance.e += sum_error(static_cast<double>(n), squares) / static_cast<double>(n) +
                             4 * rounding(squares / static_cast<double>(n)) + 2 * std::fabs(moment.mean.v) * moment.mean.e;
        const Bounded deviation = f.add(f.sqrt(moment.variance), exactly(1e-9));
        for (const std::int64_t i : m) store(y, i, f.div(f.sub(element(x, i), moment.mean), deviation));
    }
    return {std::move(y)};
}

Outputs lp_normalization(const Node& node) {
    const Value& x = node.real(0);
    const std::int64_t axis = node.axis(node.integer("axis", -1), x.rank()), p = node.integer("p", 2);
    if (p != 1 && p != 2) node.fail(fmt::format("p={}: must be 1 or 2", p));
    const std::int64_t length = x.shape[static_cast<std::size_t>(axis)];
    const std::int64_t inner = element_count(Shape(x.shape.begin() + axis + 1, x.shape.end()));
    Value y = like(node, x.dtype, x.shape);
    const Functions f(node.numerics());
    for (std::int64_t g = 0; length > 0 && g < x.count() / length; ++g) {
        const auto at = [&](std::int64_t j) { return (g / inner * length + j) * inner + g % inner; };
        const Bounded sum = sum_of(f, length, [&](std::int64_t j) {
            const Bounded v = element(x, at(j));
            return p == 1 ? Bounded{std::fabs(v.v), v.e} : f.mul(v, v);
        });
        const Bounded norm = p == 1 ? sum : f.sqrt(sum);
        // A vector of zeros stays one.
        for (std::int64_t j = 0; j < length; ++j) store(y, at(j), norm.v == 0 && norm.e < 0x1p-60 ? Bounded{} : f.div(element(x, at(j)), norm));
    }
    return {std::move(y)};
}

Outputs lrn(const Node& node) {
    const Value& x = node.real(0);
    if (x.rank() < 2) node.fail(fmt::format("input of shape {} needs N and C", to_string(x.shape)));
    const std::int64_t size = node.integer("size", 0), channels = x.shape[1];
    if (size < 1) node.fail(fmt::format("size={}: must be at least 1", size));
    const double alpha = node.real("alpha", 0.0001f), beta = node.real("beta", 0.75f), bias = node.real("bias", 1.0f);
    const std::int64_t plane = element_count(Shape(x.shape.begin() + 2, x.shape.end()));
    Value y = like(node, x.dtype, x.shape);
    const Functions f(node.numerics());
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const std::int64_t c = i / plane % channels;
        const std::int64_t first = std::max<std::int64_t>(0, c - (size - 1) / 2), last = std::min(channels - 1, c + size / 2);
        const Bounded sum = sum_of(f, last - first + 1, [&](std::int64_t j) {
            const Bounded v = element(x, i + (first + j - c) * plane);
            return f.mul(v, v);
        });
        Bounded part = f.mul(sum, exactly(f.numerics().round(alpha / static_cast<double>(size))));
        part.e += 2 * rounding(part.v);  // alpha/size is rounded, or is two steps
        Bounded power = f.power(f.add(exactly(bias), part), beta);
        store(y, i, f.div(element(x, i), power));
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
