#pragma once
#include <map>
#include <string>
#include <vector>
#include <span>
#include "support/tensor.hpp"
namespace onnx { class NodeProto; class ModelProto; }
namespace assay::workloads::hostops {
std::vector<Tensor> evaluate(const onnx::NodeProto& node, int opset, std::span<const Tensor* const> inputs);
bool supports(const std::string& op, int opset);
std::string unsupported_reason(const std::string& op);
std::map<std::string, Tensor> evaluate_model(const onnx::ModelProto& model, const std::map<std::string, Tensor>& inputs);
}
