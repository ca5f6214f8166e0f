#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

#include "tests/rtl_models/verilated_pe.hpp"

namespace assay::test {
namespace {

TEST(MxuPeI8, EveryOperandPairWrapsAtBothEndsOfTheAccumulator) {
    VerilatedPe pe;
    int checked = 0;
    for (const std::int32_t psum : {0, -1, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()})
        for (int act = -128; act <= 127; ++act)
            for (int weight = -128; weight <= 127; ++weight, ++checked) {
                pe.drive({static_cast<std::uint32_t>(psum), static_cast<std::uint16_t>(act), static_cast<std::uint16_t>(weight)});
                const auto expected = static_cast<std::uint32_t>(static_cast<std::int64_t>(psum) + act * weight);
                ASSERT_EQ(pe.i8(), expected) << "act " << act << ", weight " << weight << ", psum " << psum;
            }
    EXPECT_EQ(checked, 4 * 256 * 256) << "an empty sweep is an error, not a pass";
}

TEST(MxuPeBf16, DirectedRandomEqualsHostFmaUnderFlush) {
    if (!host_has_fma()) GTEST_SKIP() << "the oracle needs a host with FMA instructions";
    VerilatedPe pe;
    PeCases cases(20261130);  // any seed; this one is the day of writing
    const FlushScope flush;
    int nan = 0, infinite = 0, zero = 0, negative_zero = 0, finite = 0;
    constexpr int kCases = 1'000'000;
    for (int i = 0; i < kCases; ++i) {
        const PeCase c = cases.next();
        pe.drive(c);
        const std::uint32_t expected = oracle_bf16(c.psum, c.act, c.weight);
        ASSERT_EQ(pe.bf16(), expected) << std::hex << "case " << i << ": act " << c.act << ", weight " << c.weight << ", psum " << c.psum;
        if (expected == 0x7FC0'0000u) ++nan;
        else if ((expected & 0x7FFF'FFFFu) == 0x7F80'0000u) ++infinite;
        else if (expected == 0) ++zero;
        else if (expected == 0x8000'0000u) ++negative_zero;
        else ++finite;
    }
    // Each class of result is at least one case in two hundred, or the generator no longer reaches what it is for.
    for (const int count : {nan, infinite, zero, negative_zero, finite}) EXPECT_GT(count, kCases / 200);
}

/// One value or two of every class, each against each.
TEST(MxuPeBf16, EveryClassMeetsEveryClass) {
    if (!host_has_fma()) GTEST_SKIP() << "the oracle needs a host with FMA instructions";
    constexpr std::array<std::uint16_t, 15> kMagnitudes{0x0000, 0x0001, 0x007F, 0x0080, 0x0081, 0x1F80, 0x2000, 0x3F80,
                                                        0x3FFF, 0x5F80, 0x7F00, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0};
    VerilatedPe pe;
    const FlushScope flush;
    int checked = 0;
    for (const std::uint16_t a : kMagnitudes)
        for (const std::uint16_t w : kMagnitudes)
            for (const std::uint16_t p : kMagnitudes)
                for (const std::uint32_t low : {0x0000u, 0x0001u, 0x8000u, 0xFFFFu})
                    for (unsigned signs = 0; signs < 8; ++signs, ++checked) {
                        const PeCase c{(p | (signs & 4u) << 13) << 16 | low, static_cast<std::uint16_t>(a | (signs & 1u) << 15),
                                       static_cast<std::uint16_t>(w | (signs & 2u) << 14)};
                        pe.drive(c);
                        ASSERT_EQ(pe.bf16(), oracle_bf16(c.psum, c.act, c.weight))
                            << std::hex << "act " << c.act << ", weight " << c.weight << ", psum " << c.psum;
                    }
    EXPECT_EQ(checked, 15 * 15 * 15 * 4 * 8);
}

TEST(MxuPeBf16, AValueThatMeetsNoPeIsFlushedAndCanonical) {
    VerilatedPe pe;
    const std::array<std::array<std::uint32_t, 2>, 9> table{{{0x0000'0000, 0x0000'0000}, {0x8000'0000, 0x8000'0000},
        {0x007F'FFFF, 0x0000'0000}, {0x8000'0001, 0x8000'0000}, {0x0080'0000, 0x0080'0000}, {0x7F80'0000, 0x7F80'0000},
        {0xFF80'0001, 0x7FC0'0000}, {0xFFC0'0000, 0x7FC0'0000}, {0x4049'0FDB, 0x4049'0FDB}}};
    for (const auto& [value, expected] : table) {
        pe.drive({value, 0, 0});
        EXPECT_EQ(pe.canonical(), expected) << std::hex << value;
    }
}

}  // namespace
}  // namespace assay::test
