#include "simkernel/chip_config.hpp"

#include <gtest/gtest.h>

#include "support/error.hpp"

namespace assay::simkernel {
namespace {

std::string error_of(const std::string& toml) {
    try {
        parse_chip_config(toml, "chip.toml");
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(ChipConfig, PresetsLoadAndDiffer) {
    const auto names = preset_names();
    ASSERT_GE(names.size(), 3u);
    std::vector<std::uint32_t> hashes;
    for (const std::string& name : names) {
        const ChipConfig config = find_chip_config(name);
        EXPECT_EQ(config.name, name);
        for (const std::uint32_t hash : hashes) EXPECT_NE(hash, config_hash(config)) << name;
        hashes.push_back(config_hash(config));
    }
}

TEST(ChipConfig, RoundTripsThroughToml) {
    const ChipConfig config = find_chip_config("aurum-dc");
    EXPECT_EQ(parse_chip_config(to_toml(config), "x.toml"), config);
}

TEST(ChipConfig, EveryParameterRefusesOneBelowAndOneAboveItsRange) {
    for (const ParamInfo& param : kParams)
        for (const std::int64_t value : {param.min - 1, param.max + 1}) {
            const std::string error = error_of("name = \"x\"\n" + std::string(param.key) + " = " + std::to_string(value) + "\n");
            EXPECT_NE(error.find("chip.toml:2: " + std::string(param.key) + " = " + std::to_string(value) + ": must be"), std::string::npos) << error;
        }
}

TEST(ChipConfig, AllProblemsOfAFileAreReportedAtOnce) {
    const std::string error = error_of("mxu.rows = 0\nmxu.colls = 3\nhbm.banks = \"many\"\n");
    EXPECT_NE(error.find("chip.toml:1: mxu.rows = 0"), std::string::npos) << error;
    EXPECT_NE(error.find("chip.toml:2: mxu.colls: unknown parameter"), std::string::npos) << error;
    EXPECT_NE(error.find("chip.toml:3: hbm.banks: must be an integer"), std::string::npos) << error;
    EXPECT_NE(error.find("name: missing"), std::string::npos) << error;
}

TEST(ChipConfig, BrokenTomlNamesTheLine) { EXPECT_NE(error_of("name = \"x\"\nmxu.rows = = 3\n").find("chip.toml:2: not valid TOML"), std::string::npos); }

TEST(ChipConfig, SetTakesAnyParameterAndRefusesTheRest) {
    ChipConfig config = find_chip_config("aurum-edge");
    set_parameter(config, "mxu.rows=64");
    EXPECT_EQ(config.mxu_rows, 64);
    EXPECT_THROW(set_parameter(config, "mxu.rows=0"), Error);
    EXPECT_THROW(set_parameter(config, "mxu.rows=1x"), Error);
    EXPECT_THROW(set_parameter(config, "nothing=1"), Error);
    EXPECT_THROW(set_parameter(config, "mxu.rows"), Error);
}

TEST(ChipConfig, OnlyFunctionalParametersEnterTheHash) {
    const ChipConfig config = find_chip_config("aurum-edge");
    for (const ParamInfo& param : kParams) {
        ChipConfig other = config;
        other.*(param.member) += 1;
        EXPECT_EQ(config_hash(other) != config_hash(config), param.functional) << param.key;
    }
}

}  // namespace
}  // namespace assay::simkernel
