#include "systemc/transfer_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::chip {
namespace {

std::vector<std::pair<std::uint64_t, std::uint64_t>> bursts(const simkernel::LoadFields& f, std::uint64_t burst_bytes) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (TransferPlan plan(f, burst_bytes); !plan.done(); plan.pop()) all.emplace_back(plan.front().address, plan.front().bytes);
    return all;
}

TEST(TransferPlan, CutsARunAtMultiplesOfTheBurst) {
    simkernel::LoadFields f;
    f.ext_addr = 100;
    f.run_bytes = 300;
    f.count = {1, 1, 1, 1};
    EXPECT_EQ(bursts(f, 128), (decltype(bursts(f, 1)){{100, 28}, {128, 128}, {256, 128}, {384, 16}}));
}

TEST(TransferPlan, JoinsRunsWithoutGapsAndWalksTheOthersInIndexOrder) {
    simkernel::LoadFields f;
    f.ext_addr = 0x1000;
    f.run_bytes = 8;
    f.count = {4, 2, 2, 1};
    f.ext_stride = {8, 64, -256, 0};
    EXPECT_EQ(bursts(f, 128), (decltype(bursts(f, 1)){{0x1000, 32}, {0x1040, 32}, {0xF00, 32}, {0xF40, 32}}));
}

TEST(TransferPlan, IssuesEachRowOfAListByItself) {
    simkernel::LoadFields f;
    f.ext_addr = 0x1000;
    f.run_bytes = 64;
    f.count = {3, 2, 1, 1};
    f.ext_stride = {64, 0x800, 0, 0};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (TransferPlan plan(f, 128, {1, 0, 1}); !plan.done(); plan.pop()) all.emplace_back(plan.front().address, plan.front().bytes);
    EXPECT_EQ(all, (decltype(all){{0x1040, 64}, {0x1000, 64}, {0x1040, 64}, {0x1840, 64}, {0x1800, 64}, {0x1840, 64}}));
}

TEST(TransferPlan, CoversEveryByteOfAFourDimensionalTransferOnce) {
    simkernel::LoadFields f;
    f.ext_addr = 1 << 16;
    f.run_bytes = 5;
    f.count = {3, 2, 4, 2};
    f.ext_stride = {7, 32, 128, -4096};
    std::vector<std::uint64_t> expected, got;
    for (std::uint64_t i3 = 0; i3 < 2; ++i3)
        for (std::uint64_t i2 = 0; i2 < 4; ++i2)
            for (std::uint64_t i1 = 0; i1 < 2; ++i1)
                for (std::uint64_t i0 = 0; i0 < 3; ++i0)
                    for (std::uint64_t b = 0; b < 5; ++b) expected.push_back((1 << 16) + i0 * 7 + i1 * 32 + i2 * 128 - i3 * 4096 + b);
    for (const auto& [address, bytes] : bursts(f, 16)) {
        EXPECT_EQ(address / 16, (address + bytes - 1) / 16) << "a burst stays in its block";
        for (std::uint64_t b = 0; b < bytes; ++b) got.push_back(address + b);
    }
    EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace assay::chip
