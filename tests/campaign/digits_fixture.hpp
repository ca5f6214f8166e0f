#pragma once
// The committed digit classifier, compiled for aurum-edge.
#include "campaign/digits.hpp"
#include "campaign/session.hpp"
#include "simkernel/chip_config.hpp"

namespace assay::campaign::testing {

inline SessionOptions digits(const std::string& model = "int8") {
    SessionOptions options;
    options.model.model = (digits_folder() / model / "model.onnx").string();
    options.model.inputs = {(digits_folder() / model / "test_data_set_0").string()};
    options.target_options.chip = simkernel::find_chip_config("aurum-edge");
    return options;
}

inline simkernel::Program compile(const SessionOptions& options) {
    const LoadedModel model = load_model(options.model);
    return workloads::compile(*model.proto, model.source, compile_options(model, options.model, options.target_options.chip, options.precision));
}

}  // namespace assay::campaign::testing
