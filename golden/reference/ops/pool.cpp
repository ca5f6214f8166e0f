// MaxPool, AveragePool and their global forms.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
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

Outputs maximum(const Node& node, const Value& x, Window window) {
    Planes p = prepare(x, std::move(window));
    const auto offsets = p.window.offsets();
    const std::int64_t positions = p.window.positions;
    if (node.bounds() && p.out.floating()) p.out.err.resize(p.out.f.size());
    for (std::int64_t plane = 0; plane < p.count; ++plane)
        for (std::int64_t position = 0; position < positions; ++position) {
            std::int64_t best = -1;
            double err = 0;
            for (std::int64_t tap = 0; tap < p.window.taps; ++tap) {
                const std::int64_t offset = offsets[static_cast<std::size_t>(tap * positions + position)];
                if (offset < 0) continue;
                const std::int64_t at = plane * p.window.in_count + offset;
                // NaN wins and stays (IEEE 754-2019 maximum).
                if (best < 0 || (!std::isnan(x.at(best)) && (x.at(at) > x.at(best) || std::isnan(x.at(at))))) best = at;
                err = std::max(err, x.error(at));
            }
            const std::int64_t to = plane * positions + position;
            // A window of padding alone: the identity of max.
            p.out.set(to, best >= 0 ? x.at(best) : x.floating() ? -HUGE_VAL : static_cast<double>(lowest(x.dtype)));
            if (!p.out.err.empty())
                p.out.err[static_cast<std::size_t>(to)] = err;
            else if (!p.out.floating() && err > 0) {
                p.out.err.resize(p.out.n.size());
                p.out.err[static_cast<std::size_t>(to)] = err;
            }
        }
    return {std::move(p.out)};
}

Outputs average(const Node& node, const Value& x, Window window, bool include_pad) {
    Planes p = prepare(x, std::move(window));
    const auto offsets = p.window.offsets();
    const auto padded = p.window.padded_counts();
    const std::int64_t positions = p.window.positions;
    const Numerics& num = node.numerics();
    if (node.bounds()) p.out.err.resize(p.out.f.size());
    for (std::int64_t plane = 0; plane < p.count; ++plane)
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
    return {std::move(p.out)};
}

}  // namespace

Outputs max_pool(const Node& node) {
    const Value& x = checked_input(node);
    node.require("storage_order", 0);
    if (node.output_count() > 1) node.fail("output Indices is not supported");
    return maximum(node, x, read_window(node, Shape(x.shape.begin() + 2, x.shape.end()), {}, true));
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
