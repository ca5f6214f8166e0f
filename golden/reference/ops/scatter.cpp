// ScatterND-11, -13, -16, -18 (reduction none, add, mul, max, min).
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {

Outputs scatter_nd(const Node& node) {
    Value y = node.in(0);
    const Value &indices = node.in(1), &updates = node.in(2);
    const std::string reduction = node.version() >= 16 ? node.text("reduction", "none") : "none";
    if (indices.rank() < 1 || updates.dtype != y.dtype) node.fail(fmt::format("indices {} and updates of {}", to_string(indices.shape), name_of(updates.dtype)));
    const std::int64_t depth = indices.shape.back();
    if (depth > y.rank()) node.fail(fmt::format("indices of {} coordinates into {} dimensions", depth, y.rank()));
    Shape wanted(indices.shape.begin(), indices.shape.end() - 1);
    wanted.insert(wanted.end(), y.shape.begin() + depth, y.shape.end());
    if (updates.shape != wanted) node.fail(fmt::format("updates of {}, needs {}", to_string(updates.shape), to_string(wanted)));
    const auto strides = strides_of(y.shape);
    const std::int64_t run = element_count(Shape(y.shape.begin() + depth, y.shape.end())), count = depth == 0 ? 1 : indices.count() / depth;
    y.unrounded.clear();
    y.unrounded_err.clear();
    if (!updates.err.empty() && y.err.empty()) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
    const Numerics& num = node.numerics();
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t base = 0;
        for (std::int64_t d = 0; d < depth; ++d) {
            const std::int64_t size = y.shape[static_cast<std::size_t>(d)];
            std::int64_t at = indices.n[static_cast<std::size_t>(i * depth + d)];
            if (at < -size || at >= size) node.fail(fmt::format("index {} outside dimension {} of {}", at, d, size));
            base += (at < 0 ? at + size : at) * strides[static_cast<std::size_t>(d)];
        }
        for (std::int64_t j = 0; j < run; ++j) {
            const auto to = static_cast<std::size_t>(base + j), from = static_cast<std::size_t>(i * run + j);
            const double e = updates.error(static_cast<std::int64_t>(from));
            if (reduction == "none") {
                if (y.floating()) y.f[to] = updates.f[from];
                else y.n[to] = updates.n[from];
                if (!y.err.empty()) y.err[to] = e;
                continue;
            }
            const double old = y.at(static_cast<std::int64_t>(to)), with = updates.at(static_cast<std::int64_t>(from)), old_e = y.error(static_cast<std::int64_t>(to));
            double r = 0, bound = std::max(e, old_e);
            if (reduction == "add") r = old + with, bound = e + old_e + rounding(r);
            else if (reduction == "mul") r = old * with, bound = std::fabs(old) * e + std::fabs(with) * old_e + e * old_e + rounding(r);
            else if (reduction == "max") r = std::max(old, with);
            else if (reduction == "min") r = std::min(old, with);
            else node.fail(fmt::format("reduction=\"{}\" must be none, add, mul, max or min", reduction));
            if (y.floating()) y.f[to] = num.round(r);
            else y.n[to] = wrap(y.dtype, static_cast<std::int64_t>(r));
            if (node.bounds() && y.floating()) {
                if (y.err.empty()) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
                y.err[to] = bound;
            }
        }
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
