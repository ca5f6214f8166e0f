// The contract's generator: what it writes is current, and what it refuses.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "aurum_contract.hpp"
#include "support/files.hpp"

namespace assay::simkernel {
namespace {

namespace fs = std::filesystem;

const std::string kGenerator = std::string(ASSAY_PYTHON) + " " ASSAY_SOURCE_DIR "/tools/contractgen.py ";

TEST(Contract, ReferencePageIsCurrent) {
    const fs::path page = fs::temp_directory_path() / "assay_chip_reference.md";
    ASSERT_EQ(std::system((kGenerator + ASSAY_SOURCE_DIR "/simkernel/contract --md " + page.string()).c_str()), 0);
    EXPECT_EQ(read_text(page), read_text(ASSAY_SOURCE_DIR "/docs/chip-reference.md"))
        << "run: python3 tools/contractgen.py simkernel/contract --md docs/chip-reference.md";
}

TEST(Contract, OverlappingFieldsAreRefused) {
    const fs::path folder = fs::temp_directory_path() / "assay_bad_contract";
    fs::remove_all(folder);
    fs::copy(ASSAY_SOURCE_DIR "/simkernel/contract", folder);
    std::string text = read_text(folder / "descriptors.toml");
    const std::string field = "name = \"w_addr\", word = 13";
    ASSERT_NE(text.find(field), std::string::npos);
    text.replace(text.find(field), field.size(), "name = \"w_addr\", word = 12");
    std::ofstream(folder / "descriptors.toml") << text;
    EXPECT_NE(std::system((kGenerator + folder.string() + " --md /dev/null 2>/dev/null").c_str()), 0);
}

TEST(Contract, EncodeThenDecodeIsIdentity) {
    std::mt19937 random(3);
    for (int i = 0; i < 1000; ++i) {
        DescriptorWords words;
        for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
        const VectorFields fields = decode_vector_fields(words);
        DescriptorWords again{};
        encode(fields, again);
        ASSERT_EQ(decode_vector_fields(again), fields);
        const LoadFields load = decode_load_fields(words);
        again = {};
        encode(load, again);
        ASSERT_EQ(decode_load_fields(again), load);
    }
}

TEST(Contract, RegistersAreDistinctAndInsideTheMap) {
    for (const RegisterInfo& a : kRegisters) {
        EXPECT_LT(a.offset, reg::counters) << a.name;
        for (const RegisterInfo& b : kRegisters) EXPECT_TRUE(&a == &b || a.offset != b.offset) << a.name << " " << b.name;
    }
    EXPECT_LE(reg::counters + kAllEngine.size() * reg::counters_engine_stride, kRegisterBytes);
}

}  // namespace
}  // namespace assay::simkernel
