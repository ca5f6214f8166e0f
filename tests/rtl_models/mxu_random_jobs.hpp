#pragma once
// Random descriptors on one geometry against the reference, bits and cycles.
#include <gtest/gtest.h>

#include "rtl_models/rtl_units.hpp"
#include "simkernel/timing/mxu_timing.hpp"
#include "tests/rtl_models/mxu_harness.hpp"

namespace assay::test {

inline void random_jobs(int rows, int cols, int jobs, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto config = chip_config(rows, cols);
    FakeCore core(config);
    const auto unit = rtl::make_mxu(config, core, {});
    chip::Cycles now;
    int by_kind[2][2][2] = {};
    for (int i = 0; i < jobs; ++i) {
        if (i % 8 == 0) core.fill(random);
        const auto f = random_matmul(random, rows, cols);
        ++by_kind[f.dtype != 0][f.accumulate][f.group_k != 0];
        auto expected = core.acc();
        reference(f, core.spm(), expected);
        const Outcome o = run(*unit, f, now, 1'000'000);
        now += o.cycles;
        ASSERT_EQ(core.acc(), expected) << rows << "x" << cols << " job " << i << ": " << text(f);
        ASSERT_EQ(o.cycles.count, simkernel::mxu_cycles(f, config).count) << rows << "x" << cols << ": " << text(f);
        ASSERT_EQ(o.stall_memory.count, 0u);
    }
    for (const auto& type : by_kind)
        for (const auto& mode : type)
            for (const int count : mode) EXPECT_GT(count, 0) << "a kind of descriptor was never drawn";
}

}  // namespace assay::test
