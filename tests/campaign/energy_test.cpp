// Energy tables and the estimate, by hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "campaign/energy.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::campaign {
namespace {

TEST(Energy, CountsTheArraysProductsByTheTypesOfItsLayers) {
    EnergyTable table;
    table.mac_int8 = 1;
    table.mac_bf16 = 10;
    table.vector_element = 100;
    table.sram_byte = 2;
    table.hbm_byte = 3;
    simkernel::ChipConfig chip;
    chip.mxu_rows = 4;
    chip.mxu_cols = 8;
    // 600 int8 products and 100 of a three-way split, which the array does six times.
    const nlohmann::json verdict = {{"layers", {{{"precision", "int8"}, {"macs", 600}}, {{"precision", "bf16x3"}, {"macs", 100}}, {{"precision", "move"}, {"macs", 0}}}},
                                    {"counters", {{"matrix", {{"work", 1200}}}, {"vector", {{"work", 7}}}, {"load", {{"work", 40}}}, {"store", {{"work", 24}}}}}};
    const Energy energy = estimate_energy(verdict, chip, table);
    EXPECT_DOUBLE_EQ(energy.matrix_pj, 600 * 1 + 600 * 10);
    EXPECT_DOUBLE_EQ(energy.vector_pj, 700);
    EXPECT_DOUBLE_EQ(energy.hbm_pj, 64 * 3);
    // DMA 64; operands (600 of one byte, 600 of two) over 8 columns; sums of 8 bytes over 4 rows; 12 bytes a vector element.
    EXPECT_DOUBLE_EQ(energy.sram_pj, 2 * (64 + 1800 / 8.0 + 1200 * 8 / 4.0 + 84));
    EXPECT_DOUBLE_EQ(energy.total_pj(), energy.matrix_pj + energy.vector_pj + energy.hbm_pj + energy.sram_pj);
}

TEST(Energy, AModelWithoutProductsHasOnlyTheRest) {
    const nlohmann::json verdict = {{"layers", nlohmann::json::array()},
                                    {"counters", {{"matrix", {{"work", 0}}}, {"vector", {{"work", 5}}}, {"load", {{"work", 0}}}, {"store", {{"work", 0}}}}}};
    EnergyTable table;
    table.vector_element = 2;
    EXPECT_DOUBLE_EQ(estimate_energy(verdict, simkernel::ChipConfig{}, table).total_pj(), 10);
}

TEST(Energy, TheCommittedTableLoadsAndOrdersItsCosts) {
    const EnergyTable t = load_energy_table("7nm");
    EXPECT_EQ(t.name, "7nm");
    EXPECT_LT(t.mac_int8, t.mac_bf16);
    EXPECT_LT(t.mac_bf16, t.vector_element);
    EXPECT_LT(t.sram_byte, t.hbm_byte);
}

TEST(Energy, EveryProblemOfATableIsNamed) {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("energy-{}.toml", ::getpid());
    write_file(file, "mac.int8_pj = -1\nmac.bf16_pj = \"x\"\nmac.fp16_pj = 1\nmac.fp8_pj = 1\nvector.element_pj = 1\nsram.byte_pj = 1\nsram.bit_pj = 1\n");
    std::string text;
    try {
        load_energy_table(file.string());
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input);
        text = error.what();
    }
    std::filesystem::remove(file);
    for (const char* part : {"mac.int8_pj: must be", "mac.bf16_pj: must be", "hbm.byte_pj: missing", "sram.bit_pj: unknown key"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
    EXPECT_EQ(text.find("fp16"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::campaign
