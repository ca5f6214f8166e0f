#pragma once
// Layers over the graph builder: each checks its shapes, scales its weights for outputs near 1, counts its multiply-accumulates and is
// written with the operator version that the model's opset has. Layouts are ONNX's: NCHW, OIHW; token tensors are [batch, seq, hidden].
#include <string>
#include <vector>

#include "workloads/generate/graph_builder.hpp"

namespace assay::workloads::generate {

struct ConvShape {
    std::int64_t out = 1, kernel = 1, stride = 1, pad = 0, groups = 1, dilation = 1;
    std::int64_t kernel_w = 0;      ///< 0: square
    double gain = 1;                ///< standard deviation of the output
    bool bias = true;
};

struct PoolShape {
    std::int64_t kernel = 2, stride = 2, pad = 0;
};

class Net : public GraphBuilder {
public:
    Net(const std::string& name, const Options& options, bool batch_norm_nodes) : GraphBuilder(name, options), bn_nodes_(batch_norm_nodes) {}

    // Convolutions: x [N,C,H,W], or [N,C,L] for conv1d.
    Value conv(const std::string& name, const Value& x, const ConvShape& shape);
    /// Conv and BatchNormalization as the model has them: one Conv (folded, as deployed) or both nodes.
    Value conv_bn(const std::string& name, const Value& x, const ConvShape& shape);
    Value conv1d(const std::string& name, const Value& x, const ConvShape& shape, std::int64_t pad_left);
    Value conv_transpose(const std::string& name, const Value& x, const ConvShape& shape);
    Value batch_norm(const std::string& name, const Value& x, double gain = 1);

    // Dense layers. linear: Gemm for x [N,K], MatMul and Add for more dimensions; y has `out` in place of K.
    Value linear(const std::string& name, const Value& x, std::int64_t out, double gain = 1, bool bias = true);
    Value matmul(const Value& a, const Value& b);
    Value embedding(const std::string& name, const Value& ids, std::int64_t count, std::int64_t width, double deviation = 1);

    // Normalisation over the last axis; gains near 1. Decomposed before the operator set that brought the operator (17, 23).
    Value layer_norm(const std::string& name, const Value& x, double epsilon = 1e-5);
    Value rms_norm(const std::string& name, const Value& x, double epsilon = 1e-5);

    // Elementwise.
    Value relu(const Value& x);
    Value relu6(const Value& x);
    Value leaky_relu(const Value& x, float alpha);
    Value sigmoid(const Value& x);
    Value tanh(const Value& x);
    Value hard_sigmoid(const Value& x);
    Value hard_swish(const Value& x);
    Value silu(const Value& x);
    Value gelu(const Value& x);        ///< Gelu-20, or its erf
    Value gelu_tanh(const Value& x);   ///< Gelu-20 approximate="tanh", or its terms as GPT-2 has them
    Value add(const Value& a, const Value& b);
    Value sub(const Value& a, const Value& b);
    Value mul(const Value& a, const Value& b);
    Value div(const Value& a, const Value& b);
    Value softmax(const Value& x, std::int64_t axis = -1);
    Value cast(const Value& x, DType type);
    Value reduce_mean(const Value& x, std::int64_t axis);
    Value reduce_sum(const Value& x, std::int64_t axis, bool keep = false);

    // Pooling and resampling of [N,C,H,W].
    Value max_pool(const Value& x, const PoolShape& shape);
    Value average_pool(const Value& x, const PoolShape& shape);
    Value global_average_pool(const Value& x);
    Value resize(const Value& x, std::int64_t factor, const std::string& mode);

    // Shape and order.
    Value flatten(const Value& x);  ///< [N, the rest]
    Value reshape(const Value& x, const Shape& shape);
    Value transpose(const Value& x, const Ints& perm);
    Value concat(const std::vector<Value>& parts, std::int64_t axis);
    Value gather(const Value& data, const Value& indices, std::int64_t axis);
    Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end);
    Value unsqueeze(const Value& x, std::int64_t axis);
    Value squeeze(const Value& x, std::int64_t axis);
    Value expand(const Value& x, const Shape& shape);

private:
    Value conv_node(const std::string& name, const Value& x, const ConvShape& shape, const Shape& out, const Attributes& attributes, double deviation, double variance);
    Value unary(const std::string& op, const Value& x, double mean, double variance, const Attributes& attributes = {});
    Value binary(const std::string& op, const Value& a, const Value& b);
    bool bn_nodes_;
};

/// Shape of numpy-style broadcasting; the shapes must fit.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace assay::workloads::generate
