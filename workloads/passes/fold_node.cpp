// A small interpreter for the arithmetic that exporters put around shapes, and for constants made of constants.
#include <fmt/core.h>

#include <functional>
#include <map>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

/// Folding never makes a larger constant than this: a model of a few bytes could ask for any size.
constexpr std::int64_t kLargestFoldElems = std::int64_t{1} << 28;

struct Context {
    Graph& graph;
    NodeId id;
    const Node& node;
    const Tensor& in(std::size_t i) const {
        if (!graph.is_constant(node.input(i))) throw NodeError(id, fmt::format("input {} is missing; repair the model", i));
        return *graph.value(node.input(i)).constant;
    }
    bool has(std::size_t i) const { return node.input(i) != kNoValue; }
    std::vector<std::int64_t> integers(std::size_t i) const {
        std::vector<std::int64_t> v;
        for (std::int64_t k = 0; k < in(i).count(); ++k) v.push_back(in(i).integer(k));
        return v;
    }
};

Tensor make(NodeId id, DType type, const Shape& shape) {
    if (element_count(shape) > kLargestFoldElems)
        throw NodeError(id,
                        fmt::format("a constant of {} elements, allowed: {}; repair the model", element_count(shape), kLargestFoldElems));
    return Tensor(type, shape);
}

template <class T>
void store(Tensor& t, std::int64_t i, T value) {
    switch (t.dtype) {
        case DType::f32:
            t.as<float>()[i] = static_cast<float>(value);
            break;
        case DType::f64:
            t.as<double>()[i] = static_cast<double>(value);
            break;
        case DType::i8:
            t.as<std::int8_t>()[i] = static_cast<std::int8_t>(value);
            break;
        case DType::u8:
            t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
            break;
        case DType::boolean:
            t.as<std::uint8_t>()[i] = value != T{};
            break;
        case DType::i16:
            t.as<std::int16_t>()[i] = static_cast<std::int16_t>(value);
            break;
        case DType::i32:
            t.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
            break;
        case DType::i64:
            t.as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
            break;
        default:
            throw Error(ErrorKind::bad_input,
                        fmt::format("folding constants of type {} is not supported; use float32 or int64", name_of(t.dtype)));
    }
}

void copy_element(const Tensor& from, std::int64_t i, Tensor& to, std::int64_t j) {
    const std::size_t size = size_of(from.dtype);
    std::copy_n(from.bytes.begin() + static_cast<std::ptrdiff_t>(i * static_cast<std::int64_t>(size)), size,
                to.bytes.begin() + static_cast<std::ptrdiff_t>(j * static_cast<std::int64_t>(size)));
}

std::vector<std::int64_t> row_major(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

/// out[index] = from[offset + sum(index * stride)] for every index of out's shape.
Tensor gather_strided(NodeId id, const Tensor& from, const Shape& shape, const std::vector<std::int64_t>& strides, std::int64_t offset) {
    Tensor out = make(id, from.dtype, shape);
    std::vector<std::int64_t> index(shape.size(), 0);
    for (std::int64_t i = 0, n = element_count(shape); i < n; ++i) {
        std::int64_t at = offset;
        for (std::size_t d = 0; d < shape.size(); ++d) at += index[d] * strides[d];
        copy_element(from, at, out, i);
        for (std::size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
    }
    return out;
}

Tensor fold_constant(const Context& c) {
    const auto get = [&](const char* key) { return c.node.attributes.find(key); };
    const auto end = c.node.attributes.end();
    if (auto a = get("value"); a != end && a->second.tensor) return *a->second.tensor;
    if (auto a = get("value_float"); a != end) return make_tensor<float>(DType::f32, {}, std::vector<float>{a->second.f});
    if (auto a = get("value_int"); a != end) return make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{a->second.i});
    if (auto a = get("value_floats"); a != end)
        return make_tensor<float>(DType::f32, {static_cast<std::int64_t>(a->second.floats.size())}, a->second.floats);
    if (auto a = get("value_ints"); a != end)
        return make_tensor<std::int64_t>(DType::i64, {static_cast<std::int64_t>(a->second.ints.size())}, a->second.ints);
    throw NodeError(c.id, "this kind of constant is not supported; use a numeric tensor");
}

Tensor fold_slice(const Context& c) {
    const Tensor& x = c.in(0);
    const bool attributes = c.node.has("starts");  // Slice-1
    const auto starts = attributes ? c.node.integers("starts") : c.integers(1);
    const auto ends = attributes ? c.node.integers("ends") : c.integers(2);
    std::vector<std::int64_t> axes = attributes ? c.node.integers("axes") : c.has(3) ? c.integers(3) : std::vector<std::int64_t>{};
    std::vector<std::int64_t> steps = !attributes && c.has(4) ? c.integers(4) : std::vector<std::int64_t>(starts.size(), 1);
    if (axes.empty())
        for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
        throw NodeError(c.id, "starts, ends, axes and steps differ in length; repair the model");
    Shape shape = x.shape;
    std::vector<std::int64_t> strides = row_major(x.shape);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto axis = static_cast<std::size_t>(normal_axis(c.id, axes[i], x.shape.size()));
        const std::int64_t extent = x.shape[axis], step = steps[i];
        if (step == 0) throw NodeError(c.id, "a step of 0; repair the model");
        const auto clamp = [&](std::int64_t v) {
            if (v < 0) v += extent;
            return step > 0 ? std::clamp<std::int64_t>(v, 0, extent) : std::clamp<std::int64_t>(v, -1, extent - 1);
        };
        // An end of INT64_MIN with a negative step means "through element 0"; adding the extent cannot reach it.
        const std::int64_t first = clamp(starts[i]), last = ends[i] < -extent ? (step > 0 ? 0 : -1) : clamp(ends[i]);
        shape[axis] = std::max<std::int64_t>(0, step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step);
        offset += first * strides[axis];
        strides[axis] *= step;
    }
    return gather_strided(c.id, x, shape, strides, offset);
}

