// Golden's roundings and accumulation against independent statements of the same rules.
#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "golden/emulation/chain.hpp"
#include "golden/emulation/rounding.hpp"

namespace assay::golden {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Rounding, Bf16TakesTheExamplesOfTheNumericsPage) {
    EXPECT_EQ(encode_bf16(from_bits(0x3F808000)), 0x3F80);  // tie to even
    EXPECT_EQ(encode_bf16(from_bits(0x3F818000)), 0x3F82);  // tie to even
    EXPECT_EQ(encode_bf16(from_bits(0x3F808001)), 0x3F81);
    EXPECT_EQ(encode_bf16(from_bits(0x7F7F8000)), 0x7F80);  // overflow to infinity
    EXPECT_EQ(encode_bf16(std::nan("")), 0x7FC0);
    EXPECT_EQ(encode_bf16(-0.0), 0x8000);
}

TEST(Rounding, Bf16AgreesWithRoundingTheBitsOnRandomFloatsAndEveryUpperHalf) {
    std::mt19937 engine(1);
    int checked = 0;
    for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
        for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, static_cast<std::uint32_t>(engine()) & 0xffffu}) {
            const std::uint32_t bits = upper << 16 | lower;
            const float x = from_bits(bits);
            if (std::isnan(x) || std::fabs(x) < 0x1p-126f) continue;  // subnormals are flushed: next test
            // The classic integer form of round to nearest even on the upper half.
            const std::uint32_t want = std::isinf(x) ? upper : (bits + 0x7fff + (upper & 1)) >> 16;
            ASSERT_EQ(encode_bf16(x), want) << std::hex << bits;
            ASSERT_EQ(round_bf16(x), static_cast<double>(from_bits(want << 16))) << std::hex << bits;
            ++checked;
        }
    EXPECT_GT(checked, 400000);
}

TEST(Rounding, Fp32FlushesAfterRoundingWithUnboundedExponent) {
    EXPECT_EQ(round_f32(0x1p-126 - 0x1p-151), 0x1p-126) << "the tie rounds to the smallest normal and stays";
    EXPECT_EQ(round_f32(std::nextafter(0x1p-126 - 0x1p-151, 0)), 0.0);
    EXPECT_TRUE(std::signbit(round_f32(-0x1p-140)));
    EXPECT_EQ(round_f32(0x1p127 * 2), HUGE_VAL);
    EXPECT_EQ(round_f32(1 + 0x1p-24), 1.0) << "tie to even";
    EXPECT_EQ(round_bf16(0x1p-130), 0.0);
}

TEST(Rounding, HalfPrecisionCoversSubnormalsAndOverflow) {
    EXPECT_EQ(encode_f16(1.0), 0x3C00);
    EXPECT_EQ(encode_f16(65504), 0x7BFF);
    EXPECT_EQ(encode_f16(65520), 0x7C00);
    EXPECT_EQ(encode_f16(0x1p-24), 0x0001);
    EXPECT_EQ(encode_f16(0x1p-25), 0x0000) << "tie to even";
    EXPECT_EQ(encode_f16(0x1p-14 - 0x1p-25), 0x0400) << "a carry runs into the exponent";
    EXPECT_EQ(encode_f16(-2.5), 0xC100);
}

TEST(Rounding, GridsTakeTheTiesAndEndsOfTheirFormats) {
    EXPECT_EQ(round_to_grid(kGridF16, 65519), 65504.0);
    EXPECT_EQ(round_to_grid(kGridF16, 65520), HUGE_VAL) << "a tie to the even pattern, which is infinity";
    EXPECT_EQ(round_to_grid(kGridF16, 0x1p-25), 0.0) << "tie to even";
    EXPECT_EQ(round_to_grid(kGridF16, 0x1.8p-24), 0x1p-23) << "tie to even among subnormals";
    EXPECT_EQ(round_to_grid(kGridF16, 0x1p-14 - 0x1p-25), 0x1p-14) << "a subnormal rounds up to the least normal";
    EXPECT_EQ(round_to_grid(kGridF8E4M3, 464), 448.0);
    EXPECT_EQ(round_to_grid(kGridF8E4M3, -1e30), -448.0);
    EXPECT_EQ(round_to_grid(kGridF8E4M3, 0x1p-10), 0.0) << "half of the least subnormal";
    EXPECT_EQ(round_to_grid(kGridF8E4M3, 0x1.8p-9), 0x1p-8);
    EXPECT_EQ(round_to_grid(kGridF8E5M2, HUGE_VAL), 57344.0);
    EXPECT_EQ(round_to_grid(kGridF8E5M2, 1.125), 1.0) << "tie to even";
    EXPECT_EQ(round_to_grid(kGridF8E5M2, 1.375), 1.5) << "tie to even";
    EXPECT_TRUE(std::signbit(round_to_grid(kGridF8E5M2, -0x1p-40)));
    EXPECT_TRUE(std::isnan(round_to_grid(kGridF8E4M3, std::nan(""))));
}

