#include "support/tensor.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include <gtest/gtest.h>

#include "support/error.hpp"

namespace assay {
namespace {

template <class T>
Tensor one(DType type, T value) {
    return make_tensor<T>(type, {}, std::array<T, 1>{value});
}

constexpr std::array kAllTypes{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::u8,     DType::i16,
                               DType::u16, DType::i32, DType::u32, DType::i64,  DType::u64, DType::boolean};

TEST(Tensor, EveryTypeHasASizeANameAndStartsAtZero) {
    const std::array<std::size_t, kAllTypes.size()> sizes{4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};
    const std::array<std::string_view, kAllTypes.size()> names{"float32", "float64", "float16", "bfloat16", "int8",   "uint8", "int16",
                                                               "uint16",  "int32",   "uint32",  "int64",    "uint64", "bool"};
    for (std::size_t i = 0; i < kAllTypes.size(); ++i) {
        const Tensor t(kAllTypes[i], {2, 3});
        EXPECT_EQ(size_of(kAllTypes[i]), sizes[i]) << names[i];
        EXPECT_EQ(name_of(kAllTypes[i]), names[i]);
        EXPECT_EQ(t.bytes.size(), 6 * sizes[i]) << names[i];
        EXPECT_EQ(is_float(kAllTypes[i]), i < 4) << names[i];
        for (int e = 0; e < 6; ++e) EXPECT_EQ(t.value(e), 0.0) << names[i];
    }
}

TEST(Tensor, IntegersReadAtBothEndsOfTheirRange) {
    const auto check = [](DType type, auto zero) {
        using T = decltype(zero);
        for (const T value : {std::numeric_limits<T>::min(), T{0}, T{1}, std::numeric_limits<T>::max()}) {
            const Tensor t = one<T>(type, value);
            EXPECT_EQ(t.integer(0), static_cast<std::int64_t>(value)) << name_of(type);
            EXPECT_EQ(t.value(0), static_cast<double>(value)) << name_of(type);
        }
    };
    check(DType::i8, std::int8_t{});
    check(DType::u8, std::uint8_t{});
    check(DType::i16, std::int16_t{});
    check(DType::u16, std::uint16_t{});
    check(DType::i32, std::int32_t{});
    check(DType::u32, std::uint32_t{});
    check(DType::i64, std::int64_t{});
    check(DType::u64, std::uint64_t{});
    EXPECT_EQ(one<std::uint8_t>(DType::boolean, 0).integer(0), 0);
    EXPECT_EQ(one<std::uint8_t>(DType::boolean, 7).integer(0), 1) << "any non-zero byte is true";
}

TEST(Tensor, FloatsReadTheirValueAndTruncateToIntegers) {
    EXPECT_EQ(one(DType::f32, -2.75f).value(0), -2.75);
    EXPECT_EQ(one(DType::f32, -2.75f).integer(0), -2);
    EXPECT_EQ(one(DType::f64, 1e300).value(0), 1e300);
    EXPECT_EQ(one(DType::f64, 3.99).integer(0), 3);
    EXPECT_TRUE(std::isnan(one(DType::f32, std::nanf("")).value(0)));
}

/// Integers hold no NaN and no infinity: such floats read as 0 and as the nearest bound, never as whatever the host's cast gives.
TEST(Tensor, FloatsOutsideTheIntegersReadAsTheNearestBound) {
    EXPECT_EQ(one(DType::f32, std::nanf("")).integer(0), 0);
    EXPECT_EQ(one(DType::f32, 1e30f).integer(0), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(one(DType::f64, -HUGE_VAL).integer(0), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(one(DType::f64, 9223372036854775808.0).integer(0), std::numeric_limits<std::int64_t>::max());
}

/// All 65,536 patterns against their definition (IEEE 754-2019 §3.4), worked out here from sign, exponent and fraction.
TEST(Tensor, EveryHalfAndEveryBfloat16ReadsAsDefined) {
    const auto defined = [](unsigned bits, int fraction_bits, int bias) {
        const int exponent_bits = 15 - fraction_bits;
        const int all_ones = (1 << exponent_bits) - 1;
        const int exponent = static_cast<int>(bits >> fraction_bits) & all_ones;
        const double fraction = static_cast<double>(bits & ((1u << fraction_bits) - 1)) / (1 << fraction_bits);
        const double sign = bits & 0x8000 ? -1.0 : 1.0;
        if (exponent == all_ones) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
        return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
    };
    for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
        const auto pattern = static_cast<std::uint16_t>(bits);
        for (const auto& [type, fraction_bits, bias] : {std::tuple{DType::f16, 10, 15}, std::tuple{DType::bf16, 7, 127}}) {
            const double want = defined(bits, fraction_bits, bias);
            const double got = one(type, pattern).value(0);
            if (std::isnan(want)) ASSERT_TRUE(std::isnan(got)) << name_of(type) << " " << bits;
            else ASSERT_TRUE(got == want && std::signbit(got) == std::signbit(want)) << name_of(type) << " " << bits << ": " << got;
        }
    }
}

TEST(Tensor, CountsScalarsEmptyAndOrdinaryShapes) {
    EXPECT_EQ(element_count({}), 1);
    EXPECT_EQ(element_count({0}), 0);
    EXPECT_EQ(element_count({3, 0, 5}), 0);
    EXPECT_EQ(element_count({2, 3, 4}), 24);
    EXPECT_EQ(to_string(Shape{}), "scalar");
    EXPECT_EQ(to_string(Shape{1, 3, 224, 224}), "1x3x224x224");
}

TEST(Tensor, ShapesThatOverflowOrAreNegativeAreRefused) {
    constexpr std::int64_t big = std::int64_t{1} << 32;
    for (const Shape& shape : {Shape{-1}, Shape{2, -3}, Shape{big, big}, Shape{INT64_MAX, 2}, Shape{big, big, 0}, Shape{INT64_MAX}}) {
        EXPECT_THROW(element_count(shape), Error) << to_string(shape);
        EXPECT_THROW(Tensor(DType::i8, shape), Error) << to_string(shape);
    }
    EXPECT_EQ(element_count({std::int64_t{1} << 62}), std::int64_t{1} << 62);
    EXPECT_THROW(Tensor(DType::f64, {std::int64_t{1} << 40}), Error) << "refused before memory is asked for";
}

}  // namespace
}  // namespace assay
