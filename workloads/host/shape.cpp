// Operators about shapes, and makers of constants: Reshape and its kin, Shape, Size, Constant, ConstantOfShape, Range, EyeLike, OneHot.
#include <fmt/core.h>

#include <cmath>

#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"
#include "workloads/host/functions.hpp"

namespace assay::workloads::hostops {
namespace {

Results identity(const Call& c) { return one(c.in(0)); }

/// Inference leaves x as it is; the mask is all true. Dropout-12 may ask for training, which is random unless the ratio is 0.
Results dropout(const Call& c) {
    if (c.opset >= 12 && c.has(2) && c.integer(2) != 0 && (c.has(1) ? c.real(1) : 0.5) != 0)
        c.fail("training_mode with a ratio above 0 is random; export the model for inference");
    Results out = one(c.in(0));
    if (c.wants(1)) {
        Tensor mask = c.make(c.opset >= 10 ? DType::boolean : c.in(0).dtype, c.in(0).shape);
        map_reals(c.in(0), mask, [](double) { return 1.0; });
        out.push_back(std::move(mask));
    }
    return out;
}

/// Reshape-14: 0 copies a dimension (unless allowzero), one -1 takes what is left.
Results reshape(const Call& c) {
    const Shape& from = c.in(0).shape;
    Shape to = c.list(1);
    if (c.in(1).shape.size() > 1) c.bad_shape(1, "a list is expected; repair the model");
    std::int64_t known = 1;
    int open = -1;
    for (std::size_t i = 0; i < to.size(); ++i) {
        if (to[i] == 0 && c.integer("allowzero", 0) == 0) {
            if (i >= from.size()) c.fail("the target shape copies a dimension that the input lacks; repair the model");
            to[i] = from[i];
        }
        if (to[i] < -1 || (to[i] == -1 && open >= 0)) c.fail(fmt::format("the target shape is {}; repair the model", to_string(to)));
        if (to[i] == -1)
            open = static_cast<int>(i);
        else if (__builtin_mul_overflow(known, to[i], &known))
            c.fail(fmt::format("the target shape is {}; repair the model", to_string(to)));
    }
    const std::int64_t count = c.in(0).count();
    if (open >= 0) to[static_cast<std::size_t>(open)] = known ? count / known : 0;
    if (element_count(to) != count) c.fail(fmt::format("{} does not reshape to {}; repair the model", to_string(from), to_string(to)));
    return one(reshaped(c.in(0), to));
}

Results flatten(const Call& c) {
    const Shape& x = c.in(0).shape;
    const auto rank = static_cast<std::int64_t>(x.size());
    std::int64_t axis = c.integer("axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank) c.fail("axis is out of range; repair the model");
    const auto at = static_cast<std::size_t>(axis);
    return one(reshaped(c.in(0), {extent(x, 0, at), extent(x, at, x.size())}));
}

/// The axes attribute up to opset 12, input 1 after.
std::vector<std::int64_t> axes_of(const Call& c) {
    return c.attribute("axes") ? c.integers("axes") : c.has(1) ? c.list(1) : std::vector<std::int64_t>{};
}

Results squeeze(const Call& c) {
    const Shape& x = c.in(0).shape;
    const auto axes = axes_of(c);
    std::vector<bool> drop(x.size(), false);
    for (const std::int64_t axis : axes) drop[c.axis(axis, x.size())] = true;
    Shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!(axes.empty() ? x[i] == 1 : drop[i]))
            y.push_back(x[i]);
        else if (x[i] != 1)
            c.fail(fmt::format("dimension {} is {}, not 1; repair the model", i, x[i]));
    }
    return one(reshaped(c.in(0), y));
}

Results unsqueeze(const Call& c) {
    const auto axes = axes_of(c);
    const Shape& x = c.in(0).shape;
    const std::size_t rank = x.size() + axes.size();
    if (rank > 64) c.fail("more than 64 dimensions; repair the model");
    std::vector<bool> added(rank, false);
    for (const std::int64_t axis : axes) {
        const std::size_t at = c.axis(axis, rank);
        if (added[at]) c.fail("axes repeats a dimension; repair the model");
        added[at] = true;
    }
    Shape y;
    std::size_t from = 0;
    for (std::size_t i = 0; i < rank; ++i) y.push_back(added[i] ? 1 : x[from++]);
    return one(reshaped(c.in(0), y));
}

/// Shape-15: dimensions [start, end), counted from the end when negative, clamped.
Results shape(const Call& c) {
    const Shape& x = c.in(0).shape;
    const auto rank = static_cast<std::int64_t>(x.size());
    const auto bound = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const std::int64_t start = bound(c.integer("start", 0)), end = std::max(start, bound(c.integer("end", rank)));
    return one(make_tensor<std::int64_t>(DType::i64, {end - start}, std::vector(x.begin() + start, x.begin() + end)));
}

Results size(const Call& c) { return one(make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{c.in(0).count()})); }

