#pragma once
// Model-local functions and sparse constants: what a container holds in a roundabout way, made plain. Used when importing and when running.
#include <onnx/onnx_pb.h>

#include <vector>

#include "support/tensor.hpp"

namespace assay::workloads::hostops {

/// The nodes of a function's body with every attribute reference replaced by the caller's attribute, or by the function's default, or
/// removed when neither gives one (ONNX IR, "Functions"). Names of values are left as they are in the body.
std::vector<onnx::NodeProto> function_body(const onnx::FunctionProto& function, const onnx::NodeProto& call);

/// SparseTensorProto (linear indices [NNZ] or coordinates [NNZ, rank]) as a dense tensor of at most 2^28 elements.
/// Throws Error(bad_input); `where` starts the message.
Tensor dense_from_sparse(const onnx::SparseTensorProto& proto, const std::string& where);

}  // namespace assay::workloads::hostops