Tensor fold_gather(const Context& c) {
    const Tensor& x = c.in(0);
    const Tensor& indices = c.in(1);
    const auto axis = static_cast<std::size_t>(normal_axis(c.id, c.node.integer("axis", 0), x.shape.size()));
    Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
    shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
    Tensor out = make(c.id, x.dtype, shape);
    std::int64_t inner = 1, outer = 1;
    for (std::size_t i = 0; i < x.shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.shape[i];
    std::int64_t at = 0;
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t k = 0; k < indices.count(); ++k) {
            const std::int64_t index = normal_axis(c.id, indices.integer(k), static_cast<std::size_t>(x.shape[axis]));
            for (std::int64_t i = 0; i < inner; ++i) copy_element(x, (o * x.shape[axis] + index) * inner + i, out, at++);
        }
    return out;
}

Tensor fold_concat(const Context& c) {
    Shape shape = c.in(0).shape;
    const auto axis = static_cast<std::size_t>(normal_axis(c.id, c.node.integer("axis", 0), shape.size()));
    std::int64_t inner = 1, outer = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
    for (std::size_t i = 1; i < c.node.inputs.size(); ++i) {
        Shape other = c.in(i).shape, mine = shape;
        if (other.size() != mine.size() || c.in(i).dtype != c.in(0).dtype)
            throw NodeError(c.id, "inputs differ in rank or type; repair the model");
        shape[axis] += other[axis];
        other[axis] = mine[axis] = 0;
        if (other != mine) throw NodeError(c.id, "inputs differ in shape; repair the model");
    }
    Tensor out = make(c.id, c.in(0).dtype, shape);
    std::int64_t at = 0;
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::size_t i = 0; i < c.node.inputs.size(); ++i) {
            const std::int64_t run = c.in(i).shape[axis] * inner;
            for (std::int64_t k = 0; k < run; ++k) copy_element(c.in(i), o * run + k, out, at++);
        }
    return out;
}