TEST(Rounding, HalfPrecisionGridAgreesWithTheEncoderOnDirectedRandomFloats) {
    std::mt19937 engine(9);
    for (int i = 0; i < 300000; ++i) {
        const double x = std::ldexp(1 + static_cast<double>(engine() & 0x7fffff) * 0x1p-23, static_cast<int>(engine() % 48) - 30);
        const double q = round_to_grid(kGridF16, x);
        ASSERT_EQ(encode_f16(q), encode_f16(x)) << x;
        if (std::isfinite(q)) ASSERT_EQ(round_to_grid(kGridF16, q), q) << x;
    }
}

TEST(Rounding, ScalesBringTheLargestMagnitudeJustIntoTheGrid) {
    EXPECT_EQ(operand_scale(kGridF8E4M3, 448), 1.0);
    EXPECT_EQ(operand_scale(kGridF8E4M3, 449), 2.0);
    EXPECT_EQ(operand_scale(kGridF8E4M3, 224), 0.5);
    EXPECT_EQ(operand_scale(kGridF8E5M2, 57344), 1.0);
    EXPECT_EQ(operand_scale(kGridF8E5M2, 1), 0x1p-15);
    EXPECT_EQ(operand_scale(kGridF8E4M3, 0), 1.0);
    EXPECT_EQ(operand_scale(kGridF8E4M3, HUGE_VAL), 1.0);
    EXPECT_EQ(operand_scale(kGridF8E4M3, 0x1p-120), 0x1p-100);
}

TEST(Rounding, ThreePartsAddUpToTheValueExactly) {
    std::mt19937 engine(2);
    for (int i = 0; i < 100000; ++i) {
        // Exponents at which the third part is still normal.
        const float x = std::ldexp(1 + static_cast<float>(engine() & 0x7fffff) * 0x1p-23f, static_cast<int>(engine() % 200) - 90);
        const auto p = split_bf16(x);
        ASSERT_EQ(p[0] + p[1] + p[2], static_cast<double>(x)) << x;
        for (const double part : p) ASSERT_EQ(part, round_bf16(part));
        ASSERT_LE(std::fabs(p[1]), std::fabs(static_cast<double>(x)) * 0x1p-8);
        ASSERT_LE(std::fabs(p[2]), std::fabs(static_cast<double>(x)) * 0x1p-16);
    }
}

TEST(Chain, IsASequenceOfHostFusedMultiplyAddsOnBf16Operands) {
    std::mt19937 engine(3);
    for (int round = 0; round < 200; ++round) {
        const ChainShape shape{2, 40, 3};
        std::vector<double> a(80), b(120);
        // Wide exponents, so that terms lie far apart and the double sum must not round twice.
        const auto any = [&] {
            return round_bf16(std::ldexp(static_cast<double>(engine()) / 0x1p31 - 1, static_cast<int>(engine() % 80) - 40));
        };
        for (double& v : a) v = any();
        for (double& v : b) v = any();
        const auto got = chain_bf16(shape, a.data(), b.data());
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 3; ++n) {
                float acc = 0;
                for (int k = 0; k < 40; ++k)
                    acc = std::fma(static_cast<float>(a[static_cast<std::size_t>(m * 40 + k)]),
                                   static_cast<float>(b[static_cast<std::size_t>(k * 3 + n)]), acc);
                ASSERT_EQ(got[static_cast<std::size_t>(m * 3 + n)], static_cast<double>(acc))
                    << "round " << round << " m " << m << " n " << n;
            }
    }
}

