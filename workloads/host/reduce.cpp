// Reductions: Reduce*, ArgMax, ArgMin, CumSum, CumProd.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;
using U64 = std::uint64_t;

/// The input with its reduced axes last: `lines` rows of `length` elements, and the result's shape.
struct Lines {
    Tensor moved;
    I64 count = 1, length = 1;
    Shape result;
};

/// Axes: the attribute, or input 1 from the operator's version on that has it. None: all axes, or with noop_with_empty_axes nothing.
std::optional<Lines> lines_of(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    auto axes = c.attribute("axes") ? c.integers("axes") : c.has(1) ? c.list(1) : std::vector<I64>{};
    if (axes.empty() && c.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
    std::vector<bool> reduced(rank, axes.empty());
    for (const I64 axis : axes) reduced[c.axis(axis, rank)] = true;
    Lines lines;
    std::vector<std::size_t> perm;
    for (std::size_t d = 0; d < rank; ++d)
        if (!reduced[d]) perm.push_back(d);
    for (std::size_t d = 0; d < rank; ++d)
        if (reduced[d]) perm.push_back(d);
    for (std::size_t d = 0; d < rank; ++d) {
        (reduced[d] ? lines.length : lines.count) *= x.shape[d];
        if (!reduced[d])
            lines.result.push_back(x.shape[d]);
        else if (c.integer("keepdims", 1) != 0)
            lines.result.push_back(1);
    }
    lines.moved = permuted(c, x, perm);
    return lines;
}

enum class Kind { sum, mean, max, min, prod, l1, l2, log_sum, log_sum_exp, sum_square };

double reduce_line(Kind kind, std::span<const double> v) {
    double r = 0;
    switch (kind) {
        case Kind::sum:
        case Kind::mean:
        case Kind::log_sum:
            for (const double x : v) r += x;
            return kind == Kind::sum ? r : kind == Kind::log_sum ? std::log(r) : r / static_cast<double>(v.size());
        case Kind::max:
        case Kind::min:
            r = kind == Kind::max ? -HUGE_VAL : HUGE_VAL;
            for (const double x : v) {
                if (std::isnan(x)) return x;
                r = kind == Kind::max ? std::max(r, x) : std::min(r, x);
            }
            return r;
        case Kind::prod:
            r = 1;
            for (const double x : v) r *= x;
            return r;
        case Kind::l1:
            for (const double x : v) r += std::fabs(x);
            return r;
        case Kind::l2:
        case Kind::sum_square:
            for (const double x : v) r += x * x;
            return kind == Kind::l2 ? std::sqrt(r) : r;
        case Kind::log_sum_exp: {
            double top = -HUGE_VAL;
            for (const double x : v) top = std::max(top, x);
            if (std::isinf(top)) return top;
            for (const double x : v) r += std::exp(x - top);
            return top + std::log(r);
        }
    }
    return r;
}

/// Integers wrap in sums and products; what has a root or a logarithm goes through double and truncates.
I64 reduce_line(Kind kind, std::span<const I64> v, DType type) {
    const bool big = type == DType::u64;
    U64 r = kind == Kind::prod ? 1 : 0;
    switch (kind) {
        case Kind::sum:
            for (const I64 x : v) r += static_cast<U64>(x);
            return static_cast<I64>(r);
        case Kind::prod:
            for (const I64 x : v) r *= static_cast<U64>(x);
            return static_cast<I64>(r);
        case Kind::l1:
            for (const I64 x : v) r += static_cast<U64>(x < 0 && !big ? static_cast<I64>(0 - static_cast<U64>(x)) : x);
            return static_cast<I64>(r);
        case Kind::sum_square:
            for (const I64 x : v) r += static_cast<U64>(x) * static_cast<U64>(x);
            return static_cast<I64>(r);
        case Kind::max:
        case Kind::min: {
            I64 best = v[0];
            for (const I64 x : v) {
                const bool above = big ? static_cast<U64>(x) > static_cast<U64>(best) : x > best;
                if (x != best && above == (kind == Kind::max)) best = x;
            }
            return best;
        }
        case Kind::mean: {
            I64 sum = 0;
            for (const I64 x : v) sum = static_cast<I64>(static_cast<U64>(sum) + static_cast<U64>(x));
            return v.empty() ? 0 : sum / static_cast<I64>(v.size());
        }
        default: {
            std::vector<double> reals(v.begin(), v.end());
            const double real = reduce_line(kind, std::span<const double>(reals));
            return std::isfinite(real) ? static_cast<I64>(real) : 0;
        }
    }
}

template <Kind kind>
Results reduce(const Call& c) {
    const auto lines = lines_of(c);
    if (!lines) return one(c.in(0));
    const DType type = c.in(0).dtype;
    Tensor out = c.make(type, lines->result);
    if (lines->length == 0 && (kind == Kind::max || kind == Kind::min) && !is_float(type) && out.count() > 0) {
        // Reduce*-20: the bound of the type, which no element can be past.
        std::vector<double> bound(static_cast<std::size_t>(out.count()), kind == Kind::max ? -HUGE_VAL : HUGE_VAL);
        store(out, 0, std::span<const double>(bound));
        return one(std::move(out));
    }
    const auto length = static_cast<std::size_t>(lines->length);
    std::vector<double> reals(is_float(type) ? length : 0);
    std::vector<I64> integers(is_float(type) ? 0 : length);
    for (I64 i = 0; i < lines->count; ++i) {
        if (is_float(type)) {
            load(lines->moved, i * lines->length, std::span<double>(reals));
            const double r = reduce_line(kind, std::span<const double>(reals));
            store(out, i, std::span<const double>(&r, 1));
        } else {
            load(lines->moved, i * lines->length, std::span<I64>(integers));
            const I64 r = reduce_line(kind, std::span<const I64>(integers), type);
            store(out, i, std::span<const I64>(&r, 1));
        }
    }
    return one(std::move(out));
}

/// ArgMax-13: the first (or with select_last_index the last) position of the extreme; NaN counts as the extreme, as in NumPy.
template <bool kMax>
Results arg(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size(), axis = c.axis(c.integer("axis", 0), rank);
    const I64 length = x.shape[axis], inner = extent(x.shape, axis + 1, rank), outer = extent(x.shape, 0, axis);
    const bool last = c.integer("select_last_index", 0) != 0;
    Shape shape = x.shape;
    if (c.integer("keepdims", 1) != 0)
        shape[axis] = 1;
    else
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    Tensor out = c.make(DType::i64, shape);
    if (length == 0 && out.count() > 0) c.bad_shape(0, "an axis without elements has no extreme; repair the model");
    const auto search = [&](const auto& v) {
        using T = std::decay_t<decltype(v[0])>;
        const auto beats = [&](T a, T b) {
            if constexpr (std::is_same_v<T, double>)
                if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && (last || !std::isnan(b));
            if (a == b) return last;
            if (x.dtype == DType::u64) return (static_cast<U64>(a) > static_cast<U64>(b)) == kMax;
            return (a > b) == kMax;
        };
        for (I64 o = 0; o < outer; ++o)
            for (I64 i = 0; i < inner; ++i) {
                I64 best = 0;
                for (I64 k = 1; k < length; ++k)
                    if (beats(v[static_cast<std::size_t>((o * length + k) * inner + i)], v[static_cast<std::size_t>((o * length + best) * inner + i)]))
                        best = k;
                out.as<I64>()[static_cast<std::size_t>(o * inner + i)] = best;
            }
    };
    if (is_float(x.dtype))
        search(reals_of(x));
    else
        search(integers_of(x));
    return one(std::move(out));
}

/// CumSum-11: inclusive or exclusive, from either end. Float sums round once an element, not once a step.
template <bool kProduct>
Results cumulate(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    const std::size_t axis = c.axis(c.integer(1), rank);
    const bool exclusive = c.integer("exclusive", 0) != 0, reverse = c.integer("reverse", 0) != 0;
    const I64 length = x.shape[axis], inner = extent(x.shape, axis + 1, rank), outer = extent(x.shape, 0, axis);
    Tensor out = c.make(x.dtype, x.shape);
    const auto run = [&](auto v) {
        using T = std::decay_t<decltype(v[0])>;
        for (I64 o = 0; o < outer; ++o)
            for (I64 i = 0; i < inner; ++i) {
                T sum = kProduct ? 1 : 0;
                for (I64 k = 0; k < length; ++k) {
                    T& at = v[static_cast<std::size_t>((o * length + (reverse ? length - 1 - k : k)) * inner + i)];
                    T next;
                    if constexpr (std::is_same_v<T, double>)
                        next = kProduct ? sum * at : sum + at;
                    else
                        next = static_cast<T>(kProduct ? static_cast<U64>(sum) * static_cast<U64>(at) : static_cast<U64>(sum) + static_cast<U64>(at));
                    at = exclusive ? sum : next;
                    sum = next;
                }
            }
        store(out, 0, std::span<const T>(v));
    };
    if (is_float(x.dtype))
        run(reals_of(x));
    else
        run(integers_of(x));
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> reduce_operators() {
    static constexpr Operator table[] = {
        {"ArgMax", arg<true>},
        {"ArgMin", arg<false>},
        {"CumProd", cumulate<true>, 26},
        {"CumSum", cumulate<false>, 11},
        {"ReduceL1", reduce<Kind::l1>},
        {"ReduceL2", reduce<Kind::l2>},
        {"ReduceLogSum", reduce<Kind::log_sum>},
        {"ReduceLogSumExp", reduce<Kind::log_sum_exp>},
        {"ReduceMax", reduce<Kind::max>},
        {"ReduceMean", reduce<Kind::mean>},
        {"ReduceMin", reduce<Kind::min>},
        {"ReduceProd", reduce<Kind::prod>},
        {"ReduceSum", reduce<Kind::sum>},
        {"ReduceSumSquare", reduce<Kind::sum_square>},
    };
    return table;
}

}  // namespace assay::workloads::hostops
