// Sweeps too long for every build: all 2^32 conversions to bf16, all significands of the functions defined by algorithm, every 64th
// operand of every one-operand micro-operation on the best path.
#include <gtest/gtest.h>

#include <cstring>

#include "oracle.hpp"
#include "paths.hpp"
#include "simkernel/numerics/formats.hpp"
#include "simkernel/numerics/kernels.hpp"
#include "simkernel/numerics/workers.hpp"
#include "ulp.hpp"

namespace assay::simkernel::test {
namespace {

/// Nearest bf16 by comparing the distances to both neighbours in double: shares nothing with the rounding trick of formats.hpp.
std::uint16_t nearest_bf16(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7F800000u) return 0x7FC0;
    if (magnitude < 0x00800000u) return static_cast<std::uint16_t>(sign);
    const std::uint32_t below = magnitude >> 16;
    const auto value_of = [](std::uint32_t pattern) { return static_cast<double>(std::bit_cast<float>(pattern)); };
    const double x = value_of(magnitude);
    const double above = below == 0x7F7F ? 0x1p128 : value_of((below + 1) << 16);  // rounding sees 2^128 where infinity stands
    const double down = x - value_of(below << 16), up = above - x;
    if (magnitude == 0x7F800000u || down < up || (down == up && below % 2 == 0)) return static_cast<std::uint16_t>(sign | below);
    return static_cast<std::uint16_t>(sign | (below + 1));
}

TEST(ExhaustiveSlow, EveryF32ConvertsToTheNearestBf16) {
    std::uint64_t checked = 0;
    for (std::uint64_t bits = 0; bits < (1ull << 32); ++bits, ++checked)
        if (bf16_from_f32(static_cast<std::uint32_t>(bits)) != nearest_bf16(static_cast<std::uint32_t>(bits)))
            FAIL() << std::hex << bits << ": " << bf16_from_f32(static_cast<std::uint32_t>(bits)) << ", nearest " << nearest_bf16(static_cast<std::uint32_t>(bits));
    EXPECT_EQ(checked, 1ull << 32);
}

void expect_within(const SpecialFunction& fn, std::uint32_t first, std::uint32_t last, std::uint32_t stride) {
    const UlpSweep sweep = sweep_ulp(fn, first, last, stride);
    EXPECT_GT(sweep.checked, 1'000'000u);
    EXPECT_LE(sweep.max_ulp, fn.published_ulp) << fn.name << " at " << std::hex << sweep.worst;
    testing::Test::RecordProperty("max_ulp", std::to_string(sweep.max_ulp));
}
TEST(ExhaustiveSlow, RecipOnEverySignificand) { expect_within(kRecipFn, 0x3F800000u, 0x40000000u, 1); }
TEST(ExhaustiveSlow, RsqrtOnEverySignificandOfBothParities) { expect_within(kRsqrtFn, 0x3F800000u, 0x40800000u, 1); }
TEST(ExhaustiveSlow, Exp2OnTheReducedRange) {
    expect_within(kExp2Fn, 0x32800000u, 0x3F000000u, 5);
    expect_within(kExp2Fn, 0xB2800000u, 0xBF000000u, 5);
}
TEST(ExhaustiveSlow, Exp2OutsideTheReducedRange) {
    expect_within(kExp2Fn, 0x3F000001u, 0x42FFFFFFu, 3);
    expect_within(kExp2Fn, 0xBF000001u, 0xC2FC0000u, 3);
}
TEST(ExhaustiveSlow, Log2OnEverySignificandAroundOne) { expect_within(kLog2Fn, 0x3E800000u, 0x40800000u, 1); }
TEST(ExhaustiveSlow, Log2AcrossExponents) { expect_within(kLog2Fn, 0x00800000u, 0x7F7FFFFFu, 31); }

TEST(ExhaustiveSlow, OneOperandOperationsOnTheBestPathEqualTheDefinitionOnEverySixtyFourthOperand) {
    const KernelTable* kernel = kernels();
    if (kernel == nullptr) GTEST_SKIP() << "only the definitions exist here";
    constexpr std::size_t kBlock = 4096;
    std::vector<std::uint32_t> a(kBlock), got(kBlock);
    for (const Uop op : {Uop::sqrt_f32, Uop::floor_f32, Uop::round_f32, Uop::recip_f32, Uop::rsqrt_f32, Uop::exp2_f32, Uop::log2_f32, Uop::to_bf16,
                         Uop::i32_to_f32, Uop::f32_to_i32}) {
        std::uint64_t checked = 0;
        for (std::uint64_t base = 0; base < (1ull << 32); base += 64 * kBlock) {
            for (std::size_t i = 0; i < kBlock; ++i) a[i] = static_cast<std::uint32_t>(base + 64 * i + (base / (64 * kBlock)) % 64);
            {
                const FtzScope ftz;
                kernel->uop(op, a.data(), a.data(), a.data(), got.data(), kBlock);
            }
            for (std::size_t i = 0; i < kBlock; ++i, ++checked)
                if (got[i] != run_uop(op, a[i], 0, 0)) FAIL() << name_of(op) << std::hex << " of " << a[i] << ": " << got[i] << ", defined " << run_uop(op, a[i], 0, 0);
        }
        EXPECT_EQ(checked, 1ull << 26) << name_of(op);
    }
}

}  // namespace
}  // namespace assay::simkernel::test
