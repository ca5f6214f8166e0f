#include "campaign/energy.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::campaign {
namespace fs = std::filesystem;
namespace {

constexpr std::pair<const char*, double EnergyTable::*> kKeys[] = {
    {"mac.int8_pj", &EnergyTable::mac_int8},   {"mac.bf16_pj", &EnergyTable::mac_bf16},           {"mac.fp16_pj", &EnergyTable::mac_fp16},
    {"mac.fp8_pj", &EnergyTable::mac_fp8},     {"vector.element_pj", &EnergyTable::vector_element}, {"sram.byte_pj", &EnergyTable::sram_byte},
    {"hbm.byte_pj", &EnergyTable::hbm_byte},
};

fs::path find_table(const std::string& name) {
    if (name.ends_with(".toml")) return name;
    std::vector<std::string> known;
    for (const fs::path& folder : simkernel::config_folders()) {
        if (const fs::path file = folder / "energy" / (name + ".toml"); fs::exists(file)) return file;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder / "energy", error)) known.push_back(entry.path().stem().string());
    }
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    throw Error(ErrorKind::usage, fmt::format("--energy {}: no such table; known: {}; or give a .toml file", name, fmt::join(known, ", ")));
}

}  // namespace

EnergyTable load_energy_table(const std::string& name_or_path) {
    const fs::path path = find_table(name_or_path);
    toml::table file;
    try {
        file = toml::parse(read_text(path, 1 << 20), path.string());
    } catch (const toml::parse_error& error) {
        throw Error(ErrorKind::bad_input, fmt::format("{}:{}: not valid TOML: {}", path.string(), error.source().begin.line, error.description()));
    }
    EnergyTable table;
    table.name = file["name"].value_or(path.stem().string());
    std::vector<std::string> problems;
    for (const auto& [key, member] : kKeys) {
        const auto node = file.at_path(key);
        const auto value = node.value<double>();
        if (!node) problems.push_back(fmt::format("{}: {}: missing", path.string(), key));
        else if (!value || !(*value >= 0 && *value < 1e9)) problems.push_back(fmt::format("{}: {}: must be a number of picojoules, 0 to 1e9", path.string(), key));
        else table.*member = *value;
    }
    for (const auto& [section, node] : file) {
        const auto known = [](const std::string& name) { return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const auto& k) { return name == k.first; }); };
        if (const toml::table* inner = node.as_table()) {
            for (const auto& [key, ignored] : *inner)
                if (const auto name = fmt::format("{}.{}", section.str(), key.str()); !known(name)) problems.push_back(fmt::format("{}: {}: unknown key", path.string(), name));
        } else if (section.str() != "name") {
            problems.push_back(fmt::format("{}: {}: unknown key", path.string(), section.str()));
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(problems, "\n")));
    return table;
}

Energy estimate_energy(const nlohmann::json& verdict, const simkernel::ChipConfig& chip, const EnergyTable& table) {
    const auto work = [&](const char* engine) { return verdict.at("counters").at(engine).at("work").get<double>(); };
    // The matrix unit counts its products without their type: they are shared out as the layers' own are.
    double macs = 0, picojoules = 0, element_bytes = 0;
    for (const auto& layer : verdict.at("layers")) {
        const std::string precision = layer.at("precision");
        const double mine = layer.at("macs").get<double>() * (precision == "bf16x3" ? 6 : 1);
        const bool one_byte = precision == "int8" || precision.starts_with("fp8");
        macs += mine;
        element_bytes += mine * (one_byte ? 1 : 2);
        picojoules += mine * (precision == "int8" ? table.mac_int8 : precision.starts_with("fp8") ? table.mac_fp8 : precision == "fp16" ? table.mac_fp16 : table.mac_bf16);
    }
    const double products = work("matrix"), moved = work("load") + work("store");
    const double scale = macs > 0 ? products / macs : 0;
    Energy energy;
    energy.matrix_pj = picojoules * scale;
    energy.vector_pj = work("vector") * table.vector_element;
    energy.hbm_pj = moved * table.hbm_byte;
    const double sram = moved + element_bytes * scale / static_cast<double>(chip.mxu_cols) + products * 8 / static_cast<double>(chip.mxu_rows) + work("vector") * 12;
    energy.sram_pj = sram * table.sram_byte;
    return energy;
}

}  // namespace assay::campaign
