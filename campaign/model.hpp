#pragma once
// A model file loaded once for a command: its protobuf, its hash and the data that the user gave for it.
#include <filesystem>
#include <memory>
#include <optional>
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
    std::optional<std::map<std::string, workloads::Range>> ranges;  ///< calibrated once for several programs; else compile_options calibrates
};

struct ModelRequest {
    std::string model;
    std::vector<std::string> inputs;   ///< as for load_data_set; empty: random by seed
    std::vector<std::string> dims;     ///< "name=value"
    std::uint64_t seed = 0;
    std::uint32_t cores = 0;           ///< that the program may use; 0: all of the chip
    std::vector<std::string> calibration;  ///< folders of calibration inputs; empty: the run's own inputs, if they were given
    double percentile = 100;               ///< of calibration: see CalibrationOptions
    bool need_data = true;             ///< false: inputs are optional and none are made
};

/// Throws Error(bad_input) or Error(usage).
LoadedModel load_model(const ModelRequest& request);
/// Ranges of activations for the policies that need them, none for others. A calibration folder holds input_*.pb, or folders test_data_set_*
/// that do, a sample each. Throws Error(usage) when there are no inputs: random ones have no meaning to calibrate by.
std::map<std::string, workloads::Range> calibrated_ranges(const LoadedModel& model, const ModelRequest& request, const std::string& precision);
workloads::CompileOptions compile_options(const LoadedModel& model, const ModelRequest& request, const simkernel::ChipConfig& chip,
                                          const std::string& precision);

}  // namespace assay::campaign
