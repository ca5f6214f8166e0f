#include "simkernel/exec/sanitizer.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "simkernel/exec/interpreter.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel {
namespace {

using namespace testing;

class Drop final : public JobHooks {
public:
    explicit Drop(std::set<std::uint32_t> dropped) : dropped_(std::move(dropped)) {}
    bool drops_signal(std::uint32_t, std::uint32_t index) override { return dropped_.count(index) > 0; }

private:
    std::set<std::uint32_t> dropped_;
};

std::vector<Finding> findings(const std::vector<DescriptorWords>& program, JobHooks* faults = nullptr) {
    const ChipConfig chip = nano();
    Sanitizer sanitizer(chip, faults);
    sanitizer.host_wrote(0x1000, 0x1000);
    sanitizer.host_wrote(0x2000, 0x1000);
    for (std::uint32_t i = 0; i < program.size(); ++i) {
        Decoded decoded;
        EXPECT_FALSE(decode(program[i], chip, decoded));
        sanitizer.dispatched(0, i, decoded);
    }
    return sanitizer.findings();
}

DescriptorWords without_waits(DescriptorWords words) {
    CommonFields common = decode_common_fields(words);
    common.wait_value = {};
    encode(common, words);
    return words;
}

TEST(Sanitizer, SynchronisedProgramHasNoFinding) { EXPECT_TRUE(findings(gemm_program(16, 8, 8)).empty()); }

TEST(Sanitizer, EachMissingWaitIsARaceNamingBothDescriptors) {
    const auto good = gemm_program(16, 8, 8);
    int checked = 0;
    for (std::uint32_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] = without_waits(good[i]);
        if (bad[i] == good[i]) continue;
        const auto found = findings(bad);
        ASSERT_FALSE(found.empty()) << "descriptor " << i;
        EXPECT_EQ(found[0].kind, FindingKind::race);
        EXPECT_EQ(found[0].descriptor, i);
        EXPECT_LT(found[0].other, i);
        ++checked;
    }
    EXPECT_EQ(checked, 3);
}

TEST(Sanitizer, EachDroppedSignalIsReported) {
    const auto program = gemm_program(16, 8, 8);
    int checked = 0;
    for (std::uint32_t i = 0; i < program.size(); ++i) {
        if (decode_common_fields(program[i]).signal_add == 0) continue;
        Drop drop({i});
        const auto found = findings(program, &drop);
        ASSERT_FALSE(found.empty()) << "descriptor " << i;
        EXPECT_EQ(found[0].kind, FindingKind::deadlock);
        ++checked;
    }
    EXPECT_EQ(checked, 3);
}

TEST(Sanitizer, ReadOfBytesThatNothingWroteIsUninitialised) {
    auto program = gemm_program(16, 8, 8);
    program[0] = load(0x1000, 0, 16 * 8 - 1);  // one activation byte is missing
    const auto found = findings(program);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, FindingKind::uninitialised);
    EXPECT_EQ(found[0].descriptor, 2u);
    EXPECT_EQ(found[0].address, 127u);
}

TEST(Sanitizer, HbmOutOfRangeIsReported) {
    auto program = gemm_program(1, 8, 8);
    program[0] = load(static_cast<std::uint64_t>(nano().hbm_bytes) - 4, 0, 8);
    const auto found = findings(program);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].kind, FindingKind::out_of_range);
}

TEST(Sanitizer, WriteAfterReadOnAnotherEngineNeedsAWait) {
    auto program = gemm_program(16, 8, 8);
    program.push_back(load(0x1000, 0, 128));  // overwrites the activations that matmul reads
    const auto found = findings(program);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, FindingKind::race);
    EXPECT_EQ(found[0].descriptor, 5u);
    EXPECT_EQ(found[0].other, 2u);
    add_waits(program.back(), {{2, 1}});
    EXPECT_TRUE(findings(program).empty());
}

TEST(Sanitizer, OrderIsTransitiveThroughAnotherEngine) {
    auto program = gemm_program(16, 8, 8);
    program.push_back(load(0x1000, 0, 128));
    add_waits(program.back(), {{3, 1}});  // the drain waited for matmul
    EXPECT_TRUE(findings(program).empty());
}

TEST(Sanitizer, WholePagesAndPartsOfPagesAgree) {
    // 3 pages of HBM stored, then reloaded with and without a wait: uniform and expanded pages must tell the same.
    for (const std::uint32_t bytes : {4096u, 12288u, 12290u, 100u}) {
        FillFields fill;
        fill.local_addr = 0;
        fill.run_bytes = bytes;
        fill.count = {1, 1, 1, 1};
        fill.pattern_bytes = 1;
        std::vector<DescriptorWords> program{descriptor(Opcode::fill, fill), store(0x5000, 0, bytes), load(0x5000, 0x8000, bytes)};
        add_signal(program[0], 0);
        add_waits(program[1], {{0, 1}});
        add_signal(program[1], 1);
        auto found = findings(program);
        ASSERT_EQ(found.size(), 1u) << bytes;
        EXPECT_EQ(found[0].kind, FindingKind::race);
        EXPECT_EQ(found[0].address, 0x5000u);
        add_waits(program[2], {{1, 1}});
        EXPECT_TRUE(findings(program).empty()) << bytes;
    }
}

}  // namespace
}  // namespace assay::simkernel
