// Indexed reads and writes: Gather, GatherElements, GatherND, Scatter*, TensorScatter.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

I64 index_in(const Call& c, I64 index, I64 extent_) {
    if (index < -extent_ || index >= extent_) c.fail(fmt::format("index {} is out of range for a dimension of {}", index, extent_));
    return index < 0 ? index + extent_ : index;
}

Results gather(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size(), axis = c.axis(c.integer("axis", 0), rank);
    const auto indices = c.list(1);
    const auto at = x.shape.begin() + static_cast<std::ptrdiff_t>(axis);
    Shape shape(x.shape.begin(), at);
    shape.insert(shape.end(), c.in(1).shape.begin(), c.in(1).shape.end());
    shape.insert(shape.end(), at + 1, x.shape.end());
    Tensor out = c.make(x.dtype, shape);
    const I64 inner = extent(x.shape, axis + 1, rank), outer = extent(x.shape, 0, axis);
    I64 to = 0;
    for (I64 o = 0; o < outer; ++o)
        for (const I64 index : indices) {
            copy_elements(x, (o * x.shape[axis] + index_in(c, index, x.shape[axis])) * inner, out, to, inner);
            to += inner;
        }
    return one(std::move(out));
}

/// Position in a tensor of `strides` for position `flat` of the index tensor, with the coordinate on `axis` replaced.
struct ElementWalk {
    const Shape& shape;  // of the index tensor
    std::vector<I64> own, strides;
    std::size_t axis;
    I64 at(I64 flat, I64 index) const {
        I64 r = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) r += (d == axis ? index : flat / own[d] % shape[d]) * strides[d];
        return r;
    }
};

ElementWalk walk_of(const Call& c, const Tensor& x, const Tensor& indices) {
    const std::size_t rank = x.shape.size();
    const std::size_t axis = c.axis(c.integer("axis", 0), rank);
    if (indices.shape.size() != rank) c.bad_shape(1, fmt::format("the data is {}; ranks must be equal; repair the model", to_string(x.shape)));
    for (std::size_t d = 0; d < rank; ++d)
        if (d != axis && indices.shape[d] > x.shape[d]) c.bad_shape(1, fmt::format("the data is only {}; repair the model", to_string(x.shape)));
    return {indices.shape, strides_of(indices.shape), strides_of(x.shape), axis};
}

Results gather_elements(const Call& c) {
    const Tensor& x = c.in(0);
    const ElementWalk walk = walk_of(c, x, c.in(1));
    Tensor out = c.make(x.dtype, c.in(1).shape);
    for (I64 i = 0, n = out.count(); i < n; ++i)
        copy_elements(x, walk.at(i, index_in(c, c.in(1).integer(i), x.shape[walk.axis])), out, i, 1);
    return one(std::move(out));
}

/// How an update meets what is there (ScatterND-18, ScatterElements-18).
class Meeting {
public:
    explicit Meeting(const Call& c) : mode_(c.text("reduction", "none")) {
        if (mode_ != "none" && mode_ != "add" && mode_ != "mul" && mode_ != "max" && mode_ != "min")
            c.fail(fmt::format("reduction=\"{}\" is unknown; use none, add, mul, max or min", mode_));
    }
    bool plain() const { return mode_ == "none"; }
    void apply(Tensor& to, I64 i, const Tensor& from, I64 j, I64 count) const {
        if (plain()) return copy_elements(from, j, to, i, count);
        for (I64 k = 0; k < count; ++k) {
            if (is_float(to.dtype)) {
                const double a = to.value(i + k), b = from.value(j + k);
                const double r = mode_ == "add" ? a + b : mode_ == "mul" ? a * b : std::isnan(a) ? a : std::isnan(b) ? b : mode_ == "max" ? std::max(a, b) : std::min(a, b);
                store(to, i + k, std::span<const double>(&r, 1));
            } else {
                const I64 a = to.integer(i + k), b = from.integer(j + k);
                const auto p = static_cast<std::uint64_t>(a), q = static_cast<std::uint64_t>(b);
                const bool above = to.dtype == DType::u64 ? p > q : a > b;
                const I64 r = mode_ == "add" ? static_cast<I64>(p + q) : mode_ == "mul" ? static_cast<I64>(p * q) : above == (mode_ == "max") ? a : b;
                store(to, i + k, std::span<const I64>(&r, 1));
            }
        }
    }

private:
    std::string mode_;
};

Results scatter_elements(const Call& c) {
    Tensor out = c.in(0);
    const Tensor& updates = c.in(2);
    const ElementWalk walk = walk_of(c, out, c.in(1));
    if (updates.shape != c.in(1).shape || updates.dtype != out.dtype) c.bad_shape(2, "it must have the indices' shape and the data's type; repair the model");
    const Meeting meeting(c);
    for (I64 i = 0, n = updates.count(); i < n; ++i)
        meeting.apply(out, walk.at(i, index_in(c, c.in(1).integer(i), out.shape[walk.axis])), updates, i, 1);
    return one(std::move(out));
}

