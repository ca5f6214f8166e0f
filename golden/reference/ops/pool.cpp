// MaxPool, AveragePool, LpPool, their global forms, and MaxUnpool.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/parallel.hpp"
#include "golden/reference/window.hpp"

namespace assay::golden::ops {
namespace {

struct Planes {
    std::int64_t count = 0;  ///< N * C
    Window window;
    Value out;
};

Planes prepare(const Value& x, Window window) {
    Shape shape{x.shape[0], x.shape[1]};
    shape.insert(shape.end(), window.out.begin(), window.out.end());
    return {x.shape[0] * x.shape[1], std::move(window), Value(x.dtype, shape)};
}

const Value& checked_input(const Node& node) {
    const Value& x = node.in(0);
    if (x.rank() < 3) node.fail(fmt::format("input of shape {} needs N, C and at least one spatial dimension", to_string(x.shape)));
    return x;
}

/// One window over each whole plane.
Window global_window(const Value& x) {
    Window w;
    for (std::int64_t d = 2; d < x.rank(); ++d) {
        w.in.push_back(x.shape[static_cast<std::size_t>(d)]);
        w.kernel.push_back(w.in.back());
        w.strides.push_back(1);
        w.dilations.push_back(1);
        w.pads_begin.push_back(0);
        w.pads_end.push_back(0);
        w.out.push_back(1);
        w.in_count *= w.in.back();
    }
    w.taps = w.in_count;
    return w;
}

/// Where an element of the input lies, as MaxPool's output Indices counts: over the whole tensor, in rows or (storage_order 1) in columns.
std::int64_t counted(const Window& w, std::int64_t plane, std::int64_t offset, bool columns) {
    if (!columns) return plane * w.in_count + offset;
    std::int64_t index = 0, stride = 1;
    std::vector<std::int64_t> at(w.in.size());
    for (std::size_t d = w.in.size(); d-- > 0; offset /= w.in[d]) at[d] = offset % w.in[d];
    for (std::size_t d = 0; d < at.size(); ++d) {
        index += at[d] * stride;
        stride *= w.in[d];
    }
    return plane * w.in_count + index;
}

Outputs maximum(const Node& node, const Value& x, Window window, bool wants_indices = false, bool columns = false) {
    Planes p = prepare(x, std::move(window));
    const auto offsets = p.window.offsets();
    const std::int64_t positions = p.window.positions;
    Value indices(DType::i64, wants_indices ? p.out.shape : Shape{0});
    const bool errors = node.bounds() && (p.out.floating() || !x.err.empty());
    if (errors) p.out.err.resize(static_cast<std::size_t>(p.out.count()));
    if (errors && wants_indices && !x.err.empty()) indices.err.resize(indices.n.size());
    parallel_for(p.count, static_cast<double>(p.count * positions * p.window.taps), [&](std::int64_t plane) {
        for (std::int64_t position = 0; position < positions; ++position) {
            std::int64_t best = -1, chosen = 0;
            double err = 0;
            for (std::int64_t tap = 0; tap < p.window.taps; ++tap) {
                const std::int64_t offset = offsets[static_cast<std::size_t>(tap * positions + position)];
                if (offset < 0) continue;
                const std::int64_t at = plane * p.window.in_count + offset;
                // NaN wins and stays (IEEE 754-2019 maximum).
                if (best < 0 || (!std::isnan(x.at(best)) && (x.at(at) > x.at(best) || std::isnan(x.at(at))))) {
                    best = at;
                    chosen = offset;
                }
                err = std::max(err, x.error(at));
            }
            const std::int64_t to = plane * positions + position;
            // A window of padding alone: the identity of max.
            p.out.set(to, best >= 0 ? x.at(best) : x.floating() ? -HUGE_VAL : static_cast<double>(lowest(x.dtype)));
            if (errors) p.out.err[static_cast<std::size_t>(to)] = err;
            if (!wants_indices) continue;
            indices.n[static_cast<std::size_t>(to)] = best < 0 ? 0 : counted(p.window, plane, chosen, columns);
            if (indices.err.empty()) continue;
            for (std::int64_t tap = 0; tap < p.window.taps; ++tap) {  // another element may be the chip's largest
                const std::int64_t offset = offsets[static_cast<std::size_t>(tap * positions + position)], at = plane * p.window.in_count + offset;
                if (offset >= 0 && at != best && x.at(at) + x.error(at) >= x.at(best) - x.error(best))
                    indices.err[static_cast<std::size_t>(to)] = HUGE_VAL;
            }
        }
    });
    Outputs out;
    out.push_back(std::move(p.out));
    if (wants_indices) out.push_back(std::move(indices));
    return out;
}

Outputs average(const Node& node, const Value& x, Window window, bool include_pad) {
    Planes p = prepare(x, std::move(window));
    const auto offsets = p.window.offsets();
    const auto padded = p.window.padded_counts();
    const std::int64_t positions = p.window.positions;
    const Numerics& num = node.numerics();
    if (node.bounds()) p.out.err.resize(p.out.f.size());
    parallel_for(p.count, static_cast<double>(p.count * positions * p.window.taps), [&](std::int64_t plane) {
        for (std::int64_t position = 0; position < positions; ++position) {
            double sum = 0, sum_abs = 0, err = 0;
            std::int64_t inside = 0;
            for (std::int64_t tap = 0; tap < p.window.taps; ++tap) {
                const std::int64_t offset = offsets[static_cast<std::size_t>(tap * positions + position)];
                if (offset < 0) continue;
                const std::int64_t at = plane * p.window.in_count + offset;
                sum = num.round(sum + x.at(at));
                sum_abs += std::fabs(x.at(at));
                err += x.error(at);
                ++inside;
            }
            const double divisor = static_cast<double>(include_pad ? padded[static_cast<std::size_t>(position)] : inside);
            const auto to = static_cast<std::size_t>(plane * positions + position);
            p.out.f[to] = num.round(sum / divisor);
            // Division, or multiplication by a rounded reciprocal: two roundings at most.
            if (node.bounds())
                p.out.err[to] = (err + sum_error(static_cast<double>(inside), sum_abs)) / divisor + 2 * rounding(sum / divisor);
        }
    });
    return {std::move(p.out)};
}

/// Relative error of x^p by exp2(p log2 x), as Pow has it; by multiplication for small integers, which is no worse.
double power_relative(double x, double p) {
    return x == 0 ? 0.0 : (kLog2Ulp * kUlp32 + kU32) * std::fabs(p * std::log(x)) + kExp2Ulp * kUlp32 + 2 * kU32;
}

/// (sum |x|^p)^(1/p) over each window; padding counts as 0.
Outputs norm(const Node& node, const Value& x, Window window, double power) {
    if (!(power > 0) || !std::isfinite(power)) node.fail(fmt::format("p={} must be positive", power));
    Planes p = prepare(x, std::move(window));
    const auto offsets = p.window.offsets();
    const std::int64_t positions = p.window.positions;
    const Numerics& num = node.numerics();
    if (node.bounds()) p.out.err.resize(p.out.f.size());
    const bool square = power == 2, plain = power == 1;
    parallel_for(p.count, static_cast<double>(p.count * positions * p.window.taps), [&](std::int64_t plane) {
        for (std::int64_t position = 0; position < positions; ++position) {
            double sum = 0, largest_relative = 0, operand_error = 0, inside = 0;
            for (std::int64_t tap = 0; tap < p.window.taps; ++tap) {
                const std::int64_t offset = offsets[static_cast<std::size_t>(tap * positions + position)];
                if (offset < 0) continue;
                const std::int64_t at = plane * p.window.in_count + offset;
                const double v = std::fabs(x.at(at)), e = x.error(at);
                sum = num.round(sum + (plain ? v : num.round(square ? v * v : std::pow(v, power))));
                if (node.bounds()) {
                    largest_relative = std::max(largest_relative, plain ? 0.0 : square ? kU32 : power_relative(v, power));
                    operand_error += power >= 1 ? std::pow(e, power) : e;
                    ++inside;
                }
            }
            const auto to = static_cast<std::size_t>(plane * positions + position);
            const double y = plain ? sum : square ? num.round(std::sqrt(sum)) : num.round(std::pow(sum, 1 / power));
            p.out.f[to] = y;
            if (!node.bounds()) continue;
            // Minkowski: the norm of the errors is what the operands move the norm by. Relative errors of the sum shrink by the root.
            const double moved = power >= 1 ? std::pow(operand_error, 1 / power) : operand_error > 0 ? HUGE_VAL : 0.0;
            const double relative = (largest_relative + inside * kU32) / power + (plain ? 0.0 : square ? kU32 : power_relative(sum, 1 / power));
            // A square that is flushed takes up to the root of the smallest number with it.
            const double flushed = plain ? inside * kFlush : inside == 0 ? 0.0 : std::pow(inside * kFlush, 1 / power);
            p.out.err[to] = moved + y * std::expm1(relative) + std::max(flushed, kFlush);
        }
    });
    return {std::move(p.out)};
}

double read_power(const Node& node) { return node.version() < 2 ? node.real("p", 2.0f) : static_cast<double>(node.integer("p", 2)); }

}  // namespace

Outputs max_pool(const Node& node) {
    const Value& x = checked_input(node);
    const bool columns = node.version() >= 8 && node.integer("storage_order", 0) != 0;
    return maximum(node, x, read_window(node, Shape(x.shape.begin() + 2, x.shape.end()), {}, true), node.output_count() > 1, columns);
}

Outputs lp_pool(const Node& node) {
    const Value& x = checked_input(node);
    node.real(0);
    return norm(node, x, read_window(node, Shape(x.shape.begin() + 2, x.shape.end()), {}, true), read_power(node));
}

Outputs global_lp_pool(const Node& node) {
    const Value& x = checked_input(node);
    node.real(0);
    return norm(node, x, global_window(x), read_power(node));
}

Outputs max_unpool(const Node& node) {
    const Value &x = checked_input(node), &indices = node.in(1);
    const std::vector<std::int64_t> positions = node.integers(1);
    const std::size_t rank = x.shape.size() - 2;
    if (indices.shape != x.shape) node.fail(fmt::format("indices of {} for an input of {}", to_string(indices.shape), to_string(x.shape)));
    const auto list = [&](std::string_view name, std::size_t size, std::int64_t otherwise) {
        auto out = node.integers(name).value_or(std::vector<std::int64_t>(size, otherwise));
        if (out.size() != size) node.fail(fmt::format("{} has {} entries, needs {}", name, out.size(), size));
        for (const std::int64_t v : out)
            if (v < 0 || v > std::int64_t{1} << 31) node.fail(fmt::format("{} holds {}", name, v));
        return out;
    };
    if (!node.attribute("kernel_shape")) node.fail("kernel_shape is missing");
    const auto kernel = list("kernel_shape", rank, 1), strides = list("strides", rank, 1), pads = list("pads", 2 * rank, 0);
    Shape inner{x.shape[0], x.shape[1]};  // what the indices count over
    for (std::size_t d = 0; d < rank; ++d) {
        inner.push_back((x.shape[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[rank + d]);
        if (inner.back() < 0) node.fail(fmt::format("dimension {} of the output would be {}", d, inner.back()));
    }
    check_size(inner);
    std::vector<std::int64_t> source(static_cast<std::size_t>(element_count(inner)), -1);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] < 0 || positions[i] >= static_cast<std::int64_t>(source.size()))
            node.fail(fmt::format("index {} is outside the output {}", positions[i], to_string(inner)));
        source[static_cast<std::size_t>(positions[i])] = static_cast<std::int64_t>(i);
    }
    Shape shape = inner;
    if (node.has(2)) {
        shape = node.integers(2);
        bool fits = shape.size() == inner.size();
        for (std::size_t d = 0; fits && d < shape.size(); ++d) fits = shape[d] >= inner[d];
        if (!fits) node.fail(fmt::format("output_shape {} does not hold {}", to_string(shape), to_string(inner)));
    }
    const auto strides_inner = strides_of(inner);
    Value y = x.gather(index_of(shape,
                                [&](const std::vector<std::int64_t>& at) {
                                    std::int64_t from = 0;
                                    for (std::size_t d = 0; d < at.size(); ++d) {
                                        if (at[d] >= inner[d]) return std::int64_t{-1};
                                        from += at[d] * strides_inner[d];
                                    }
                                    return source[static_cast<std::size_t>(from)];
                                }),
                       shape);
    if (uncertain(indices)) unbounded(y);
    return {std::move(y)};
}

Outputs average_pool(const Node& node) {
    const Value& x = checked_input(node);
    node.real(0);
    const bool include_pad = node.integer("count_include_pad", 0) != 0;
    return average(node, x, read_window(node, Shape(x.shape.begin() + 2, x.shape.end()), {}, true), include_pad);
}

Outputs global_average_pool(const Node& node) {
    const Value& x = checked_input(node);
    node.real(0);
    return average(node, x, global_window(x), false);
}

Outputs global_max_pool(const Node& node) {
    const Value& x = checked_input(node);
    return maximum(node, x, global_window(x));
}

}  // namespace assay::golden::ops