Tensor fold_transpose(const Context& c) {
    const Tensor& x = c.in(0);
    std::vector<std::int64_t> perm = c.node.integers("perm");
    if (perm.empty())
        for (std::size_t i = x.shape.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
    if (perm.size() != x.shape.size()) throw NodeError(c.id, "perm is not a permutation of the dimensions; repair the model");
    const auto strides = row_major(x.shape);
    Shape shape;
    std::vector<std::int64_t> permuted;
    for (const std::int64_t p : perm) {
        const auto axis = static_cast<std::size_t>(normal_axis(c.id, p, x.shape.size()));
        shape.push_back(x.shape[axis]);
        permuted.push_back(strides[axis]);
    }
    return gather_strided(c.id, x, shape, permuted, 0);
}

Tensor fold_cast(const Context& c) {
    const Tensor& x = c.in(0);
    Tensor out = make(c.id, dtype_from_onnx(static_cast<int>(c.node.integer("to", 1)), "Cast"), x.shape);
    for (std::int64_t i = 0; i < x.count(); ++i) {
        if (is_float(x.dtype) || is_float(out.dtype))
            store(out, i, x.value(i));
        else
            store(out, i, x.integer(i));
    }
    return out;
}

Tensor fold_binary(const Context& c) {
    const Tensor &a = c.in(0), &b = c.in(1);
    if (a.dtype != b.dtype) throw NodeError(c.id, "input types differ; add a Cast");
    const Shape shape = broadcast_shapes(c.id, a.shape, b.shape);
    const auto spread = [&](const Tensor& t) {
        std::vector<std::int64_t> strides(shape.size(), 0);
        const auto own = row_major(t.shape);
        for (std::size_t i = 0; i < t.shape.size(); ++i) strides[shape.size() - t.shape.size() + i] = t.shape[i] == 1 ? 0 : own[i];
        return gather_strided(c.id, t, shape, strides, 0);
    };
    const Tensor x = spread(a), y = spread(b);
    Tensor out = make(c.id, a.dtype, shape);
    const std::string& op = c.node.op;
    for (std::int64_t i = 0; i < out.count(); ++i) {
        if (is_float(a.dtype)) {
            const double p = x.value(i), q = y.value(i);
            store(out, i, op == "Add" ? p + q : op == "Sub" ? p - q : op == "Mul" ? p * q : p / q);
        } else {
            // Unsigned arithmetic wraps as the operator does; signed overflow would be undefined here.
            const auto p = static_cast<std::uint64_t>(x.integer(i)), q = static_cast<std::uint64_t>(y.integer(i));
            if (op == "Div" && q == 0) throw NodeError(c.id, "an integer division by 0; repair the model");
            if (op == "Div" && y.integer(i) == -1)
                store(out, i, static_cast<std::int64_t>(0 - p));
            else
                store(out, i,
                      op == "Add"   ? static_cast<std::int64_t>(p + q)
                      : op == "Sub" ? static_cast<std::int64_t>(p - q)
                      : op == "Mul" ? static_cast<std::int64_t>(p * q)
                                    : x.integer(i) / y.integer(i));
        }
    }
    return out;
}

Tensor fold_shape(const Context& c) {
    const Shape& all = c.graph.value(c.node.inputs.at(0)).shape;
    const auto rank = static_cast<std::int64_t>(all.size());
    const auto bound = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank); };
    const std::int64_t start = bound(c.node.integer("start", 0)), end = std::max(start, bound(c.node.integer("end", rank)));
    const Shape part(all.begin() + start, all.begin() + end);
    return make_tensor<std::int64_t>(DType::i64, {end - start}, part);
}

Tensor fold_constant_of_shape(const Context& c) {
    const Shape shape = c.integers(0);
    const auto it = c.node.attributes.find("value");
    const Tensor one = it != c.node.attributes.end() && it->second.tensor ? *it->second.tensor : Tensor(DType::f32, {1});
    if (one.count() != 1) throw NodeError(c.id, "value must hold one element; repair the model");
    Tensor out = make(c.id, one.dtype, shape);
    for (std::int64_t i = 0; i < out.count(); ++i) copy_element(one, 0, out, i);
    return out;
}

/// Operators that keep the elements and change the shape: the shape rule of infer_node gives the rest.
Tensor fold_relabel(const Context& c) {
    infer_node(c.graph, c.id);
    Tensor out = c.in(0);
    out.shape = c.graph.value(c.node.outputs.at(0)).shape;
    return out;
}

}  // namespace

std::vector<Tensor> fold_node(Graph& graph, NodeId id) {
    static const std::map<std::string, std::function<Tensor(const Context&)>> table{
        {"Constant", fold_constant}, {"ConstantOfShape", fold_constant_of_shape},
        {"Shape", fold_shape},       {"Cast", fold_cast},
        {"Slice", fold_slice},       {"Gather", fold_gather},
        {"Concat", fold_concat},     {"Transpose", fold_transpose},
        {"Add", fold_binary},        {"Sub", fold_binary},
        {"Mul", fold_binary},        {"Div", fold_binary},
        {"Reshape", fold_relabel},   {"Flatten", fold_relabel},
        {"Squeeze", fold_relabel},   {"Unsqueeze", fold_relabel},
        {"Identity", fold_relabel},  {"Dropout", fold_relabel},
    };
    const Node& node = graph.node(id);
    const auto rule = table.find(node.op);
    if (rule == table.end()) return {};
    std::vector<Tensor> out;
    out.push_back(rule->second(Context{graph, id, node}));
    return out;
}

}  // namespace assay::workloads
