// Pooling of any number of spatial dimensions, and MaxUnpool.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"
#include "workloads/host/window.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// Calls f(position in the plane, positions the window would read, taps) for every window; planes share this walk.
template <class F>
void each_window(const Windows& w, F&& f) {
    const auto strides = strides_of(w.in);
    std::vector<I64> out(w.rank(), 0);
    std::vector<I64> taps;
    I64 position = 0;
    for (const I64 e : w.out)
        if (e == 0) return;
    do {
        taps.clear();
        I64 padded = 0;  // taps inside the padded input: what count_include_pad counts
        std::vector<I64> k(w.rank(), 0);
        do {
            I64 at = 0;
            bool inside = true, in_padding = true;
            for (std::size_t d = 0; d < w.rank(); ++d) {
                const I64 s = w.source(d, out[d], k[d]);
                inside &= s >= 0 && s < w.in[d];
                in_padding &= s >= -w.begin[d] && s < w.in[d] + w.end[d];
                at += s * strides[d];
            }
            if (inside) taps.push_back(at);
            padded += in_padding;
        } while (next_index(k, w.kernel));
        f(position++, taps, padded);
    } while (next_index(out, w.out));
}

struct Pool {
    Windows w;
    Shape result;
    I64 planes, in_plane, out_plane;
    explicit Pool(const Call& c) : w(windows_of(c, c.in(0).shape, c.integers("kernel_shape"))) {
        const Shape& x = c.in(0).shape;
        result = {x[0], x[1]};
        result.insert(result.end(), w.out.begin(), w.out.end());
        planes = x[0] * x[1];
        in_plane = extent(x, 2, x.size());
        out_plane = extent(result, 2, result.size());
        double taps = 1;
        for (const I64 k : w.kernel) taps *= static_cast<double>(k);
        c.make(DType::u8, {std::min(element_count(result), kMaxElements + 1)});
        c.work(taps * static_cast<double>(std::max<I64>(planes, 1)) * static_cast<double>(out_plane));
    }
};

/// MaxPool-12: NaN is never greater, padding never wins. Indices count in the flat input tensor; storage_order 1 takes the plane's
/// coordinates with the first spatial dimension fastest.
Results max_pool(const Call& c) {
    const Tensor& x = c.in(0);
    const Pool p(c);
    Tensor out = c.make(x.dtype, p.result), indices = c.make(DType::i64, p.result);
    const bool real = is_float(x.dtype), column_major = c.integer("storage_order", 0) != 0;
    const auto reals = real ? reals_of(x) : std::vector<double>{};
    const auto integers = real ? std::vector<I64>{} : integers_of(x);
    const auto strides = strides_of(p.w.in);
    each_window(p.w, [&](I64 position, const std::vector<I64>& taps, I64) {
        if (taps.empty()) c.fail("a window lies in the padding alone and has no maximum; repair the model");
        for (I64 plane = 0; plane < p.planes; ++plane) {
            const I64 base = plane * p.in_plane;
            I64 best = taps[0];
            for (const I64 t : taps) {
                const auto a = static_cast<std::size_t>(base + t), b = static_cast<std::size_t>(base + best);
                if (real ? reals[a] > reals[b] || (std::isnan(reals[b]) && !std::isnan(reals[a])) : integers[a] > integers[b]) best = t;
            }
            const I64 to = plane * p.out_plane + position;
            copy_elements(x, base + best, out, to, 1);
            I64 flat = best;
            if (column_major) {
                flat = 0;
                I64 scale = 1;
                for (std::size_t d = 0; d < strides.size(); ++d) {
                    flat += best / strides[d] % p.w.in[d] * scale;
                    scale *= p.w.in[d];
                }
            }
            indices.as<I64>()[static_cast<std::size_t>(to)] = base + flat;
        }
    });
    Results r = one(std::move(out));
    r.push_back(std::move(indices));
    return r;
}

/// AveragePool-19: the divisor is the taps inside the input, or with count_include_pad those inside the padded input.
Results average_pool(const Call& c) {
    const Tensor& x = c.in(0);
    const Pool p(c);
    const bool include = c.integer("count_include_pad", 0) != 0;
    const auto v = reals_of(x);
    std::vector<double> y(static_cast<std::size_t>(element_count(p.result)));
    each_window(p.w, [&](I64 position, const std::vector<I64>& taps, I64 padded) {
        const double divisor = static_cast<double>(include ? padded : static_cast<I64>(taps.size()));
        for (I64 plane = 0; plane < p.planes; ++plane) {
            double sum = 0;
            for (const I64 t : taps) sum += v[static_cast<std::size_t>(plane * p.in_plane + t)];
            y[static_cast<std::size_t>(plane * p.out_plane + position)] = divisor == 0 ? 0 : sum / divisor;
        }
    });
    return one(tensor_of(c, x.dtype, p.result, std::span<const double>(y)));
}

