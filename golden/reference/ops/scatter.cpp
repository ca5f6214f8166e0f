// ScatterND, ScatterElements (and Scatter, its first name), Col2Im: what is written over, or combined with, the elements that lie there.
#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/window.hpp"

namespace assay::golden::ops {
namespace {

enum class Reduction { none, add, mul, max, min };

Reduction read_reduction(const Node& node) {
    if (node.version() < 16) return Reduction::none;
    const std::string word = node.text("reduction", "none");
    if (word == "none") return Reduction::none;
    if (word == "add") return Reduction::add;
    if (word == "mul") return Reduction::mul;
    if (word == "max" && node.version() >= 18) return Reduction::max;
    if (word == "min" && node.version() >= 18) return Reduction::min;
    node.fail(fmt::format("reduction=\"{}\" is not known; use none, add, mul, or, since version 18, max or min", word));
}

/// Combines updates into a tensor one element at a time, errors with them. Elements written more than once are combined in the order of the
/// updates; the chip may take another: sum_error covers what that changes.
class Target {
public:
    Target(const Node& node, const Value& data, const Value& updates, const Value& indices, Reduction reduction)
        : y(data), num_(node.numerics()), updates_(updates), reduction_(reduction), bounds_(node.bounds()) {
        if (updates.dtype != y.dtype) node.fail(fmt::format("updates are {}, the data {}", name_of(updates.dtype), name_of(y.dtype)));
        drop_unrounded(y);
        if (bounds_ && y.err.empty() && (y.floating() || !updates.err.empty())) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
        if (bounds_ && y.floating() && reduction == Reduction::add) {
            sum_abs_.resize(y.f.size());
            for (std::size_t i = 0; i < y.f.size(); ++i) sum_abs_[i] = std::fabs(y.f[i]);
            terms_.assign(y.f.size(), 1);
        }
        where_uncertain_ = uncertain(indices);
    }

    void put(std::int64_t to, std::int64_t from) {
        const auto t = static_cast<std::size_t>(to), s = static_cast<std::size_t>(from);
        if (!y.floating()) {
            put_integer(y.n[t], updates_.n[s]);
            if (!y.err.empty()) y.err[t] = reduction_ == Reduction::none ? updates_.error(from) : HUGE_VAL;
            return;
        }
        const double old = y.f[t], with = updates_.f[s], ea = y.error(to), eb = updates_.error(from);
        double e = std::max(ea, eb);
        switch (reduction_) {
            case Reduction::none:
                y.f[t] = with;
                e = eb;
                break;
            case Reduction::add:
                y.f[t] = num_.round(old + with);
                e = ea + eb;  // roundings: finish()
                if (bounds_) {
                    sum_abs_[t] += std::fabs(with);
                    terms_[t] += 1;
                }
                break;
            case Reduction::mul:
                y.f[t] = num_.round(old * with);
                e = std::fabs(old) * eb + std::fabs(with) * ea + ea * eb + rounding(y.f[t]);
                break;
            case Reduction::max:
                y.f[t] = std::isnan(old) || with < old ? old : with;
                break;
            case Reduction::min:
                y.f[t] = std::isnan(old) || with > old ? old : with;
                break;
        }
        if (!y.err.empty()) y.err[t] = e;
    }

    Outputs finish() {
        for (std::size_t i = 0; i < terms_.size(); ++i) y.err[i] += sum_error(terms_[i], sum_abs_[i]);
        if (bounds_ && where_uncertain_) unbounded(y);
        return {std::move(y)};
    }

    Value y;

private:
    void put_integer(std::int64_t& to, std::int64_t from) const {
        const auto a = static_cast<std::uint64_t>(to), b = static_cast<std::uint64_t>(from);
        switch (reduction_) {
            case Reduction::none:
                to = from;
                return;
            case Reduction::add:
                to = wrap(y.dtype, static_cast<std::int64_t>(a + b));
                return;
            case Reduction::mul:
                to = wrap(y.dtype, static_cast<std::int64_t>(a * b));
                return;
            case Reduction::max:
                to = y.dtype == DType::u64 ? static_cast<std::int64_t>(std::max(a, b)) : std::max(to, from);
                return;
            case Reduction::min:
                to = y.dtype == DType::u64 ? static_cast<std::int64_t>(std::min(a, b)) : std::min(to, from);
                return;
        }
    }

