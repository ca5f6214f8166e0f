// assay chip show|validate
#include <memory>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "simkernel/chip_config.hpp"

namespace assay::cli {
namespace {

struct ChipOptions {
    std::string chip = "aurum-edge";
    std::vector<std::string> set, files;
};

int show(const ChipOptions& options) {
    simkernel::ChipConfig config = simkernel::find_chip_config(options.chip);
    for (const std::string& assignment : options.set) simkernel::set_parameter(config, assignment);
    for (const std::string& problem : simkernel::check_config(config)) fmt::print(stderr, "assay: {}: {}\n", config.name, problem);
    fmt::print("{}# config_hash {:#010x}\n", simkernel::to_toml(config), simkernel::config_hash(config));
    return simkernel::check_config(config).empty() ? kPass : kUsage;
}

int validate(const ChipOptions& options) {
    for (const std::string& file : options.files) {
        const simkernel::ChipConfig config = simkernel::find_chip_config(file);
        fmt::print("{}: valid: {}, MXU {}x{}, VPU {} lanes, scratchpad {} bytes, config_hash {:#010x}\n", file, config.name, config.mxu_rows,
                   config.mxu_cols, config.vpu_lanes, config.spm_bytes, simkernel::config_hash(config));
    }
    return kPass;
}

}  // namespace

void setup_chip(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<ChipOptions>();
    CLI::App* chip = app.add_subcommand("chip", "Show or validate chip configurations (TOML presets)");
    chip->require_subcommand(1);
    CLI::App* show_command = chip->add_subcommand("show", "Print every parameter of a chip with its unit and value, as TOML");
    show_command->add_option("chip", options->chip, "Preset name or .toml file")->capture_default_str();
    show_command->add_option("--set", options->set, "Override a parameter: key=value (repeatable)");
    show_command->callback([options, &chosen] { chosen = [options] { return show(*options); }; });
    CLI::App* validate_command = chip->add_subcommand("validate", "Check configuration files; every problem is listed with its line");
    validate_command->add_option("chips", options->files, "Preset names or .toml files")->required();
    validate_command->callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
}

}  // namespace assay::cli
