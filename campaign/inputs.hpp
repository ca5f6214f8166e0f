#pragma once
// What the user gives a model: test-data folders and tensor files, matched to the graph's inputs and outputs.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace onnx {
class ModelProto;
}

namespace assay::campaign {

/// Name, element type and declared dimensions of a graph input or output; -1 stands for a dynamic dimension, named in dim_names.
struct ValueInfo {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::vector<std::string> dim_names;
};

struct DataSet {
    std::map<std::string, Tensor> inputs;    ///< by graph input
    std::map<std::string, Tensor> expected;  ///< by graph output; may be empty
    std::string text;                        ///< where it came from
};

std::vector<ValueInfo> graph_inputs(const onnx::ModelProto& model);  ///< without initialisers
std::vector<ValueInfo> graph_outputs(const onnx::ModelProto& model);

/// Each argument is a folder holding input_*.pb (and output_*.pb: expected outputs), a tensor file (.pb, .npy, .npz, .h5), or NAME=FILE.
/// Unnamed tensors go to the inputs in order. Throws Error(bad_input) for a missing, unknown or ill-shaped input, all at once.
DataSet load_data_set(const onnx::ModelProto& model, const std::vector<std::string>& arguments);

/// Only the expected outputs of a folder (output_*.pb): for a model without inputs.
DataSet load_expected(const onnx::ModelProto& model, const std::string& folder);

/// When no input is given: seeded values, uniform in [-1, 1) for floats and over the whole range for integers; dynamic dimensions are 1.
DataSet make_random_data_set(const onnx::ModelProto& model, std::uint64_t seed);

}  // namespace assay::campaign
