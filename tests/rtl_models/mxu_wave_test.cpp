#include <gtest/gtest.h>
#include <gtkwave/fstapi.h>

#include <filesystem>
#include <memory>

#include "rtl_models/mxu_registry.hpp"
#include "rtl_models/rtl_units.hpp"
#include "support/error.hpp"
#include "tests/rtl_models/mxu_harness.hpp"

namespace assay::test {
namespace {

using chip::Cycles;

/// Two descriptors at cycles 1000 and 2000 with waves of [1005, 1015): the file holds those cycles only, and nothing else changes.
TEST(MxuWave, IsBoundedAndChangesNothing) {
    const auto& g = rtl::mxu_registry().front();
    const auto path = std::filesystem::path(testing::TempDir()) / "assay_mxu_wave_test.fst";
    std::filesystem::remove(path);
    FakeCore core(chip_config(g.rows, g.cols));
    std::mt19937 random(21);
    core.fill(random);
    const auto acc = core.acc();
    const auto f = random_matmul(random, g.rows, g.cols);
    std::vector<std::byte> plain_acc;
    Outcome plain;
    for (const bool waves : {false, true}) {
        core.acc() = acc;
        core.restart_time();
        const chip::WaveOptions options{waves ? path.string() : "", 1005, 10};
        const auto unit = rtl::make_mxu(core.config(), core, options);
        const Outcome first = run(*unit, f, Cycles{1000}, 1'000'000);
        ASSERT_GT(first.cycles.count, 15u) << "the window must lie within the first descriptor";
        (void)run(*unit, f, Cycles{2000}, 1'000'000);
        if (!waves) {
            plain = first;
            plain_acc = core.acc();
        }
        EXPECT_EQ(first.cycles.count, plain.cycles.count);
        EXPECT_EQ(core.acc(), plain_acc);
    }
    const std::unique_ptr<void, void (*)(void*)> fst(fstReaderOpen(path.c_str()), [](void* p) { if (p) fstReaderClose(p); });
    ASSERT_NE(fst, nullptr) << path << " is not an FST file";
    EXPECT_GT(fstReaderGetVarCount(fst.get()), 50u);
    EXPECT_EQ(fstReaderGetStartTime(fst.get()), 2 * 1005u);
    EXPECT_EQ(fstReaderGetEndTime(fst.get()), 2 * 1014u + 1);
    std::filesystem::remove(path);
}

TEST(MxuWave, AnUnwritablePathIsAnErrorBeforeAnythingRuns) {
    const auto& g = rtl::mxu_registry().front();
    FakeCore core(chip_config(g.rows, g.cols));
    try {
        (void)rtl::make_mxu(core.config(), core, {"/nonexistent-folder/wave.fst", 0, 0});
        FAIL() << "the wave file cannot exist";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::io);
        EXPECT_NE(std::string(e.what()).find("/nonexistent-folder/wave.fst"), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace assay::test
