#include "cli/model_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::cli {

void ModelOptions::add_to(CLI::App& command) {
    command.add_option("model", request.model, "ONNX model")->required();
    command.add_option("-i,--input", request.inputs,
                       "Inputs: a folder with input_*.pb (output_*.pb are expected outputs), a .pb, .npy, .npz or .h5 file, or NAME=FILE\n"
                       "(repeatable). Without it: random by --seed");
    command.add_option("--dim", request.dims, "Bind a dynamic dimension: NAME=VALUE (repeatable); inputs bind theirs");
    command.add_option("--seed", request.seed, "Seed of everything random")->capture_default_str();
    command.add_option("--chip", chip, "Chip preset or .toml file")->capture_default_str();
    command.add_option("--set", set, "Override a chip parameter: key=value (repeatable; 'assay chip show' lists them)");
    command.add_option("--cores", request.cores, "Cores of the chip that the program is dealt out to, 0: all; bits do not depend on it")->capture_default_str();
    std::string text = "How fp32 matrix work is done (QDQ and QLinear nodes stay integer):";
    for (const workloads::Policy& policy : workloads::policies()) text += fmt::format("\n  {:<9} {}", policy.name, policy.text);
    command.add_option("--precision", precision, text)->check(CLI::IsMember(workloads::policy_names()))->capture_default_str();
    command.add_option("--calibration", request.calibration,
                       "Folder of inputs (input_*.pb, or test_data_set_* folders of them; repeatable) that fp8 and int8 take the ranges of\n"
                       "activations from. Without it: the run's own inputs");
    command.add_option("--percentile", request.percentile, "Share of calibrated values, in percent, that ranges keep: 100 keeps all")
        ->capture_default_str();
}

simkernel::ChipConfig ModelOptions::chip_config() const {
    simkernel::ChipConfig config = simkernel::find_chip_config(chip);
    for (const std::string& assignment : set) simkernel::set_parameter(config, assignment);
    const std::vector<std::string> problems = simkernel::check_config(config);
    if (!problems.empty()) throw Error(ErrorKind::usage, fmt::format("--chip {} with --set: {}", chip, fmt::join(problems, "\n")));
    return config;
}

}  // namespace assay::cli
