#include "campaign/model.hpp"

#include <charconv>

#include <fmt/format.h>

#include "support/error.hpp"
#include "support/hash.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/precision/calibrate.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::campaign {

LoadedModel load_model(const ModelRequest& request) {
    LoadedModel model;
    model.proto = load_onnx(request.model);
    model.source = {request.model, sha256_file(request.model)};
    if (!request.inputs.empty()) model.data = load_data_set(*model.proto, request.inputs);
    else if (request.need_data) {
        model.data = make_random_data_set(*model.proto, request.seed);
        model.random_inputs = true;
    }
    return model;
}

namespace {

/// What the user gave for calibration, else the inputs of the run itself.
std::vector<std::map<std::string, Tensor>> calibration_samples(const LoadedModel& model, const ModelRequest& request) {
    std::vector<std::map<std::string, Tensor>> samples;
    for (const std::string& folder : request.calibrate) samples.push_back(load_data_set(*model.proto, {folder}).inputs);
    if (samples.empty() && !model.data.inputs.empty()) samples.push_back(model.data.inputs);
    return samples;
}

}  // namespace

workloads::CompileOptions compile_options(const LoadedModel& model, const ModelRequest& request, const simkernel::ChipConfig& chip,
                                          const std::string& precision) {
    workloads::CompileOptions options;
    options.chip = chip;
    options.precision = precision;
    for (const std::string& assignment : request.dims) {
        const std::size_t equals = assignment.find('=');
        std::int64_t value = 0;
        const char* end = assignment.data() + assignment.size();
        if (equals == std::string::npos || equals == 0 ||
            std::from_chars(assignment.data() + equals + 1, end, value).ptr != end || value < 1)
            throw Error(ErrorKind::usage, fmt::format("--dim {}: not NAME=VALUE with a positive value", assignment));
        options.dims[assignment.substr(0, equals)] = value;
    }
    for (const auto& [name, tensor] : model.data.inputs) options.input_shapes[name] = tensor.shape;
    if (workloads::find_policy(precision).scaled)
        options.ranges = workloads::calibrate(*model.proto, calibration_samples(model, request), {request.percentile});
    return options;
}

}  // namespace assay::campaign