    const Numerics& num_;
    const Value& updates_;
    Reduction reduction_;
    bool bounds_ = false, where_uncertain_ = false;
    std::vector<double> sum_abs_, terms_;
};

}  // namespace

Outputs scatter_nd(const Node& node) {
    const Value &x = node.in(0), &indices = node.in(1), &updates = node.in(2);
    const std::vector<std::int64_t> positions = node.integers(1);
    const std::int64_t depth = indices.rank() ? indices.shape.back() : 0;
    if (indices.rank() < 1 || depth > x.rank())
        node.fail(fmt::format("indices of {} into {}", to_string(indices.shape), to_string(x.shape)));
    Shape wanted(indices.shape.begin(), indices.shape.end() - 1);
    const std::int64_t count = element_count(wanted);
    wanted.insert(wanted.end(), x.shape.begin() + depth, x.shape.end());
    if (updates.shape != wanted) node.fail(fmt::format("updates have shape {}, must have {}", to_string(updates.shape), to_string(wanted)));
    const auto strides = strides_of(x.shape);
    const std::int64_t run = extent(x.shape, static_cast<std::size_t>(depth), x.shape.size());
    Target target(node, x, updates, indices, read_reduction(node));
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t base = 0;
        for (std::int64_t d = 0; d < depth; ++d) {
            const auto axis = static_cast<std::size_t>(d);
            base += checked_index(node, positions[static_cast<std::size_t>(i * depth + d)], x.shape[axis]) * strides[axis];
        }
        for (std::int64_t j = 0; j < run; ++j) target.put(base + j, i * run + j);
    }
    return target.finish();
}

Outputs scatter_elements(const Node& node) {
    const Value &x = node.in(0), &indices = node.in(1), &updates = node.in(2);
    const std::vector<std::int64_t> positions = node.integers(1);
    const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), x.rank()));
    bool fits = indices.shape == updates.shape && indices.rank() == x.rank();
    for (std::size_t d = 0; fits && d < x.shape.size(); ++d) fits = d == axis || indices.shape[d] <= x.shape[d];
    if (!fits)
        node.fail(fmt::format("indices {} and updates {} into data {}", to_string(indices.shape), to_string(updates.shape), to_string(x.shape)));
    const auto strides = strides_of(x.shape);
    Target target(node, x, updates, indices, read_reduction(node));
    std::int64_t next = 0;
    index_of(indices.shape, [&](const std::vector<std::int64_t>& at) {
        std::int64_t to = checked_index(node, positions[static_cast<std::size_t>(next)], x.shape[axis]) * strides[axis];
        for (std::size_t d = 0; d < at.size(); ++d) to += d == axis ? 0 : at[d] * strides[d];
        target.put(to, next++);
        return to;
    });
    return target.finish();
}

Outputs col2im(const Node& node) {
    const Value& x = node.real(0);
    const Shape image = node.integers(1), block = node.integers(2);
    if (image.empty() || image.size() != block.size() || x.rank() != 3)
        node.fail(fmt::format("input {}, image {}, block {}", to_string(x.shape), to_string(image), to_string(block)));
    for (const Shape* shape : {&image, &block})
        for (const std::int64_t dim : *shape)
            if (dim < 1) node.fail(fmt::format("image {} and block {} must be positive", to_string(image), to_string(block)));
    const Window window = read_window(node, image, block, false);
    Shape shape{x.shape[0], window.taps ? x.shape[1] / window.taps : 0};
    if (x.shape[1] % window.taps || x.shape[2] != window.positions)
        node.fail(fmt::format("input {}: needs {} columns in multiples of {} rows", to_string(x.shape), window.positions, window.taps));
    const std::int64_t planes = shape[0] * shape[1];
    shape.insert(shape.end(), image.begin(), image.end());
    const auto offsets = window.offsets();
    const std::int64_t columns = window.taps * window.positions;
    Target target(node, Value(x.dtype, shape), x, Value(DType::i64, {0}), Reduction::add);
    for (std::int64_t plane = 0; plane < planes; ++plane)
        for (std::int64_t i = 0; i < columns; ++i)
            if (offsets[static_cast<std::size_t>(i)] >= 0)
                target.put(plane * window.in_count + offsets[static_cast<std::size_t>(i)], plane * columns + i);
    return target.finish();
}

}  // namespace assay::golden::ops
