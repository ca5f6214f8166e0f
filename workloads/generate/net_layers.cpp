// Layers with weights, and pooling.
#include <cmath>

#include <fmt/format.h>

#include "support/error.hpp"
#include "workloads/generate/net.hpp"

namespace assay::workloads::generate {
namespace {

/// Ten bits of mantissa: a scale that came through a host's exp or erf must not differ in its last bit on another host.
double coarse(double x) {
    int exponent = 0;
    const double mantissa = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(mantissa * 1024) / 1024, exponent);
}

std::int64_t window(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pads, std::int64_t dilation = 1) {
    const std::int64_t out = (size + pads - (kernel - 1) * dilation - 1) / stride + 1;
    if (size + pads < (kernel - 1) * dilation + 1)
        throw Error(ErrorKind::usage, fmt::format("workload make: a window of {} does not fit {} elements; make --image or --seq larger", kernel, size));
    return out;
}

/// Convolutions of many channels on inputs with a common mean (after a ReLU) have centred weights: random ones would pass the mean on, and
/// after some layers nothing of the input would be left.
bool centres(const Value& x, std::int64_t channels) { return x.mean != 0 && channels >= 8; }

}  // namespace

Value Net::conv_node(const std::string& name, const Value& x, const ConvShape& shape, const Shape& out, const Attributes& attributes, double deviation,
                     double variance) {
    const auto inside = scope(name);
    const std::int64_t channels = x.dim(1) / shape.groups, kw = shape.kernel_w ? shape.kernel_w : shape.kernel;
    Shape dims{shape.out, channels, shape.kernel};
    if (x.rank() == 4) dims.push_back(kw);
    const std::int64_t row = element_count(dims) / shape.out;
    const Value w = weight("weight", dims, centres(x, channels) ? Fill::centred(deviation, row) : Fill::normal(0, deviation));
    std::vector<Value> inputs{x, w};
    if (shape.bias) inputs.push_back(weight("bias", {shape.out}, Fill::normal(0, coarse(0.1 * std::sqrt(variance)))));
    count_macs(static_cast<std::uint64_t>(element_count(out)) * static_cast<std::uint64_t>(row));
    return node("Conv", "conv", inputs, out, attributes).with(0, variance * (shape.bias ? 1.01 : 1.0));
}

Value Net::conv(const std::string& name, const Value& x, const ConvShape& s) {
    ASSAY_CHECK(x.rank() == 4 && x.dim(1) % s.groups == 0 && s.out % s.groups == 0, "a convolution's groups divide its channels");
    const std::int64_t kw = s.kernel_w ? s.kernel_w : s.kernel, pad_w = s.kernel_w ? s.pad * (kw - 1) / std::max<std::int64_t>(s.kernel - 1, 1) : s.pad;
    const Shape out{x.dim(0), s.out, window(x.dim(2), s.kernel, s.stride, 2 * s.pad, s.dilation), window(x.dim(3), kw, s.stride, 2 * pad_w, s.dilation)};
    const std::int64_t channels = x.dim(1) / s.groups, fan_in = channels * s.kernel * kw;
    const double moment = centres(x, channels) ? x.variance : x.second_moment();
    const double deviation = coarse(s.gain / std::sqrt(static_cast<double>(fan_in) * std::max(moment, 1e-6)));
    return conv_node(name, x, s, out,
                     {{"kernel_shape", Ints{s.kernel, kw}}, {"strides", Ints{s.stride, s.stride}}, {"pads", Ints{s.pad, pad_w, s.pad, pad_w}},
                      {"dilations", Ints{s.dilation, s.dilation}}, {"group", s.groups}},
                     deviation, s.gain * s.gain);
}

Value Net::conv_bn(const std::string& name, const Value& x, const ConvShape& shape) {
    if (!bn_nodes_) return conv(name, x, shape);
    ConvShape bare = shape;
    bare.bias = false;
    bare.gain = 1;
    return batch_norm(name + "_bn", conv(name, x, bare), shape.gain);
}

