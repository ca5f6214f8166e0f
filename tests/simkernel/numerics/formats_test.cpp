// Formats and the multiply-add against independent oracles.
#include "simkernel/numerics/formats.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "oracle.hpp"
#include "samples.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel::test {
namespace {

TEST(Formats, EveryBf16ReadsAsItsValueWithSubnormalsAndNansCanonical) {
    int checked = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits, ++checked) {
        const std::uint32_t read = f32_from_bf16(static_cast<std::uint16_t>(bits));
        const std::uint32_t exponent = bits >> 7 & 255u, fraction = bits & 127u;
        if (exponent == 255 && fraction != 0) {
            EXPECT_EQ(read, 0x7FC00000u) << bits;
        } else if (exponent == 0) {
            EXPECT_EQ(read, bits >> 15 << 31) << bits;
        } else if (exponent < 255) {
            const double value = std::ldexp(128.0 + fraction, static_cast<int>(exponent) - 134) * (bits >> 15 ? -1 : 1);
            EXPECT_EQ(std::bit_cast<float>(read), value) << bits;
        }
        EXPECT_EQ(bf16_from_f32(read), exponent == 255 && fraction ? 0x7FC0u : exponent == 0 ? bits & 0x8000u : bits) << "round trip of " << bits;
    }
    EXPECT_EQ(checked, 65536);
}

TEST(Formats, Bf16ConversionRoundsEveryTieToEvenAndItsNeighboursToTheNearest) {
    int checked = 0;
    for (std::uint32_t high = 0x0080; high < 0x7F80; ++high)  // every positive normal bf16
        for (const std::uint32_t sign : {0u, 0x8000u}) {
            const std::uint32_t bits = (high | sign) << 16;
            EXPECT_EQ(bf16_from_f32(bits | 0x7FFF), high | sign);
            EXPECT_EQ(bf16_from_f32(bits | 0x8000), (high + (high & 1u)) | sign);
            EXPECT_EQ(bf16_from_f32(bits | 0x8001), (high + 1) | sign);  // 0x7F7F + 1 is infinity
            EXPECT_EQ(bf16_from_f32(bits | 0xFFFF), (high + 1) | sign);
            ++checked;
        }
    EXPECT_EQ(checked, 2 * 0x7F00);
}

TEST(Formats, RoundingFlushesOnlyBelowTheTieUnderTheLeastNormal) {
    EXPECT_EQ(round_to_f32(0x1p-126), 0x00800000u);
    EXPECT_EQ(round_to_f32(0x1.ffffffp-127), 0x00800000u) << "the tie goes to the even 2^-126";
    EXPECT_EQ(round_to_f32(std::nextafter(0x1.ffffffp-127, 0.0)), 0u);
    EXPECT_EQ(round_to_f32(-0x1.fffffep-127), 0x80000000u) << "exact in 24 bits but tiny";
    EXPECT_EQ(round_to_f32(0x1.ffffffp127), 0x7F800000u);
    EXPECT_EQ(round_to_f32(std::nextafter(0x1.ffffffp127, 0.0)), 0x7F7FFFFFu);
}

TEST(Fma, TheOraclesAgreeWithEachOtherOnEveryTripleOfCorners) {
    if (!has_host_fma()) GTEST_SKIP() << "this host has no FMA instruction";
    const auto corners = corner_f32();
    for (const auto a : corners)
        for (const auto b : corners)
            for (const auto c : corners) ASSERT_EQ(exact_fma(a, b, c), host_fma(a, b, c)) << std::hex << a << " * " << b << " + " << c;
}

TEST(Fma, EqualsTheExactOracleOnEveryTripleOfCornersInBothModesOfTheHost) {
    const auto corners = corner_f32();
    std::size_t checked = 0;
    for (const bool flush_mode : {false, true})
        for (const auto a : corners)
            for (const auto b : corners)
                for (const auto c : corners) {
                    std::uint32_t got = 0;
                    if (flush_mode) {
                        const FtzScope ftz;
                        got = fma32(a, b, c);
                    } else {
                        got = fma32(a, b, c);
                    }
                    ASSERT_EQ(got, exact_fma(a, b, c)) << std::hex << a << " * " << b << " + " << c << (flush_mode ? " under FTZ" : "");
                    ++checked;
                }
    EXPECT_EQ(checked, 2 * corners.size() * corners.size() * corners.size());
}

TEST(Fma, EqualsTheExactOracleOnDirectedRandomOperands) {
    Rng rng(20261130);
    for (int i = 0; i < 1'000'000; ++i) {
        const std::uint32_t a = directed_f32(rng), b = directed_f32(rng);
        std::uint32_t c = directed_f32(rng);
        if (i % 2 != 0) c = fma32(a, b, 0) ^ 0x80000000u ^ (rng() & 3u);  // all but cancels the product
        ASSERT_EQ(fma32(a, b, c), exact_fma(a, b, c)) << std::hex << a << " * " << b << " + " << c;
        if (has_host_fma()) {
            ASSERT_EQ(fma32(a, b, c), host_fma(a, b, c)) << std::hex << a << " * " << b << " + " << c;
        }
    }
}

TEST(Fma, IsNotAMultiplicationThenAnAddition) {
    EXPECT_EQ(fma32(0x7F000000u, 0x40000000u, 0xFF000000u), 0x7F000000u) << "2^127 * 2 - 2^127";
    EXPECT_EQ(fma32(0x00800000u, 0x3F000000u, 0x00800000u), 0x00C00000u) << "a product of 2^-127 inside the sum is not flushed";
}

TEST(Fma, KeepsTheSignsOfZero) {
    EXPECT_EQ(fma32(0x80000000u, 0x3F800000u, 0x80000000u), 0x80000000u);
    EXPECT_EQ(fma32(0x80000000u, 0x3F800000u, 0x00000000u), 0x00000000u);
    EXPECT_EQ(fma32(0x3F800000u, 0x3F800000u, 0xBF800000u), 0x00000000u);
    EXPECT_EQ(fma32(0x00000001u, 0x7F800000u, 0x3F800000u), 0x7FC00000u) << "a subnormal is a zero, and zero times infinity is NaN";
}

}  // namespace
}  // namespace assay::simkernel::test
