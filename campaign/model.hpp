#pragma once
// A model file loaded once for a command: its protobuf, its hash and the data that the user gave for it.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "campaign/inputs.hpp"
#include "workloads/compile.hpp"

namespace assay::campaign {

struct LoadedModel {
    std::shared_ptr<const onnx::ModelProto> proto;
    workloads::ModelSource source;
    DataSet data;
    bool random_inputs = false;
};

struct ModelRequest {
    std::string model;
    std::vector<std::string> inputs;   ///< as for load_data_set; empty: random by seed
    std::vector<std::string> dims;     ///< "name=value"
    std::uint64_t seed = 0;
    std::uint32_t cores = 0;           ///< that the program may use; 0: all of the chip
    bool need_data = true;             ///< false: inputs are optional and none are made
};

/// Throws Error(bad_input) or Error(usage).
LoadedModel load_model(const ModelRequest& request);
workloads::CompileOptions compile_options(const LoadedModel& model, const ModelRequest& request, const simkernel::ChipConfig& chip,
                                          const std::string& precision);

}  // namespace assay::campaign
