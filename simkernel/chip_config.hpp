#pragma once
// Loading, validating and naming chip configurations. The parameters themselves are declared in simkernel/contract/chip.toml.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "aurum_contract.hpp"

namespace assay::simkernel {

/// Reads a TOML preset. All problems of the file are reported in one Error(bad_input), a line each:
/// "file:line: key = value: allowed range; what to do". Unknown keys are errors.
ChipConfig load_chip_config(const std::filesystem::path& path);
ChipConfig parse_chip_config(std::string_view toml, const std::string& where);

/// A preset by name ("aurum-edge", searched in ASSAY_CONFIG_DIR, beside the program and in the source tree) or by path (ends in .toml).
ChipConfig find_chip_config(const std::string& name_or_path);
std::vector<std::string> preset_names();
/// Where presets and other configuration are looked for, in this order: ASSAY_CONFIG_DIR, beside the program, the source tree.
std::vector<std::filesystem::path> config_folders();

/// Applies "key=value" (any chip parameter). Throws Error(usage) naming the key and its range.
void set_parameter(ChipConfig& config, std::string_view assignment);
/// Rules across parameters (accumulator holds at least mxu.rows rows, …); empty when sound.
std::vector<std::string> check_config(const ChipConfig& config);
std::string to_toml(const ChipConfig& config);

/// CRC-32 over "key=value\n" of the functional parameters, in declared order: a program fits a chip when the hashes agree.
std::uint32_t config_hash(const ChipConfig& config);

}  // namespace assay::simkernel