Value Net::batch_norm(const std::string& name, const Value& x, double gain) {
    const auto inside = scope(name);
    const Shape channels{x.dim(1)};
    const double deviation = std::sqrt(x.variance);
    const Value scale = weight("weight", channels, Fill::uniform(0.8 * gain, 1.2 * gain)), shift = weight("bias", channels, Fill::normal(0, 0.1 * gain));
    // Running statistics are not parameters that training counts, but they are stored as the others are.
    const Value mean = table("running_mean", channels, float_type(), Fill::normal(x.mean, coarse(0.1 * deviation)));
    const Value variance = table("running_var", channels, float_type(), Fill::uniform(coarse(0.8 * x.variance), coarse(1.2 * x.variance)));
    return node("BatchNormalization", "bn", {x, scale, shift, mean, variance}, x.shape, {{"epsilon", 1e-5f}}).with(0, gain * gain);
}

Value Net::conv1d(const std::string& name, const Value& x, const ConvShape& s, std::int64_t pad_left) {
    const std::int64_t reach = (s.kernel - 1) * s.dilation, pad_right = reach - pad_left;
    const Shape out{x.dim(0), s.out, window(x.dim(2), s.kernel, s.stride, reach, s.dilation)};
    const std::int64_t channels = x.dim(1) / s.groups;
    const double moment = centres(x, channels) ? x.variance : x.second_moment();
    const double deviation = coarse(s.gain / std::sqrt(static_cast<double>(channels * s.kernel) * std::max(moment, 1e-6)));
    return conv_node(name, x, s, out,
                     {{"kernel_shape", Ints{s.kernel}}, {"strides", Ints{s.stride}}, {"pads", Ints{pad_left, pad_right}}, {"dilations", Ints{s.dilation}}, {"group", s.groups}},
                     deviation, s.gain * s.gain);
}

Value Net::conv_transpose(const std::string& name, const Value& x, const ConvShape& s) {
    ASSAY_CHECK(x.rank() == 4 && s.groups == 1, "one group of two dimensions");
    const auto inside = scope(name);
    const std::int64_t channels = x.dim(1);
    const Shape out{x.dim(0), s.out, (x.dim(2) - 1) * s.stride + s.kernel - 2 * s.pad, (x.dim(3) - 1) * s.stride + s.kernel - 2 * s.pad};
    // Each output meets kernel²/stride² taps of each channel on average.
    const double taps = static_cast<double>(channels * s.kernel * s.kernel) / static_cast<double>(s.stride * s.stride);
    const double deviation = coarse(s.gain / std::sqrt(taps * std::max(x.second_moment(), 1e-6)));
    std::vector<Value> inputs{x, weight("weight", {channels, s.out, s.kernel, s.kernel}, Fill::normal(0, deviation))};
    if (s.bias) inputs.push_back(weight("bias", {s.out}, Fill::normal(0, 0.1 * s.gain)));
    count_macs(static_cast<std::uint64_t>(element_count(x.shape)) * static_cast<std::uint64_t>(s.out * s.kernel * s.kernel));
    return node("ConvTranspose", "conv_transpose", inputs, out,
                {{"kernel_shape", Ints{s.kernel, s.kernel}}, {"strides", Ints{s.stride, s.stride}}, {"pads", Ints{s.pad, s.pad, s.pad, s.pad}}})
        .with(0, s.gain * s.gain);
}

Value Net::linear(const std::string& name, const Value& x, std::int64_t out, double gain, bool bias) {
    const auto inside = scope(name);
    const std::int64_t k = x.dim(-1);
    Shape shape = x.shape;
    shape.back() = out;
    count_macs(static_cast<std::uint64_t>(element_count(shape)) * static_cast<std::uint64_t>(k));
    if (x.rank() == 2) {
        const double deviation = coarse(gain / std::sqrt(static_cast<double>(k) * std::max(centres(x, k) ? x.variance : x.second_moment(), 1e-6)));
        std::vector<Value> inputs{x, weight("weight", {out, k}, centres(x, k) ? Fill::centred(deviation, k) : Fill::normal(0, deviation))};
        if (bias) inputs.push_back(weight("bias", {out}, Fill::normal(0, 0.05 * gain)));
        return node("Gemm", "gemm", inputs, shape, {{"transB", std::int64_t{1}}}).with(0, gain * gain);
    }
    const double deviation = coarse(gain / std::sqrt(static_cast<double>(k) * std::max(x.second_moment(), 1e-6)));
    const Value product = node("MatMul", "matmul", {x, weight("weight", {k, out}, Fill::normal(0, deviation))}, shape).with(0, gain * gain);
    return bias ? node("Add", "add", {weight("bias", {out}, Fill::normal(0, 0.05 * gain)), product}, shape).with(0, gain * gain) : product;
}