/// The panels' host FMA against the plain statement of the rule, over exponents at which sums and parts become subnormal, and over none.
TEST(Chain, PanelsAgreeWithThePlainChainToTheBit) {
    std::mt19937 engine(5);
    int checked = 0, zeros = 0;
    for (const int centre : {0, -20, -52, -60, -75})
        for (const bool weight : {false, true})
            for (const long n : {1L, 16L, 37L}) {
                const ChainShape shape{5, 70, n};
                const auto any = [&](std::size_t count) {
                    std::vector<double> out(count);
                    for (double& v : out) {
                        v = static_cast<float>(std::ldexp(static_cast<double>(engine()) / 0x1p31 - 1, static_cast<int>(engine() % 16) - 8 + centre));
                        if (engine() % 4 == 0) v = 0;
                    }
                    return out;
                };
                const auto a = any(5 * 70), b = any(static_cast<std::size_t>(70 * n));
                const auto part = [](const std::vector<double>& x, std::size_t p) {
                    std::vector<double> out;
                    for (const double v : x) out.push_back(split_bf16(round_f32(v))[p]);
                    return out;
                };
                std::vector<double> want(static_cast<std::size_t>(5 * n), 0.0), want_bf16 = want;
                for (const auto& [activation, other] : {std::pair{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}})
                    chain(shape, part(a, static_cast<std::size_t>(weight ? other : activation)).data(),
                          part(b, static_cast<std::size_t>(weight ? activation : other)).data(), want.data());
                chain(shape, part(a, 0).data(), part(b, 0).data(), want_bf16.data());
                const auto got = chain_bf16x3(shape, a.data(), b.data(), weight), got_bf16 = chain_bf16(shape, a.data(), b.data());
                for (std::size_t i = 0; i < want.size(); ++i, ++checked) {
                    ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i]), std::bit_cast<std::uint64_t>(want[i])) << "around 2^" << centre << " at " << i;
                    ASSERT_EQ(std::bit_cast<std::uint64_t>(got_bf16[i]), std::bit_cast<std::uint64_t>(want_bf16[i])) << "around 2^" << centre;
                    zeros += want[i] == 0;
                }
            }
    EXPECT_EQ(checked, 5 * 2 * 5 * (1 + 16 + 37));
    EXPECT_GT(zeros, 50) << "some sums must have been flushed";
}

TEST(Chain, RoundsOnceWhereMultiplyThenAddWouldOverflow) {
    const double a[] = {0x1p127, 0x1p127}, b[] = {-1, 2};
    double acc = 0;
    chain({1, 2, 1}, a, b, &acc);
    EXPECT_EQ(acc, 0x1p127) << "2^127 * 2 - 2^127";
}

TEST(Chain, ThreeWaySplitKeepsFp32GradeError) {
    std::mt19937 engine(4);
    const ChainShape shape{1, 500, 1};
    std::vector<double> a(500), b(500);
    for (double& v : a) v = static_cast<float>(engine()) * 0x1p-31f - 1;
    for (double& v : b) v = static_cast<float>(engine()) * 0x1p-31f - 1;
    double exact = 0, sum_abs = 0;
    for (std::size_t k = 0; k < 500; ++k) {
        exact += a[k] * b[k];
        sum_abs += std::fabs(a[k] * b[k]);
    }
    EXPECT_LE(std::fabs(chain_bf16x3(shape, a.data(), b.data(), false)[0] - exact), 30 * 0x1p-24 * sum_abs);
    EXPECT_GE(std::fabs(chain_bf16(shape, a.data(), b.data())[0] - exact), 0x1p-20 * sum_abs) << "one bf16 rounding shows";
    // Swapping the roles swaps the order of passes and of nothing else: the same for equal operands.
    EXPECT_EQ(chain_bf16x3(shape, a.data(), a.data(), false), chain_bf16x3(shape, a.data(), a.data(), true));
}

}  // namespace
}  // namespace assay::golden
