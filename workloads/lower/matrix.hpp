#pragma once
// A matrix layer in one normal form: Conv, Gemm and MatMul are all a window over [N,H,W,C] times weights [O][C][KH][KW], drained through
// the vector unit. Gemm is a 1x1 window over an image one row high.
#include <array>
#include <functional>

#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/lowering.hpp"
#include "workloads/passes/window.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::workloads {

/// Constant weights: element (o, c, kh, kw) is at the sum of index * stride, c within the group.
struct ConstantWeights {
    ValueId value = kNoValue;
    std::array<std::int64_t, 4> strides{};
    /// Integer layers: the quantised tensor behind `value`, one scale and zero point for each output.
    std::shared_ptr<const Tensor> integers;
    std::vector<float> scale;
    std::vector<std::int32_t> zero_point;
};

/// Weights that are an activation: element (k, n), 1x1 windows and one group only. In an integer layer both sides lose their zero points on
/// the way to the array, which may take several int8 planes each.
struct DynamicWeights {
    Operand operand;
    std::int64_t k_stride = 0, n_stride = 0;
};

/// One of several equal problems of a batched MatMul; offsets in elements.
struct Repeat {
    std::int64_t x = 0, w = 0, y = 0;
};

/// value = accumulator * scale[o] + shift[o], per output.
struct Affine {
    std::vector<double> scale, shift;
    explicit Affine(std::size_t outputs) : scale(outputs, 1.0), shift(outputs, 0.0) {}
};

/// K values that share a step of 4-bit weights.
inline constexpr std::int64_t kW4Group = 32;

/// How a layer's operands go onto the array (docs/numerics.md section 3).
struct ArrayFormat {
    simkernel::Dtype type = simkernel::Dtype::bf16;
    int planes = 1;               ///< parts of an fp32 operand
    Scaling scaling = Scaling::none;
    std::string precision;        ///< Layer::precision
    double x_scale = 1;           ///< activations are divided by it
    int x_zero = 0;               ///< and this is added (integers)
    std::vector<double> w_scale;  ///< weights are divided by it: one for each output, or one in all when they are an activation; empty: unscaled

    /// Constant weights lie narrower in device memory than on the array; the vector unit widens them.
    bool narrow_weights() const { return scaling == Scaling::weights_8 || scaling == Scaling::weights_4; }
};

struct MatrixSpec {
    NodeId main = -1;
    std::vector<NodeId> nodes;
    bool integer = false;
    ArrayFormat format;  ///< emit_matrix_layer fills it in from the policy
    Operand x;
    std::array<std::int64_t, 4> x_strides{};  ///< elements, by n, h, w, c
    std::int64_t batch = 1, channels = 1, outputs = 1, groups = 1;
    Window window;
    std::optional<ConstantWeights> weights;
    std::optional<DynamicWeights> dynamic;
    std::vector<Repeat> repeats{1};
    std::vector<std::int32_t> integer_bias;  ///< integer layers: added to the accumulator, exactly
    Affine affine{0};
    Epilogue tail;
    std::vector<ValueId> extra_values;
    std::vector<Operand> extras;                               ///< tensors as large as the result that tail.chain reads
    std::vector<std::array<std::int64_t, 4>> extra_strides{};  ///< of each, by n, h, w, o
    Operand out;
    std::array<std::int64_t, 4> out_strides{};  ///< elements, by n, h, w, o
};

/// Follows what the drain can do: bias Adds, BatchNormalization (of images), activations, QuantizeLinear. `channel_dim` is the dimension of
/// the outputs in the ONNX result.
///
/// What else is elementwise follows too; `layout` says how a tensor of the result's shape is read by n, h, w, o (nullopt: it cannot be).
using ExtraLayout = std::function<std::optional<std::array<std::int64_t, 4>>(const Operand&)>;
void follow_matrix(Lowering& lowering, MatrixSpec& spec, ValueId result, std::size_t channel_dim, const ExtraLayout& layout);

/// The values of a constant when it varies along one dimension at most (counted in a result of shape `shape`): one for each output.
std::optional<std::vector<double>> per_channel(const Value& constant, const Shape& shape, std::size_t channel_dim);

/// Plans, packs, emits and records the layer. The output must be materialised.
void emit_matrix_layer(Lowering& lowering, MatrixSpec spec);

/// Integer weights of a DequantizeLinear of a constant, if quantised by tensor or along `output_axis`.
bool bind_integer_weights(const Graph& graph, ConstantWeights& weights, std::int64_t outputs, std::int64_t output_axis);

}  // namespace assay::workloads
