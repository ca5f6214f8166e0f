#include <gtest/gtest.h>

#include "rtl_models/mxu_registry.hpp"
#include "rtl_models/rtl_units.hpp"
#include "simkernel/timing/mxu_timing.hpp"
#include "tests/rtl_models/mxu_harness.hpp"

namespace assay::rtl {
std::unique_ptr<MxuModel> make_Vmxu_8x8_random(const PowerUp&);  // tests/rtl_models/CMakeLists.txt
}

namespace assay::test {
namespace {

using chip::Cycles;
using simkernel::MatmulFields;

/// A short job of each type with segments, groups and accumulation, that leaves something in every register.
std::vector<MatmulFields> short_jobs(int rows, int cols) {
    std::mt19937 random(11);
    std::vector<MatmulFields> jobs;
    bool seen[2] = {};
    while (jobs.size() < 2) {
        auto f = random_matmul(random, rows, cols);
        f.accumulate = 1;
        f.m_count = {3, 2, 1};
        if (seen[f.dtype != 0] || f.k_count[1] * f.k_count[2] < 2 || f.group_k == 0) continue;
        seen[f.dtype != 0] = true;
        jobs.push_back(f);
    }
    return jobs;
}

TEST(MxuReset, AtEveryCycleOfAJobLeavesTheNextOneEqualToAFreshUnits) {
    const auto& g = rtl::mxu_registry().front();
    const auto config = chip_config(g.rows, g.cols);
    FakeCore core(config);
    std::mt19937 random(12);
    core.fill(random);
    const auto acc = core.acc();
    const auto jobs = short_jobs(g.rows, g.cols);
    const auto unit = rtl::make_mxu(config, core, {});
    int resets = 0;
    for (const MatmulFields& victim : jobs)
        for (const MatmulFields& next : jobs) {
            core.acc() = acc;
            core.restart_time();
            const auto fresh = rtl::make_mxu(config, core, {});
            const Outcome expected = run(*fresh, next, Cycles{0}, 1000);
            const auto expected_acc = core.acc();
            const std::uint64_t length = run(*fresh, victim, Cycles{10000}, 1000).cycles.count;
            for (std::uint64_t cut = 0; cut < length; ++cut, ++resets) {
                core.restart_time();
                simkernel::Decoded decoded;
                ASSERT_TRUE(unit->offer(1, decoded, words_of(victim), Cycles{0}));
                if (cut != 0) {
                    ASSERT_EQ(unit->advance(Cycles{cut}).state, chip::UnitState::running);
                }
                unit->reset();
                ASSERT_EQ(unit->advance(Cycles{10}).state, chip::UnitState::idle);
                core.acc() = acc;
                const Outcome o = run(*unit, next, Cycles{20000}, 1000);
                ASSERT_EQ(o.cycles.count, expected.cycles.count) << "reset at cycle " << cut << " of " << text(victim);
                ASSERT_EQ(core.acc(), expected_acc) << "reset at cycle " << cut << " of " << text(victim);
            }
        }
    EXPECT_GT(resets, 4 * 30);
}

TEST(MxuPowerUp, RandomRegistersChangeNeitherBitsNorCycles) {
    const auto config = chip_config(8, 8);
    for (const std::uint32_t seed : {1u, 2u, 3u, 0x7FFF'FFFFu}) {
        FakeCore core(config);
        std::mt19937 random(13);
        rtl::RtlMxu unit(rtl::make_Vmxu_8x8_random({.random = true, .seed = seed}), core);
        for (int i = 0; i < 60; ++i) {
            if (i % 8 == 0) core.fill(random);
            const auto f = random_matmul(random, 8, 8);
            auto expected = core.acc();
            reference(f, core.spm(), expected);
            core.restart_time();
            const Outcome o = run(unit, f, Cycles{0}, 1000);
            ASSERT_EQ(core.acc(), expected) << "seed " << seed << ": " << text(f);
            ASSERT_EQ(o.cycles.count, simkernel::mxu_cycles(f, config).count) << "seed " << seed << ": " << text(f);
        }
    }
}

}  // namespace
}  // namespace assay::test
