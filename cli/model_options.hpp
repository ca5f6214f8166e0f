#pragma once
// Options that several subcommands share: the model, its inputs, the chip.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "aurum_contract.hpp"
#include "campaign/model.hpp"

namespace assay::cli {

struct ModelOptions {
    campaign::ModelRequest request;
    std::string chip = "aurum-edge";
    std::vector<std::string> set;
    std::string precision = "native";

    void add_to(CLI::App& command);
    /// The preset with --set applied and checked. Throws Error(usage).
    simkernel::ChipConfig chip_config() const;
};

}  // namespace assay::cli