double lp_norm(double sum, double p) { return std::pow(sum, 1 / p); }

Results lp_pool(const Call& c) {
    const Tensor& x = c.in(0);
    const Pool pool(c);
    const double p = static_cast<double>(c.integer("p", 2));
    c.require(p >= 1, "p must be at least 1; repair the model");
    const auto v = reals_of(x);
    std::vector<double> y(static_cast<std::size_t>(element_count(pool.result)));
    each_window(pool.w, [&](I64 position, const std::vector<I64>& taps, I64) {
        for (I64 plane = 0; plane < pool.planes; ++plane) {
            double sum = 0;
            for (const I64 t : taps) sum += std::pow(std::fabs(v[static_cast<std::size_t>(plane * pool.in_plane + t)]), p);
            y[static_cast<std::size_t>(plane * pool.out_plane + position)] = lp_norm(sum, p);
        }
    });
    return one(tensor_of(c, x.dtype, pool.result, std::span<const double>(y)));
}

template <class F>
Results global(const Call& c, F&& f) {
    const Tensor& x = c.in(0);
    if (x.shape.size() < 2) c.bad_shape(0, "batch and channels are expected; repair the model");
    Shape shape = x.shape;
    for (std::size_t d = 2; d < shape.size(); ++d) shape[d] = 1;
    const I64 planes = x.shape[0] * x.shape[1], length = extent(x.shape, 2, x.shape.size());
    const auto v = reals_of(x);
    std::vector<double> y;
    for (I64 i = 0; i < planes; ++i) y.push_back(f(std::span<const double>(v.data() + i * length, static_cast<std::size_t>(length))));
    return one(tensor_of(c, x.dtype, shape, std::span<const double>(y)));
}

Results global_average(const Call& c) {
    return global(c, [](std::span<const double> v) {
        double sum = 0;
        for (const double e : v) sum += e;
        return sum / static_cast<double>(v.size());
    });
}
Results global_max(const Call& c) {
    return global(c, [](std::span<const double> v) {
        double top = -HUGE_VAL;
        for (const double e : v) top = std::isnan(e) || std::isnan(top) ? std::nan("") : std::max(top, e);
        return top;
    });
}
Results global_lp(const Call& c) {
    const double p = static_cast<double>(c.integer("p", 2));
    c.require(p >= 1, "p must be at least 1; repair the model");
    return global(c, [p](std::span<const double> v) {
        double sum = 0;
        for (const double e : v) sum += std::pow(std::fabs(e), p);
        return lp_norm(sum, p);
    });
}

/// MaxUnpool-11: values go back to where MaxPool's Indices say, in a tensor of the default shape or of input 2's.
Results max_unpool(const Call& c) {
    const Tensor &x = c.in(0), &indices = c.in(1);
    const std::size_t rank = x.shape.size() < 2 ? 0 : x.shape.size() - 2;
    const auto kernel = c.integers("kernel_shape"), strides = c.integers("strides", std::vector<I64>(rank, 1)), pads = c.integers("pads", std::vector<I64>(2 * rank, 0));
    if (rank == 0 || kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank) c.bad_shape(0, "kernel_shape, strides and pads do not fit; repair the model");
    if (indices.shape != x.shape) c.bad_shape(1, "an index for each value is expected; repair the model");
    Shape inferred{x.shape[0], x.shape[1]};
    for (std::size_t d = 0; d < rank; ++d) inferred.push_back((x.shape[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[rank + d]);
    const Shape shape = c.has(2) ? Shape(c.list(2)) : inferred;
    Tensor out = c.make(x.dtype, shape);
    // Indices count in the inferred shape; a larger output keeps the coordinates.
    const auto from = strides_of(inferred), to = strides_of(shape);
    if (shape.size() != inferred.size()) c.bad_shape(2, "it does not fit the input's rank; repair the model");
    const I64 limit = element_count(inferred);
    for (I64 i = 0, n = x.count(); i < n; ++i) {
        const I64 flat = indices.integer(i);
        if (flat < 0 || flat >= limit) c.fail(fmt::format("index {} is outside {} elements", flat, limit));
        I64 at = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const I64 k = flat / from[d] % inferred[d];
            if (k >= shape[d]) c.fail(fmt::format("index {} is outside the output {}", flat, to_string(shape)));
            at += k * to[d];
        }
        copy_elements(x, i, out, at, 1);
    }
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> pool_operators() {
    static constexpr Operator table[] = {
        {"AveragePool", average_pool}, {"GlobalAveragePool", global_average}, {"GlobalLpPool", global_lp, 2}, {"GlobalMaxPool", global_max},
        {"LpPool", lp_pool, 2},        {"MaxPool", max_pool},                 {"MaxUnpool", max_unpool, 9},
    };
    return table;
}

}  // namespace assay::workloads::hostops