Value Net::matmul(const Value& a, const Value& b) {
    ASSAY_CHECK(a.rank() >= 2 && b.rank() >= 2 && a.dim(-1) == b.dim(-2), "matrices fit");
    const Shape batch = broadcast({a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2});
    Shape shape = batch;
    shape.insert(shape.end(), {a.dim(-2), b.dim(-1)});
    count_macs(static_cast<std::uint64_t>(element_count(shape)) * static_cast<std::uint64_t>(a.dim(-1)));
    return node("MatMul", "", {a, b}, shape).with(0, static_cast<double>(a.dim(-1)) * a.second_moment() * b.second_moment());
}

Value Net::embedding(const std::string& name, const Value& ids, std::int64_t count, std::int64_t width, double deviation) {
    const auto inside = scope(name);
    return gather(weight("weight", {count, width}, Fill::normal(0, deviation)).with(0, deviation * deviation), ids, 0);
}

Value Net::layer_norm(const std::string& name, const Value& x, double epsilon) {
    const auto inside = scope(name);
    const Shape width{x.dim(-1)};
    const Value scale = weight("weight", width, Fill::uniform(0.9, 1.1)), shift = weight("bias", width, Fill::normal(0, 0.05));
    if (opset() >= 17)
        return node("LayerNormalization", "norm", {x, scale, shift}, x.shape, {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(epsilon)}}).with(0, 1);
    const Value centred = sub(x, reduce_mean(x, -1));
    const Value variance = reduce_mean(node("Pow", "", {centred, scalar(2)}, x.shape), -1);
    const Value deviation = node("Sqrt", "", {add(variance, scalar(epsilon))}, variance.shape);
    return add(mul(div(centred, deviation), scale), shift).with(0, 1);
}

Value Net::rms_norm(const std::string& name, const Value& x, double epsilon) {
    const auto inside = scope(name);
    const Value scale = weight("weight", {x.dim(-1)}, Fill::uniform(0.9, 1.1));
    if (opset() >= 23)
        return node("RMSNormalization", "norm", {x, scale}, x.shape, {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(epsilon)}}).with(0, 1);
    // Exporters keep the statistics in float32 whatever the type of the activations.
    const Value wide = cast(x, DType::f32);
    const Value square = node("Pow", "", {wide, scalar(2, DType::f32)}, x.shape);
    const Value mean = reduce_mean(square, -1);
    const Value root = node("Sqrt", "", {add(mean, scalar(epsilon, DType::f32))}, mean.shape);
    const Value inverse = node("Reciprocal", "", {root}, root.shape).with(1, 0);
    return mul(cast(mul(wide, inverse), x.type), scale).with(0, 1);
}

Value Net::max_pool(const Value& x, const PoolShape& s) {
    const Shape out{x.dim(0), x.dim(1), window(x.dim(2), s.kernel, s.stride, 2 * s.pad), window(x.dim(3), s.kernel, s.stride, 2 * s.pad)};
    // The largest of k² neighbours that are alike. Shifts and factors are those seen after a ReLU: rare high values win wide windows.
    const bool wide = s.kernel > 2;
    return node("MaxPool", "", {x}, out, {{"kernel_shape", Ints{s.kernel, s.kernel}}, {"strides", Ints{s.stride, s.stride}}, {"pads", Ints{s.pad, s.pad, s.pad, s.pad}}})
        .with(x.mean + (wide ? 1.3 : 0.8) * std::sqrt(x.variance), (wide ? 1.5 : 1.1) * x.variance);
}

Value Net::average_pool(const Value& x, const PoolShape& s) {
    const Shape out{x.dim(0), x.dim(1), window(x.dim(2), s.kernel, s.stride, 2 * s.pad), window(x.dim(3), s.kernel, s.stride, 2 * s.pad)};
    return node("AveragePool", "", {x}, out, {{"kernel_shape", Ints{s.kernel, s.kernel}}, {"strides", Ints{s.stride, s.stride}}, {"pads", Ints{s.pad, s.pad, s.pad, s.pad}}})
        .with(x.mean, 0.5 * x.variance);
}

Value Net::global_average_pool(const Value& x) {
    // What is left of the variance is that between channels; a quarter is what the generated networks show (0.15 to 0.6).
    return node("GlobalAveragePool", "", {x}, {x.dim(0), x.dim(1), 1, 1}).with(x.mean, 0.25 * x.variance);
}

}  // namespace assay::workloads::generate
