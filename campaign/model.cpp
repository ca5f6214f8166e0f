#include "campaign/model.hpp"

#include <charconv>

#include <fmt/format.h>

#include "support/error.hpp"
#include "support/hash.hpp"
#include "support/onnx/onnx_file.hpp"

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
    return options;
}

}  // namespace assay::campaign
