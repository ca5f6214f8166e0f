#include "campaign/model.hpp"

#include <algorithm>
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

/// The folder itself, or the data sets in it in the order of their names.
std::vector<std::string> data_sets(const std::string& folder) {
    std::vector<std::string> sets;
    if (std::filesystem::is_directory(folder))
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path().string());
    std::sort(sets.begin(), sets.end());
    return sets.empty() ? std::vector{folder} : sets;
}

}  // namespace

std::map<std::string, workloads::Range> calibrated_ranges(const LoadedModel& model, const ModelRequest& request, const std::string& precision) {
    if (!workloads::find_policy(precision).calibrated()) return {};
    std::vector<std::map<std::string, Tensor>> samples;
    for (const std::string& folder : request.calibration)
        for (const std::string& set : data_sets(folder)) samples.push_back(load_data_set(*model.proto, {set}).inputs);
    if (samples.empty() && !model.random_inputs && (!model.data.inputs.empty() || graph_inputs(*model.proto).empty())) samples.push_back(model.data.inputs);
    return workloads::calibrate(*model.proto, samples, {precision, request.percentile});
}

workloads::CompileOptions compile_options(const LoadedModel& model, const ModelRequest& request, const simkernel::ChipConfig& chip,
                                          const std::string& precision) {
    workloads::CompileOptions options;
    options.chip = chip;
    options.precision = precision;
    options.cores = request.cores == 0 ? static_cast<std::uint32_t>(chip.cores) : request.cores;
    for (const std::string& assignment : request.dims) {
        const std::size_t equals = assignment.find('=');
        std::int64_t value = 0;
        const char* end = assignment.data() + assignment.size();
        if (equals == std::string::npos || equals == 0 ||
            std::from_chars(assignment.data() + equals + 1, end, value).ptr != end || value < 1)
            throw Error(ErrorKind::usage, fmt::format("--dim {}: not NAME=VALUE with a positive value", assignment));
        options.dims[assignment.substr(0, equals)] = value;
    }
    for (const auto& [name, tensor] : model.data.inputs) {
        options.input_shapes[name] = tensor.shape;
        if (!is_float(tensor.dtype)) options.input_values[name] = tensor;
    }
    options.ranges = model.ranges ? *model.ranges : calibrated_ranges(model, request, precision);
    return options;
}

}  // namespace assay::campaign
