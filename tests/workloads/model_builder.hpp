#pragma once
// ONNX models in a few lines, and plain-loop references in double precision: the tests' own, sharing nothing with the compiler.
#include <onnx/onnx_pb.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace assay::workloads::testing {

class ModelBuilder {
public:
    explicit ModelBuilder(int opset = 13);
    ModelBuilder& input(const std::string& name, const Shape& shape, DType type = DType::f32);
    ModelBuilder& constant(const std::string& name, const Tensor& tensor);
    ModelBuilder& scalar(const std::string& name, float value);
    ModelBuilder& zero_point(const std::string& name, int value, DType type);
    /// The node is named after its first output. Returns it, to add attributes.
    onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);
    ModelBuilder& output(const std::string& name);
    onnx::ModelProto model;
};

void attribute(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values);
void attribute(onnx::NodeProto& node, const std::string& name, std::int64_t value);
void attribute(onnx::NodeProto& node, const std::string& name, float value);
void attribute(onnx::NodeProto& node, const std::string& name, const char* value);

/// Uniform in [low, high], from a fixed engine so that runs agree everywhere.
Tensor random_floats(std::mt19937& engine, const Shape& shape, float low = -1, float high = 1);
Tensor random_integers(std::mt19937& engine, const Shape& shape, DType type, int low, int high);

/// A convolution of [N,C,H,W] by [O,C/g,KH,KW] in double. `value(x index)` and `weight(w index)` give the elements.
struct ConvCase {
    std::int64_t n = 1, c = 1, h = 1, w = 1, o = 1, kh = 1, kw = 1, groups = 1;
    std::int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, top = 0, left = 0, bottom = 0, right = 0;
    std::int64_t out_h() const { return (h + top + bottom - (kh - 1) * dilation_h - 1) / stride_h + 1; }
    std::int64_t out_w() const { return (w + left + right - (kw - 1) * dilation_w - 1) / stride_w + 1; }
    std::string text() const;
};
struct ConvSums {
    std::vector<double> sum, magnitude;  ///< by output element: the sum, and the sum of absolute products
};
ConvSums plain_conv(const ConvCase& c, const std::function<double(std::int64_t)>& value, const std::function<double(std::int64_t)>& weight);
void conv_attributes(onnx::NodeProto& node, const ConvCase& c);

}  // namespace assay::workloads::testing
