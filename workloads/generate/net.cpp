// Elementwise operators, shape and order. Means and variances of activations are those of a normal input of the given variance.
#include "workloads/generate/net.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/error.hpp"

namespace assay::workloads::generate {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::size_t axis_of(const Value& x, std::int64_t axis) {
    const std::int64_t at = axis < 0 ? axis + x.rank() : axis;
    ASSAY_CHECK(at >= 0 && at < x.rank(), "the axis exists");
    return static_cast<std::size_t>(at);
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
    Shape out(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
        ASSAY_CHECK(da == db || da == 1 || db == 1, "shapes broadcast");
        out[out.size() - 1 - i] = da == 1 ? db : da;
    }
    return out;
}

Value Net::unary(const std::string& op, const Value& x, double mean, double variance, const Attributes& attributes) {
    return node(op, "", {x}, x.shape, attributes).with(mean, variance);
}

Value Net::relu(const Value& x) {
    // E max(0, X) and E max(0, X)² of X ~ N(m, s²).
    const double s = std::sqrt(std::max(x.variance, 1e-12)), z = x.mean / s, density = std::exp(-z * z / 2) / std::sqrt(2 * kPi);
    const double above = 0.5 * std::erfc(-z / std::sqrt(2.0)), mean = x.mean * above + s * density;
    return unary("Relu", x, mean, (x.mean * x.mean + s * s) * above + x.mean * s * density - mean * mean);
}

Value Net::relu6(const Value& x) {
    const Value low = scalar(0), high = scalar(6);
    const double s = std::sqrt(x.variance);
    return node("Clip", "", {x, low, high}, x.shape).with(0.399 * s, 0.341 * x.variance);
}

Value Net::leaky_relu(const Value& x, float alpha) {
    return unary("LeakyRelu", x, 0.399 * (1 - alpha) * std::sqrt(x.variance), 0.5 * x.variance * (1 + alpha * alpha), {{"alpha", alpha}});
}

Value Net::sigmoid(const Value& x) { return unary("Sigmoid", x, 0.5, 0.045 * std::min(x.variance, 4.0)); }
Value Net::tanh(const Value& x) { return unary("Tanh", x, 0, 0.4 * std::min(x.variance, 2.0)); }
Value Net::hard_sigmoid(const Value& x) { return unary("HardSigmoid", x, 0.5, 0.028 * std::min(x.variance, 4.0), {{"alpha", 1.0f / 6}, {"beta", 0.5f}}); }

Value Net::hard_swish(const Value& x) {
    // Between its corners x (x + 3) / 6: moments by those of a normal, and half as much again because depthwise convolutions before it have
    // heavier tails. It grows faster than its input, so a scale guessed too low would explode over twenty of them.
    const double v = std::min(x.variance, 4.0), mean = v / 6, variance = 1.5 * ((3 * v * v + 9 * v) / 36 - mean * mean);
    return opset() >= 14 ? unary("HardSwish", x, mean, variance) : mul(x, hard_sigmoid(x)).with(mean, variance);
}

Value Net::silu(const Value& x) { return mul(x, sigmoid(x)).with(0.207 * std::sqrt(x.variance), 0.313 * x.variance); }

Value Net::gelu(const Value& x) {
    const double mean = 0.282 * std::sqrt(x.variance), variance = 0.346 * x.variance;
    if (opset() >= 20) return unary("Gelu", x, mean, variance);
    const Value scaled = div(x, scalar(std::sqrt(2.0)));
    return mul(mul(x, add(node("Erf", "", {scaled}, x.shape), scalar(1))), scalar(0.5)).with(mean, variance);
}

Value Net::gelu_tanh(const Value& x) {
    const double mean = 0.282 * std::sqrt(x.variance), variance = 0.346 * x.variance;
    if (opset() >= 20) return unary("Gelu", x, mean, variance, {{"approximate", "tanh"}});
    const Value cube = mul(node("Pow", "", {x, scalar(3)}, x.shape), scalar(0.044715));
    const Value inner = mul(add(x, cube), scalar(0.79788456));
    return mul(mul(x, scalar(0.5)), add(tanh(inner), scalar(1))).with(mean, variance);
}

Value Net::binary(const std::string& op, const Value& a, const Value& b) {
    ASSAY_CHECK(a.type == b.type, "operands have one type");
    return node(op, "", {a, b}, broadcast(a.shape, b.shape));
}
Value Net::add(const Value& a, const Value& b) { return binary("Add", a, b).with(a.mean + b.mean, a.variance + b.variance); }
Value Net::sub(const Value& a, const Value& b) { return binary("Sub", a, b).with(a.mean - b.mean, a.variance + b.variance); }
Value Net::mul(const Value& a, const Value& b) {
    const double mean = a.mean * b.mean;
    return binary("Mul", a, b).with(mean, a.second_moment() * b.second_moment() - mean * mean);
}
Value Net::div(const Value& a, const Value& b) { return binary("Div", a, b); }

Value Net::softmax(const Value& x, std::int64_t axis) {
    const auto n = static_cast<double>(x.shape[axis_of(x, axis)]);
    // Log-normal weights: E p² = e^variance / n².
    return unary("Softmax", x, 1 / n, std::max(std::min(std::exp(x.variance), n) - 1, 0.0) / (n * n), {{"axis", axis}});
}

Value Net::cast(const Value& x, DType type) {
    if (x.type == type) return x;
    return node("Cast", "", {x}, x.shape, type, {{"to", std::int64_t{onnx_type(type)}}}).with(x.mean, x.variance);
}

Value Net::reduce_mean(const Value& x, std::int64_t axis) {
    Shape shape = x.shape;
    shape[axis_of(x, axis)] = 1;
    // ReduceMean-18 takes its axes as an input.
    if (opset() >= 18) return node("ReduceMean", "", {x, integers({axis})}, shape, {{"keepdims", std::int64_t{1}}});
    return node("ReduceMean", "", {x}, shape, {{"axes", Ints{axis}}, {"keepdims", std::int64_t{1}}});
}

Value Net::reduce_sum(const Value& x, std::int64_t axis, bool keep) {
    Shape shape = x.shape;
    const std::size_t at = axis_of(x, axis);
    const auto n = static_cast<double>(shape[at]);
    if (keep) shape[at] = 1;
    else shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
    return node("ReduceSum", "", {x, integers({axis})}, shape, {{"keepdims", std::int64_t{keep}}}).with(n * x.mean, n * x.variance);
}

Value Net::resize(const Value& x, std::int64_t factor, const std::string& mode) {
    const auto f = static_cast<float>(factor);
    const float scales[4] = {1, 1, f, f};
    const Value given = table(fmt::format("resize_scales_{}", x.name), {4}, DType::f32, Fill::values(scales));
    const bool nearest = mode == "nearest";
    Attributes attributes{{"mode", mode}, {"coordinate_transformation_mode", nearest ? "asymmetric" : "half_pixel"}};
    if (nearest) attributes.emplace_back("nearest_mode", "floor");
    return node("Resize", "", {x, Value{}, given}, {x.dim(0), x.dim(1), x.dim(2) * factor, x.dim(3) * factor}, attributes);
}

Value Net::flatten(const Value& x) {
    return node("Flatten", "", {x}, {x.dim(0), element_count(x.shape) / x.dim(0)}, {{"axis", std::int64_t{1}}});
}

Value Net::reshape(const Value& x, const Shape& shape) {
    ASSAY_CHECK(element_count(shape) == element_count(x.shape), "a reshape keeps its elements");
    return node("Reshape", "", {x, integers(shape)}, shape);
}

Value Net::transpose(const Value& x, const Ints& perm) {
    ASSAY_CHECK(static_cast<int>(perm.size()) == x.rank(), "a permutation names every axis");
    Shape shape;
    for (const std::int64_t p : perm) shape.push_back(x.dim(static_cast<int>(p)));
    return node("Transpose", "", {x}, shape, {{"perm", perm}});
}

Value Net::concat(const std::vector<Value>& parts, std::int64_t axis) {
    Shape shape = parts.at(0).shape;
    const std::size_t at = axis_of(parts[0], axis);
    shape[at] = 0;
    double mean = 0, moment = 0;
    for (const Value& part : parts) {
        const auto size = static_cast<double>(part.shape[at]);
        shape[at] += part.shape[at];
        mean += size * part.mean;
        moment += size * part.second_moment();
    }
    const auto total = static_cast<double>(shape[at]);
    return node("Concat", "", parts, shape, {{"axis", axis}}).with(mean / total, std::max(moment / total - mean * mean / (total * total), 0.0));
}

Value Net::gather(const Value& data, const Value& indices, std::int64_t axis) {
    const std::size_t at = axis_of(data, axis);
    Shape shape(data.shape.begin(), data.shape.begin() + static_cast<std::ptrdiff_t>(at));
    shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
    shape.insert(shape.end(), data.shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, data.shape.end());
    return node("Gather", "", {data, indices}, shape, {{"axis", axis}});
}

Value Net::slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
    Shape shape = x.shape;
    const std::size_t at = axis_of(x, axis);
    ASSAY_CHECK(begin >= 0 && begin < end && end <= shape[at], "a slice lies inside its axis");
    shape[at] = end - begin;
    return node("Slice", "", {x, integers({begin}), integers({end}), integers({axis})}, shape);
}

Value Net::unsqueeze(const Value& x, std::int64_t axis) {
    Shape shape = x.shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis < 0 ? axis + x.rank() + 1 : axis), 1);
    return node("Unsqueeze", "", {x, integers({axis})}, shape);
}

Value Net::squeeze(const Value& x, std::int64_t axis) {
    Shape shape = x.shape;
    const std::size_t at = axis_of(x, axis);
    ASSAY_CHECK(shape[at] == 1, "a squeezed axis has one element");
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
    return node("Squeeze", "", {x, integers({axis})}, shape);
}

Value Net::expand(const Value& x, const Shape& shape) { return node("Expand", "", {x, integers(shape)}, broadcast(x.shape, shape)); }

}  // namespace assay::workloads::generate
