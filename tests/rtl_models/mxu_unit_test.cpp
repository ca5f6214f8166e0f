#include <gtest/gtest.h>

#include "rtl_models/mxu_registry.hpp"
#include "rtl_models/rtl_units.hpp"
#include "simkernel/timing/mxu_timing.hpp"
#include "support/error.hpp"
#include "tests/rtl_models/mxu_harness.hpp"
#include "tests/rtl_models/mxu_random_jobs.hpp"

namespace assay::test {
namespace {

using chip::Cycles;

TEST(MxuUnit, RandomDescriptorsGiveTheReferenceBitsInTheFormulasCycles) {
    ASSERT_FALSE(rtl::mxu_registry().empty());
    for (const auto& g : rtl::mxu_registry()) random_jobs(g.rows, g.cols, 250, 1);
}

TEST(MxuUnit, CyclesFollowSetupAndLatency) {
    const auto& g = rtl::mxu_registry().front();
    std::mt19937 random(3);
    for (const std::int64_t setup : {0, 1, 1000})
        for (const std::int64_t latency : {1, 3, 100}) {
            auto config = chip_config(g.rows, g.cols);
            config.mxu_setup_cycles = setup;
            config.spm_latency_cycles = latency;
            FakeCore core(config);
            core.fill(random);
            const auto unit = rtl::make_mxu(config, core, {});
            for (int i = 0; i < 10; ++i) {
                auto f = random_matmul(random, g.rows, g.cols);
                f.m_count = {200, 1, 1};  // past the buffers' 128 rows: the longest latency must not throttle
                f.a_m_stride[0] = f.dtype == static_cast<std::uint32_t>(simkernel::Dtype::bf16) ? 2 : 1;
                auto expected = core.acc();
                reference(f, core.spm(), expected);
                EXPECT_EQ(run(*unit, f, Cycles{5}, 1000).cycles.count, simkernel::mxu_cycles(f, config).count)
                    << "setup " << setup << ", latency " << latency << ": " << text(f);
                EXPECT_EQ(core.acc(), expected) << text(f);
                core.fill(random);
                core.restart_time();
            }
        }
}

TEST(MxuUnit, BurstLengthChangesNeitherBitsNorCycles) {
    for (const auto& g : rtl::mxu_registry()) {
        std::mt19937 random(4);
        const auto config = chip_config(g.rows, g.cols);
        FakeCore core(config);
        for (int i = 0; i < 20; ++i) {
            core.fill(random);
            const auto acc = core.acc();
            const auto f = random_matmul(random, g.rows, g.cols);
            const std::uint32_t disturbance = i % 2 == 0 ? 0u : 77u + static_cast<std::uint32_t>(i);
            std::vector<std::byte> first;
            Outcome outcome;
            for (const std::uint64_t burst : {1u, 7u, 1'000'000u}) {
                core.acc() = acc;
                core.restart_time();
                core.disturb(disturbance);
                const auto unit = rtl::make_mxu(config, core, {});
                const Outcome o = run(*unit, f, Cycles{100}, burst);
                if (first.empty()) {
                    first = core.acc();
                    outcome = o;
                }
                EXPECT_EQ(o.cycles.count, outcome.cycles.count) << "burst " << burst << ": " << text(f);
                EXPECT_EQ(o.stall_memory.count, outcome.stall_memory.count) << "burst " << burst << ": " << text(f);
                EXPECT_EQ(core.acc(), first) << "burst " << burst << ": " << text(f);
            }
        }
    }
}

TEST(MxuUnit, RefusalsAndLateAnswersChangeOnlyCycles) {
    for (const auto& g : rtl::mxu_registry()) {
        std::mt19937 random(5);
        const auto config = chip_config(g.rows, g.cols);
        FakeCore core(config);
        const auto unit = rtl::make_mxu(config, core, {});
        for (int i = 0; i < 60; ++i) {
            core.fill(random);
            core.restart_time();
            core.disturb(static_cast<std::uint32_t>(1 + i));
            const auto f = random_matmul(random, g.rows, g.cols);
            auto expected = core.acc();
            reference(f, core.spm(), expected);
            const Outcome o = run(*unit, f, Cycles{0}, 1000);
            ASSERT_EQ(core.acc(), expected) << text(f);
            EXPECT_GE(o.cycles, simkernel::mxu_cycles(f, config)) << text(f);
            EXPECT_GT(o.blocked, 0);
        }
        EXPECT_GT(core.refusals, 0u);
    }
}

TEST(MxuUnit, AGeometryThatWasNotBuiltIsNamedWithThoseThatWere) {
    FakeCore core(chip_config(5, 7));
    try {
        (void)rtl::make_mxu(core.config(), core, {});
        FAIL() << "5x7 is not built";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::usage);
        const std::string what = e.what();
        EXPECT_NE(what.find("5x7"), std::string::npos) << what;
        EXPECT_NE(what.find("ASSAY_RTL_CONFIGS"), std::string::npos) << what;
        for (const auto& name : rtl::built_mxu_geometries()) EXPECT_NE(what.find(name), std::string::npos) << what;
    }
}

/// Decode makes these unreachable; a fault and an exception are what remains when it is wrong.
TEST(MxuUnit, AnAccessOutsideTheMemoryIsAFaultAndTheUnitGoesOn) {
    const auto& g = rtl::mxu_registry().front();
    FakeCore core(chip_config(g.rows, g.cols));
    std::mt19937 random(6);
    core.fill(random);
    const auto unit = rtl::make_mxu(core.config(), core, {});
    const auto good = random_matmul(random, g.rows, g.cols);
    for (const bool activations : {true, false}) {
        auto bad = good;
        (activations ? bad.a_addr : bad.acc_addr) |= 0x0800'0000u;
        ASSERT_TRUE(unit->offer(3, simkernel::Decoded{}, words_of(bad), Cycles{0}));
        const chip::Advance a = unit->advance(Cycles{100'000});
        EXPECT_EQ(a.state, chip::UnitState::retired);
        EXPECT_EQ(a.retired_id, 3u);
        EXPECT_EQ(a.fault.code, simkernel::ErrorCode::illegal_address);
        core.restart_time();
        auto expected = core.acc();
        reference(good, core.spm(), expected);
        EXPECT_EQ(run(*unit, good, Cycles{0}, 1000).cycles.count, simkernel::mxu_cycles(good, core.config()).count);
        EXPECT_EQ(core.acc(), expected);
        core.restart_time();
    }
}

TEST(MxuUnit, AFailedAssertionOfTheRtlIsAnInternalErrorNotAnAbort) {
    const auto& g = rtl::mxu_registry().front();
    FakeCore core(chip_config(g.rows, g.cols));
    const auto unit = rtl::make_mxu(core.config(), core, {});
    std::mt19937 random(7);
    auto f = random_matmul(random, g.rows, g.cols);
    f.dtype = static_cast<std::uint32_t>(simkernel::Dtype::f32);
    ASSERT_TRUE(unit->offer(3, simkernel::Decoded{}, words_of(f), Cycles{0}));
    try {
        (void)unit->advance(Cycles{10});
        FAIL() << "the unit has no such type";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::internal) << e.what();
    }
}

TEST(MxuUnit, AnIdleUnitRunsNoCycles) {
    const auto& g = rtl::mxu_registry().front();
    FakeCore core(chip_config(g.rows, g.cols));
    const auto unit = rtl::make_mxu(core.config(), core, {});
    const chip::Advance a = unit->advance(Cycles{100});
    EXPECT_EQ(a.state, chip::UnitState::idle);
    EXPECT_EQ(a.ran.count, 0u);
}

}  // namespace
}  // namespace assay::test