/// GatherND-12: the last dimension of indices holds coordinates into the dimensions after batch_dims.
Results gather_nd(const Call& c) {
    const Tensor &x = c.in(0), &indices = c.in(1);
    const std::size_t rank = x.shape.size();
    const I64 given = c.integer("batch_dims", 0);
    if (given < 0 || indices.shape.empty() || given >= static_cast<I64>(std::min(rank, indices.shape.size())))
        c.fail(fmt::format("batch_dims {} does not fit {} and {}; repair the model", given, to_string(x.shape), to_string(indices.shape)));
    const auto batch = static_cast<std::size_t>(given);
    const auto tuple = static_cast<std::size_t>(indices.shape.back());
    if (tuple < 1 || batch + tuple > rank) c.bad_shape(1, fmt::format("its coordinates do not fit the data {}; repair the model", to_string(x.shape)));
    for (std::size_t d = 0; d < batch; ++d)
        if (x.shape[d] != indices.shape[d]) c.bad_shape(1, fmt::format("its batch differs from the data's {}; repair the model", to_string(x.shape)));
    Shape shape(indices.shape.begin(), indices.shape.end() - 1);
    shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(batch + tuple), x.shape.end());
    Tensor out = c.make(x.dtype, shape);
    const auto strides = strides_of(x.shape);
    const I64 run = extent(x.shape, batch + tuple, rank), batches = extent(x.shape, 0, batch), per_batch = extent(x.shape, batch, rank);
    const I64 rows = indices.count() / static_cast<I64>(tuple), rows_per_batch = batches ? rows / batches : 0;
    for (I64 r = 0; r < rows; ++r) {
        I64 at = r / rows_per_batch * per_batch;
        for (std::size_t k = 0; k < tuple; ++k)
            at += index_in(c, indices.integer(r * static_cast<I64>(tuple) + static_cast<I64>(k)), x.shape[batch + k]) * strides[batch + k];
        copy_elements(x, at, out, r * run, run);
    }
    return one(std::move(out));
}

Results scatter_nd(const Call& c) {
    Tensor out = c.in(0);
    const Tensor &indices = c.in(1), &updates = c.in(2);
    const std::size_t rank = out.shape.size();
    if (indices.shape.empty()) c.bad_shape(1, "coordinates are expected; repair the model");
    const auto tuple = static_cast<std::size_t>(indices.shape.back());
    if (tuple > rank) c.bad_shape(1, fmt::format("its coordinates do not fit the data {}; repair the model", to_string(out.shape)));
    Shape expected(indices.shape.begin(), indices.shape.end() - 1);
    expected.insert(expected.end(), out.shape.begin() + static_cast<std::ptrdiff_t>(tuple), out.shape.end());
    if (updates.shape != expected || updates.dtype != out.dtype)
        c.bad_shape(2, fmt::format("{} {} is expected; repair the model", name_of(out.dtype), to_string(expected)));
    const auto strides = strides_of(out.shape);
    const I64 run = extent(out.shape, tuple, rank), rows = extent(indices.shape, 0, indices.shape.size() - 1);
    const Meeting meeting(c);
    for (I64 r = 0; r < rows; ++r) {
        I64 at = 0;
        for (std::size_t k = 0; k < tuple; ++k)
            at += index_in(c, indices.integer(r * static_cast<I64>(tuple) + static_cast<I64>(k)), out.shape[k]) * strides[k];
        meeting.apply(out, at, updates, r * run, run);
    }
    return one(std::move(out));
}

/// TensorScatter-24: writes `update` into a cache along `axis` from each batch's write index on; circular wraps at the end.
Results tensor_scatter(const Call& c) {
    Tensor out = c.in(0);
    const Tensor& update = c.in(1);
    const std::size_t rank = out.shape.size(), axis = c.axis(c.integer("axis", -2), rank);
    const std::string mode = c.text("mode", "linear");
    c.require(mode == "linear" || mode == "circular", "mode must be linear or circular; repair the model");
    c.require(axis > 0, "the axis must not be the batch; repair the model");
    Shape expected = out.shape;
    if (update.shape.size() == rank) expected[axis] = update.shape[axis];
    if (update.shape != expected || update.dtype != out.dtype) c.bad_shape(1, fmt::format("it does not fit the cache {}; repair the model", to_string(out.shape)));
    const I64 batch = out.shape[0], steps = update.shape[axis], length = out.shape[axis];
    if (c.has(2) && c.in(2).count() != batch) c.bad_shape(2, "a write index for each batch is expected; repair the model");
    const I64 inner = extent(out.shape, axis + 1, rank), outer = extent(out.shape, 1, axis);
    if (steps > length) c.bad_shape(1, "more steps than the cache has; repair the model");
    for (I64 b = 0; b < batch; ++b) {
        const I64 first = c.has(2) ? c.in(2).integer(b) : 0;
        if (first < 0 || first >= std::max<I64>(length, 1) || (mode == "linear" && first + steps > length))
            c.fail(fmt::format("write index {} with {} steps is out of range for a cache of {}", first, steps, length));
        for (I64 o = 0; o < outer; ++o)
            for (I64 s = 0; s < steps; ++s)
                copy_elements(update, ((b * outer + o) * steps + s) * inner, out, ((b * outer + o) * length + (first + s) % length) * inner, inner);
    }
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> gather_operators() {
    static constexpr Operator table[] = {
        {"Gather", gather},
        {"GatherElements", gather_elements, 11},
        {"GatherND", gather_nd, 11},
        {"Scatter", scatter_elements, 9},
        {"ScatterElements", scatter_elements, 11},
        {"ScatterND", scatter_nd, 11},
        {"TensorScatter", tensor_scatter, 24},
    };
    return table;
}

}  // namespace assay::workloads::hostops
