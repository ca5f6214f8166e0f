#include "simkernel/chip_config.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>
#include <zlib.h>

#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::simkernel {
namespace fs = std::filesystem;
namespace {

bool is_power_of_two(std::int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

std::string range_of(const ParamInfo& param) {
    return fmt::format("must be {}{} to {}", param.power_of_two ? "a power of two, " : "", param.min, param.max);
}

bool in_range(const ParamInfo& param, std::int64_t value) {
    return value >= param.min && value <= param.max && (!param.power_of_two || is_power_of_two(value));
}

const ParamInfo* find_param(std::string_view key) {
    for (const ParamInfo& param : kParams)
        if (param.key == key) return &param;
    return nullptr;
}

/// Walks nested tables; "mxu.rows" may be written as a dotted key or in a [mxu] table.
void read_table(const toml::table& table, const std::string& prefix, const std::string& where, ChipConfig& config,
                std::vector<std::string>& problems) {
    for (const auto& [key, node] : table) {
        const std::string name = prefix + std::string(key.str());
        const std::string at = fmt::format("{}:{}", where, node.source().begin.line);
        if (const toml::table* inner = node.as_table()) {
            read_table(*inner, name + ".", where, config, problems);
        } else if (name == "name") {
            if (const auto text = node.value<std::string>(); text && node.is_string() && !text->empty()) config.name = *text;
            else problems.push_back(fmt::format("{}: name: must be a non-empty string", at));
        } else if (const ParamInfo* param = find_param(name)) {
            const std::optional<std::int64_t> value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
            if (!value) problems.push_back(fmt::format("{}: {}: must be an integer", at, name));
            else if (!in_range(*param, *value))
                problems.push_back(fmt::format("{}: {} = {}: {}; remove the line to use {}", at, name, *value, range_of(*param), param->def));
            else config.*(param->member) = *value;
        } else {
            problems.push_back(fmt::format("{}: {}: unknown parameter; 'assay chip show' lists all", at, name));
        }
    }
}

}  // namespace

std::vector<fs::path> config_folders() {
    std::vector<fs::path> folders;
    if (const char* folder = std::getenv("ASSAY_CONFIG_DIR")) folders.emplace_back(folder);
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (!error) folders.push_back(self.parent_path().parent_path() / "share/assay/configs");
    folders.emplace_back(ASSAY_SOURCE_CONFIGS);
    return folders;
}

ChipConfig parse_chip_config(std::string_view text, const std::string& where) {
    ChipConfig config;
    std::vector<std::string> problems;
    try {
        const toml::table table = toml::parse(text, where);
        read_table(table, "", where, config, problems);
    } catch (const toml::parse_error& error) {
        throw Error(ErrorKind::bad_input, fmt::format("{}:{}: not valid TOML: {}", where, error.source().begin.line, error.description()));
    }
    if (config.name.empty()) problems.push_back(fmt::format("{}: name: missing; give the chip a name", where));
    if (problems.empty())
        for (const std::string& problem : check_config(config)) problems.push_back(fmt::format("{}: {}", where, problem));
    if (!problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(problems, "\n")));
    return config;
}

ChipConfig load_chip_config(const fs::path& path) { return parse_chip_config(read_text(path, 1 << 20), path.string()); }

ChipConfig find_chip_config(const std::string& name_or_path) {
    if (name_or_path.ends_with(".toml")) return load_chip_config(name_or_path);
    for (const fs::path& folder : config_folders())
        if (const fs::path file = folder / (name_or_path + ".toml"); fs::exists(file)) return load_chip_config(file);
    throw Error(ErrorKind::usage, fmt::format("--chip {}: no such preset; known: {}; or give a .toml file", name_or_path,
                                              fmt::join(preset_names(), ", ")));
}

std::vector<std::string> preset_names() {
    for (const fs::path& folder : config_folders()) {
        std::vector<std::string> names;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(folder, error))
            if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
        std::sort(names.begin(), names.end());
        if (!names.empty()) return names;
    }
    return {};
}

void set_parameter(ChipConfig& config, std::string_view assignment) {
    const std::size_t equals = assignment.find('=');
    const std::string_view key = assignment.substr(0, equals);
    const ParamInfo* param = equals == std::string_view::npos ? nullptr : find_param(key);
    if (!param)
        throw Error(ErrorKind::usage, fmt::format("--set {}: not key=value with a known chip parameter; 'assay chip show' lists all", assignment));
    const std::string_view text = assignment.substr(equals + 1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !in_range(*param, value))
        throw Error(ErrorKind::usage, fmt::format("--set {}: {}", assignment, range_of(*param)));
    config.*(param->member) = value;
}

std::vector<std::string> check_config(const ChipConfig& c) {
    std::vector<std::string> problems;
    const auto require = [&](bool holds, std::string text) {
        if (!holds) problems.push_back(std::move(text));
    };
    require(c.acc_bytes % (4 * c.mxu_cols) == 0,
            fmt::format("acc.bytes = {}: must be a multiple of 4 * mxu.cols = {}", c.acc_bytes, 4 * c.mxu_cols));
    require(c.acc_bytes >= 8 * 4 * c.mxu_cols,
            fmt::format("acc.bytes = {}: must hold at least 8 rows of mxu.cols words ({} bytes)", c.acc_bytes, 32 * c.mxu_cols));
    require(c.spm_bytes % 64 == 0, fmt::format("spm.bytes = {}: must be a multiple of 64", c.spm_bytes));
    require(c.spm_bytes >= 8 * c.mxu_rows * c.mxu_cols,
            fmt::format("spm.bytes = {}: must hold at least four bf16 weight tiles of the array ({} bytes)", c.spm_bytes,
                        8 * c.mxu_rows * c.mxu_cols));
    require(c.hbm_interleave_bytes <= c.hbm_row_bytes * c.hbm_banks,
            fmt::format("hbm.interleave_bytes = {}: must not exceed a row of every bank ({} bytes)", c.hbm_interleave_bytes,
                        c.hbm_row_bytes * c.hbm_banks));
    return problems;
}

std::string to_toml(const ChipConfig& config) {
    std::string text = fmt::format("name = \"{}\"\n", config.name);
    for (const ParamInfo& param : kParams) text += fmt::format("{} = {}  # {}\n", param.key, config.*(param.member), param.text);
    return text;
}

std::uint32_t config_hash(const ChipConfig& config) {
    std::string text;
    for (const ParamInfo& param : kParams)
        if (param.functional) text += fmt::format("{}={}\n", param.key, config.*(param.member));
    return static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

}  // namespace assay::simkernel