Results constant(const Call& c) {
    if (auto t = c.tensor("value")) return one(std::move(*t));
    if (const auto* a = c.attribute("value_float")) return one(make_tensor<float>(DType::f32, {}, std::vector<float>{a->f()}));
    if (const auto* a = c.attribute("value_int")) return one(make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{a->i()}));
    if (const auto* a = c.attribute("value_floats"))
        return one(make_tensor<float>(DType::f32, {a->floats_size()}, std::vector<float>(a->floats().begin(), a->floats().end())));
    if (const auto* a = c.attribute("value_ints"))
        return one(make_tensor<std::int64_t>(DType::i64, {a->ints_size()}, std::vector<std::int64_t>(a->ints().begin(), a->ints().end())));
    if (const auto* a = c.attribute("sparse_value")) return one(dense_from_sparse(a->sparse_tensor(), "attribute 'sparse_value'"));
    c.fail("this kind of constant is not supported; use a numeric tensor");
}

Results constant_of_shape(const Call& c) {
    const Tensor value = c.tensor("value").value_or(Tensor(DType::f32, {1}));
    if (value.count() != 1) c.fail("value must hold one element; repair the model");
    Tensor out = c.make(value.dtype, c.list(0));
    with_bits(out.dtype, [&](auto bits) {
        using T = decltype(bits);
        const auto to = out.as<T>();
        std::fill(to.begin(), to.end(), value.as<T>()[0]);
    });
    return one(std::move(out));
}

/// Range-11: start + i * delta for max(ceil((limit - start) / delta), 0) elements.
Results range(const Call& c) {
    c.same_types(0, 3);
    const DType type = c.in(0).dtype;
    if (is_float(type)) {
        const double start = c.real(0), limit = c.real(1), delta = c.real(2);
        const double count = std::max(std::ceil((limit - start) / delta), 0.0);
        if (!(count <= static_cast<double>(kMaxElements))) c.fail(fmt::format("{} elements, allowed: {}; repair the model", count, kMaxElements));
        Tensor out = c.make(type, {static_cast<std::int64_t>(count)});
        std::vector<double> values(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * delta;
        store(out, 0, std::span<const double>(values));
        return one(std::move(out));
    }
    const std::int64_t start = c.integer(0), limit = c.integer(1), delta = c.integer(2);
    if (delta == 0) c.fail("delta is 0; repair the model");
    std::int64_t count = 0;
    if (delta > 0 ? start < limit : start > limit) {
        const auto distance = delta > 0 ? static_cast<std::uint64_t>(limit) - static_cast<std::uint64_t>(start)
                                        : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(limit);
        const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
        const std::uint64_t steps = (distance - 1) / step + 1;
        if (steps > static_cast<std::uint64_t>(kMaxElements)) c.fail(fmt::format("{} elements, allowed: {}; repair the model", steps, kMaxElements));
        count = static_cast<std::int64_t>(steps);
    }
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = start + i * delta;
    return one(tensor_of(c, type, {count}, std::span<const std::int64_t>(values)));
}

Results eye_like(const Call& c) {
    if (c.in(0).shape.size() != 2) c.bad_shape(0, "a matrix is expected; repair the model");
    const auto* type = c.attribute("dtype");
    Tensor out = c.make(type ? dtype_from_onnx(static_cast<int>(type->i()), "attribute 'dtype'") : c.in(0).dtype, c.in(0).shape);
    const std::int64_t k = c.integer("k", 0), one_ = 1;
    if (k > out.shape[1] || k < -out.shape[0]) return one(std::move(out));
    for (std::int64_t i = 0; i < out.shape[0]; ++i)
        if (i + k >= 0 && i + k < out.shape[1]) store(out, i * out.shape[1] + i + k, std::span<const std::int64_t>(&one_, 1));
    return one(std::move(out));
}

/// OneHot-11: values are [off, on]; an index out of [-depth, depth) gives a row of off.
Results one_hot(const Call& c) {
    const Tensor& indices = c.in(0);
    const std::int64_t depth = c.integer(1);
    if (depth < 1) c.fail(fmt::format("depth is {}, at least 1 is needed; repair the model", depth));
    if (c.in(2).count() != 2) c.bad_shape(2, "the two values off and on are expected; repair the model");
    const std::size_t axis = c.axis(c.integer("axis", -1), indices.shape.size() + 1);
    Shape shape = indices.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
    Tensor out = c.make(c.in(2).dtype, shape);
    const std::int64_t inner = extent(indices.shape, axis, indices.shape.size()), outer = extent(indices.shape, 0, axis);
    const auto at = integers_of(indices);
    with_bits(out.dtype, [&](auto bits) {
        using T = decltype(bits);
        const T off = c.in(2).as<T>()[0], on = c.in(2).as<T>()[1];
        const auto to = out.as<T>();
        std::fill(to.begin(), to.end(), off);
        for (std::int64_t o = 0; o < outer; ++o)
            for (std::int64_t i = 0; i < inner; ++i) {
                std::int64_t k = at[static_cast<std::size_t>(o * inner + i)];
                if (k < 0) k += depth;
                if (k >= 0 && k < depth) to[static_cast<std::size_t>((o * depth + k) * inner + i)] = on;
            }
    });
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> shape_operators() {
    static constexpr Operator table[] = {
        {"Constant", constant},
        {"ConstantOfShape", constant_of_shape, 9},
        {"Dropout", dropout},
        {"EyeLike", eye_like, 9},
        {"Flatten", flatten},
        {"Identity", identity},
        {"OneHot", one_hot, 9},
        {"Range", range, 11},
        {"Reshape", reshape, 5},
        {"Shape", shape},
        {"Size", size},
        {"Squeeze", squeeze},
        {"Unsqueeze", unsqueeze},
    };
    return table;
}

}  // namespace assay::workloads::hostops
