#pragma once
// Reading ONNX files: protobuf decoding and tensor decoding only, shared by the compiler and the golden reference, which otherwise
// share nothing. No operator semantics here.
#include <filesystem>
#include <memory>
#include <string>

#include "support/tensor.hpp"

namespace onnx {
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace assay {

/// Parses and checks the container: a graph is present, ir_version and an ai.onnx opset are given. External data is resolved
/// relative to the model's folder (never outside it) and inlined. Throws Error(bad_input) naming the file and the tensor.
std::shared_ptr<const onnx::ModelProto> load_onnx(const std::filesystem::path& path);
std::shared_ptr<const onnx::ModelProto> parse_onnx(const std::string& bytes, const std::string& name);

/// Decodes raw_data or the typed fields; checks that the count fits the shape. `where` starts the error message.
Tensor tensor_from_proto(const onnx::TensorProto& proto, const std::string& where);

/// The tensor as raw_data under a name.
onnx::TensorProto proto_from_tensor(const Tensor& tensor, const std::string& name);

/// A TensorProto file (ONNX test data, `input_0.pb`). `name_out`, if not null, receives the proto's name.
Tensor load_pb_tensor(const std::filesystem::path& path, std::string* name_out = nullptr);
DType dtype_from_onnx(int onnx_type, const std::string& where);

}  // namespace assay
