// Token by token on the chip, against the published text; and the vocabulary alone.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "campaign/conformance.hpp"
#include "campaign/generate.hpp"
#include "campaign/tokenizer.hpp"
#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;

const fs::path kStories = fs::path(ASSAY_SOURCE_DIR) / "../shared/models/stories260K_decode";

fs::path small_vocabulary(const std::vector<std::pair<std::string, float>>& extra) {
    const fs::path path = fs::temp_directory_path() / "assay_tokenizer.bin";
    std::ofstream out(path, std::ios::binary);
    const auto put = [&](const std::string& piece, float score) {
        const auto length = static_cast<std::int32_t>(piece.size());
        out.write(reinterpret_cast<const char*>(&score), 4).write(reinterpret_cast<const char*>(&length), 4) << piece;
    };
    const std::int32_t longest = 8;
    out.write(reinterpret_cast<const char*>(&longest), 4);
    put("<unk>", 0), put("\n<s>\n", 0), put("\n</s>\n", 0);
    for (int byte = 0; byte < 256; ++byte) {
        char name[8];
        std::snprintf(name, sizeof name, "<0x%02X>", byte);
        put(name, 0);
    }
    for (const auto& [piece, score] : extra) put(piece, score);
    return path;
}

TEST(Tokenizer, MergesTheBestPairFirstAndFallsBackToBytes) {
    const Tokenizer tokens(small_vocabulary({{" ", -1}, {"a", -2}, {"b", -3}, {"ab", -4}, {" a", -5}}));
    // " ab": of the pairs " a" (-5) and "ab" (-4) the better one is merged, and nothing fits after.
    EXPECT_EQ(tokens.encode("ab"), (std::vector<std::int64_t>{1, 259, 262}));
    EXPECT_EQ(tokens.encode("\xC3\xA9"), (std::vector<std::int64_t>{1, 259, 3 + 0xC3, 3 + 0xA9}));
    EXPECT_EQ(tokens.decode(1, 263), "a") << "no space before the first word";
    EXPECT_EQ(tokens.decode(262, 263), " a");
    EXPECT_EQ(tokens.decode(262, 3 + 0x0A), "\n");
    EXPECT_EQ(tokens.decode(262, 100000), "");
}

TEST(Tokenizer, ATruncatedFileIsRefusedByName) {
    const fs::path path = small_vocabulary({{"word", 0}});
    fs::resize_file(path, fs::file_size(path) - 2);
    try {
        const Tokenizer tokens(path);
        FAIL() << "was taken";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    }
}

TEST(Generate, TheChipTellsThePublishedStoryWithItsCacheInDeviceMemory) {
    if (!fs::exists(kStories / "model.onnx")) GTEST_SKIP() << kStories << " is not there";
    GenerateOptions options;
    options.model.model = (kStories / "model.onnx").string();
    options.tokenizer = (kStories / "published/tok512.bin").string();
    options.steps = 12;
    options.sanitize = true;
    options.target_options.chip = simkernel::find_chip_config("aurum-edge");
    const GenerateReport report = generate(options);
    const std::string story = read_text(kStories / "published/published_text_llama2c_test_all.txt");
    ASSERT_GE(report.text.size(), 20u);
    EXPECT_EQ(report.text, story.substr(0, report.text.size()));
    EXPECT_EQ(report.cycles.size(), 12u);
    // The first step has no cache yet, the second takes the host's copy.
    EXPECT_GE(report.resident_steps, 10u);
}

TEST(Conformance, ReluAndAnUnsupportedSequence) {
    ConformanceOptions options;
    options.target_options.chip = simkernel::find_chip_config("aurum-nano");
    options.filter = "test_relu";
    if (!fs::exists("/usr/share/libonnx-testdata/data/node")) GTEST_SKIP() << "libonnx-testdata is not installed";
    const ConformanceReport relu = run_conformance(options);
    ASSERT_EQ(relu.vectors.size(), 1u);
    EXPECT_EQ(relu.vectors[0].status, VectorOutcome::Status::passed) << relu.vectors[0].reason;
    EXPECT_FALSE(relu.vectors[0].on_host);
    options.filter = "test_sequence_insert_at_back";
    const ConformanceReport sequence = run_conformance(options);
    ASSERT_EQ(sequence.vectors.size(), 1u);
    EXPECT_EQ(sequence.vectors[0].status, VectorOutcome::Status::unsupported);
    EXPECT_NE(sequence.vectors[0].reason.find("sequence"), std::string::npos) << sequence.vectors[0].reason;
    EXPECT_NE(conformance_junit(sequence).find("<skipped"), std::string::npos);
}

}  // namespace
}  // namespace assay::campaign
