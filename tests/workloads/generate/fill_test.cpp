// Recipes of tensors: statistics, roundings and blocks, against plain definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "workloads/generate/fill.hpp"

namespace assay::workloads::generate {
namespace {

struct Moments {
    double mean = 0, variance = 0, largest = 0;
};
Moments moments(const Tensor& t) {
    Moments m;
    const auto values = t.as<float>();
    for (const float v : values) {
        m.mean += v;
        m.largest = std::max(m.largest, std::abs(static_cast<double>(v)));
    }
    m.mean /= static_cast<double>(values.size());
    for (const float v : values) m.variance += (v - m.mean) * (v - m.mean);
    m.variance /= static_cast<double>(values.size());
    return m;
}

TEST(Fill, NormalHasItsMeanAndDeviation) {
    const Moments m = moments(produce({"n", DType::f32, {1000, 3000}, Fill::normal(0.5, 2)}, 1));
    EXPECT_NEAR(m.mean, 0.5, 0.01);  // eight standard errors
    EXPECT_NEAR(m.variance, 4, 0.03);
    EXPECT_LT(m.largest, 0.5 + 2 * 3.47);
}

TEST(Fill, CentredRowsSumToZeroAndKeepTheirDeviation) {
    const std::int64_t row = 147;  // no divisor of a block: rows must not be cut
    const Tensor t = produce({"c", DType::f32, {20000, row}, Fill::centred(0.1, row)}, 1);
    for (std::int64_t r = 0; r < 20000; ++r) {
        double sum = 0;
        for (std::int64_t i = 0; i < row; ++i) sum += t.value(r * row + i);
        ASSERT_NEAR(sum, 0, 1e-5) << "row " << r;
    }
    EXPECT_NEAR(moments(t).variance, 0.01 * (1 - 1.0 / row), 1e-4);
}

TEST(Fill, ImagesAreSmoothWithMeanZeroAndVarianceOne) {
    const Tensor t = produce({"i", DType::f32, {16, 3, 96, 96}, Fill::image()}, 1);
    const Moments m = moments(t);
    EXPECT_NEAR(m.mean, 0, 0.05);
    EXPECT_NEAR(m.variance, 1, 0.1);
    double product = 0;
    for (std::int64_t i = 0; i + 1 < t.count(); ++i) product += t.value(i) * t.value(i + 1);
    EXPECT_GT(product / static_cast<double>(t.count()), 0.2) << "neighbours of a photograph are alike";
}

TEST(Fill, IntegersCoverTheirRangeAndStayInIt) {
    const Tensor t = produce({"ids", DType::i64, {1000}, Fill::integers(5, 14)}, 1);
    std::vector<int> seen(10);
    for (const std::int64_t v : t.as<std::int64_t>()) {
        ASSERT_GE(v, 5);
        ASSERT_LE(v, 14);
        ++seen[static_cast<std::size_t>(v - 5)];
    }
    for (const int count : seen) EXPECT_GT(count, 50);
}

TEST(Fill, ValuesDependOnSeedNameAndIndexAlone) {
    const TensorRecipe recipe{"w", DType::f32, {3 << 20}, Fill::normal(0, 1)};
    const Tensor whole = produce(recipe, 7);
    TensorRecipe shorter = recipe;
    shorter.shape = {1000};
    EXPECT_EQ(std::memcmp(produce(shorter, 7).bytes.data(), whole.bytes.data(), 4000), 0) << "a prefix is the same whatever the length";
    EXPECT_NE(produce(shorter, 8), produce(shorter, 7));
    const TensorRecipe other{"other", DType::f32, {1000}, Fill::normal(0, 1)};
    EXPECT_NE(produce(other, 7).bytes, produce(shorter, 7).bytes);
}

TEST(Fill, QuantisedWeightsAreTheFloatOnesRoundedByTheirChannel) {
    const TensorRecipe recipe{"q", DType::f32, {8, 5, 3}, Fill::normal(0, 1)};
    for (const int axis : {0, 1, 2}) {
        const std::vector<float> largest = channel_magnitudes(recipe, 3, axis);
        ASSERT_EQ(static_cast<std::int64_t>(largest.size()), recipe.shape[static_cast<std::size_t>(axis)]);
        WeightScales scales{axis, largest};
        for (float& s : scales.scales) s /= 127;
        TensorRecipe narrow = recipe;
        narrow.type = DType::i8;
        narrow.quantised = scales;
        const Tensor floats = produce(recipe, 3), bytes = produce(narrow, 3);
        int extremes = 0;
        for (std::int64_t i = 0; i < 120; ++i) {
            const std::int64_t channel = axis == 0 ? i / 15 : axis == 1 ? i / 3 % 5 : i % 3;
            const double exact = floats.value(i) / scales.scales[static_cast<std::size_t>(channel)];
            ASSERT_LE(std::abs(bytes.value(i) - exact), 0.5 + 1e-5) << "axis " << axis << ", element " << i;
            extremes += std::abs(bytes.value(i)) == 127;
        }
        EXPECT_GE(extremes, static_cast<int>(largest.size())) << "each channel uses its whole range";
    }
}

/// Value of a binary16 pattern, by IEEE 754-2019 §3.4.
double half_value(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Fill, HalfRoundsToNearestEvenOverItsWholeRange) {
    int checked = 0;
    for (std::uint16_t h = 0; h < 0x7bff; ++h, ++checked) {
        const double low = half_value(h), high = half_value(static_cast<std::uint16_t>(h + 1)), middle = (low + high) / 2;
        const auto m = static_cast<float>(middle);
        ASSERT_EQ(m, middle);
        ASSERT_EQ(half_bits(static_cast<float>(low)), h);
        ASSERT_EQ(half_bits(static_cast<float>(-low)), h | 0x8000);
        ASSERT_EQ(half_bits(m), h % 2 == 0 ? h : h + 1) << "tie above pattern " << h;
        ASSERT_EQ(half_bits(std::nextafter(m, 0.0f)), h) << "below the tie above " << h;
        ASSERT_EQ(half_bits(std::nextafter(m, 1e9f)), h + 1) << "past the tie above " << h;
    }
    EXPECT_EQ(checked, 0x7bff);
    EXPECT_EQ(half_bits(65504.0f), 0x7bff);
    EXPECT_EQ(half_bits(65519.99f), 0x7bff);
    EXPECT_EQ(half_bits(65520.0f), 0x7c00);
    EXPECT_EQ(half_bits(1e30f), 0x7c00);
}

TEST(Fill, Bfloat16RoundsToNearestEven) {
    EXPECT_EQ(bfloat16_bits(1.0f), 0x3f80);
    EXPECT_EQ(bfloat16_bits(1.00390625f), 0x3f80);  // a tie below an even pattern: 1 + 2^-8
    EXPECT_EQ(bfloat16_bits(1.01171875f), 0x3f82);  // 1 + 3·2^-8: a tie below an odd one
    EXPECT_EQ(bfloat16_bits(-1.0045f), 0xbf81);
}

}  // namespace
}  // namespace assay::workloads::generate
