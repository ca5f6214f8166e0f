// The functions defined by algorithm: measured error against a wide reference. The bounds are those that docs/numerics.md publishes, rounded up
// from the exhaustive sweep of exhaustive_slow_test.cpp.
#include <gtest/gtest.h>

#include "ulp.hpp"

namespace assay::simkernel::test {
namespace {

/// Sweeps [first, last] in steps of `stride` (a prime, so that low bits vary) and expects at most the published error and a non-empty sweep.
void expect_within(const SpecialFunction& fn, std::uint32_t first, std::uint32_t last, std::uint32_t stride) {
    const UlpSweep sweep = sweep_ulp(fn, first, last, stride);
    EXPECT_GT(sweep.checked, 1000u) << fn.name;
    EXPECT_LE(sweep.max_ulp, fn.published_ulp) << fn.name << " at " << std::hex << sweep.worst;
    testing::Test::RecordProperty(std::string(fn.name) + "_max_ulp", std::to_string(sweep.max_ulp));
}

TEST(Special, RecipErrsLessThanPublishedOnEverySeventhSignificandAndAcrossExponents) {
    expect_within(kRecipFn, 0x3F800000u, 0x40000000u, 7);
    expect_within(kRecipFn, 0x00800000u, 0x7E800000u, 100'003);
    expect_within(kRecipFn, 0x80800000u, 0xFE800000u, 100'003);
}
TEST(Special, RsqrtErrsLessThanPublishedOnEverySeventhSignificandOfBothParities) {
    expect_within(kRsqrtFn, 0x3F800000u, 0x40800000u, 13);
    expect_within(kRsqrtFn, 0x00800000u, 0x7F7FFFFFu, 100'003);
}
TEST(Special, Exp2ErrsLessThanPublishedOnItsReducedRangeAndAcrossExponents) {
    expect_within(kExp2Fn, 0x33000000u, 0x3F000000u, 997);
    expect_within(kExp2Fn, 0xB3000000u, 0xBF000000u, 997);
    expect_within(kExp2Fn, 0x3F000000u, 0x42FFFFFFu, 211);
    expect_within(kExp2Fn, 0xBF000000u, 0xC2FC0000u, 211);
}
TEST(Special, Log2ErrsLessThanPublishedAroundOneAndAcrossExponents) {
    expect_within(kLog2Fn, 0x3F000000u, 0x40000000u, 17);
    expect_within(kLog2Fn, 0x40000000u, 0x41000000u, 61);
    expect_within(kLog2Fn, 0x00800000u, 0x7F7FFFFFu, 50'021);
}

TEST(Special, PowersOfTwoAreExact) {
    for (int n = -126; n <= 127; ++n) {
        const auto power = static_cast<std::uint32_t>(n + 127) << 23;
        const std::uint32_t integer = run_uop(Uop::i32_to_f32, static_cast<std::uint32_t>(n), 0, 0);
        EXPECT_EQ(run_uop(Uop::exp2_f32, integer, 0, 0), power) << n;
        EXPECT_EQ(run_uop(Uop::log2_f32, power, 0, 0), integer) << n;
        if (n < 127) {
            EXPECT_EQ(run_uop(Uop::recip_f32, power, 0, 0), static_cast<std::uint32_t>(127 - n) << 23) << n;
        }
        if (n % 2 == 0) {
            EXPECT_EQ(run_uop(Uop::rsqrt_f32, power, 0, 0), static_cast<std::uint32_t>(127 - n / 2) << 23) << n;
        }
    }
}

}  // namespace
}  // namespace assay::simkernel::test
