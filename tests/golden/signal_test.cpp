// DFT, STFT, windows and mel weights against their formulas, and quantisation by blocks and by range against plain loops.
#include <cmath>
#include <complex>
#include <numbers>

#include <gtest/gtest.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;
using std::numbers::pi;

Tensor scalar(std::int64_t v) { return testing::tensor<std::int64_t>(DType::i64, {}, {v}); }

/// The k-th value of the definition's sum, in T; x holds real and imaginary parts.
template <class T>
std::complex<T> bin(const std::vector<std::complex<double>>& x, std::int64_t k, double sign) {
    std::complex<T> sum = 0;
    const auto n = static_cast<double>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double angle = sign * 2 * pi * static_cast<double>(k) * static_cast<double>(i) / n;
        sum += std::complex<T>(static_cast<T>(x[i].real()), static_cast<T>(x[i].imag())) * std::complex<T>(static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle)));
    }
    return sum;
}

TEST(Dft, IsItsDefiningSumAtEveryLength) {
    int checked = 0;
    for (const std::int64_t length : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 21, 32, 35})
        for (const bool inverse : {false, true})
            for (const std::int64_t parts : {1, 2}) {
                SCOPED_TRACE(std::to_string(length) + (inverse ? " inverse " : " ") + std::to_string(parts));
                const Tensor x = random_floats({2, length, 3, parts}, static_cast<unsigned>(length));
                const Reference reference(ModelBuilder(17).input("x", DType::f32, x.shape).node("DFT", {"x"}, "y").integer("inverse", inverse).integer("axis", 1).output("y").build());
                const Value y = reference.evaluate("y", {{"x", x}}, {"fp32", 0});
                ASSERT_EQ(y.shape, (Shape{2, length, 3, 2}));
                for (std::int64_t line = 0; line < 6; ++line) {
                    std::vector<std::complex<double>> in;
                    const auto place = [&](std::int64_t k) { return (line / 3 * length + k) * 3 + line % 3; };
                    for (std::int64_t i = 0; i < length; ++i) in.emplace_back(x.value(place(i) * parts), parts == 2 ? x.value(place(i) * parts + 1) : 0.0);
                    for (std::int64_t k = 0; k < length; ++k, ++checked) {
                        const double over = inverse ? static_cast<double>(length) : 1.0;
                        const auto want = bin<double>(in, k, inverse ? 1 : -1) / over;
                        const auto narrow = bin<float>(in, k, inverse ? 1 : -1) / static_cast<float>(over);
                        EXPECT_NEAR(y.at(2 * place(k)), want.real(), 1e-12);
                        EXPECT_NEAR(y.at(2 * place(k) + 1), want.imag(), 1e-12);
                        EXPECT_LE(std::fabs(static_cast<double>(narrow.real()) - want.real()), y.error(2 * place(k)));
                        EXPECT_LE(std::fabs(static_cast<double>(narrow.imag()) - want.imag()), y.error(2 * place(k) + 1));
                        EXPECT_LT(y.error(2 * place(k)), 2e-4);
                    }
                }
            }
    EXPECT_GT(checked, 1000);
}

TEST(Dft, OneSidedRoundTripGivesTheSignalBack) {
    for (const std::int64_t length : {6, 8, 10}) {
        const Tensor x = random_floats({1, length, 1}, 3);
        const auto model = ModelBuilder(20).input("x", DType::f32, x.shape).node("DFT", {"x"}, "half").integer("onesided", 1)
                               .node("DFT", {"half"}, "y").integer("onesided", 1).integer("inverse", 1).output("half").output("y").build();
        const Values values = Reference(model).run({{"x", x}});
        EXPECT_EQ(values.at("half").shape, (Shape{1, length / 2 + 1, 2}));
        ASSERT_EQ(values.at("y").shape, x.shape);
        for (std::int64_t i = 0; i < length; ++i) EXPECT_NEAR(values.at("y").at(i), x.value(i), 1e-12);
    }
    // Padded and cut to dft_length, along another axis.
    const Tensor x = random_floats({5, 2, 1}, 4);
    for (const std::int64_t length : {3, 8}) {
        const auto model = ModelBuilder(20).input("x", DType::f32, x.shape).constant("n", scalar(length)).constant("axis", scalar(0)).node("DFT", {"x", "n", "axis"}, "y").output("y").build();
        const Value y = Reference(model).run({{"x", x}}).at("y");
        ASSERT_EQ(y.shape, (Shape{length, 2, 2}));
        std::vector<std::complex<double>> in;
        for (std::int64_t i = 0; i < length; ++i) in.emplace_back(i < 5 ? x.value(i * 2 + 1) : 0.0);
        for (std::int64_t k = 0; k < length; ++k) EXPECT_NEAR(y.at((k * 2 + 1) * 2 + 1), bin<double>(in, k, -1).imag(), 1e-12);
    }
    const auto complex = ModelBuilder(17).input("x", DType::f32, {1, 4, 2}).node("DFT", {"x"}, "y").integer("onesided", 1).output("y").build();
    EXPECT_THROW(Reference(complex).run({{"x", Tensor(DType::f32, {1, 4, 2})}}), Error) << "half of a spectrum without symmetry";
}

TEST(Stft, TransformsEachWindowedFrame) {
    const Tensor x = random_floats({2, 20, 1}, 5), window = random_floats({6}, 6, 0, 1);
    for (const bool onesided : {true, false}) {
        const Reference reference(ModelBuilder(17).input("x", DType::f32, x.shape).constant("step", scalar(4)).constant("w", window).node("STFT", {"x", "step", "w"}, "y").integer("onesided", onesided).output("y").build());
        const Value y = reference.evaluate("y", {{"x", x}}, {"fp32", 0});
        const std::int64_t bins = onesided ? 4 : 6;
        ASSERT_EQ(y.shape, (Shape{2, 4, bins, 2}));
        for (std::int64_t n = 0; n < 8; ++n) {
            std::vector<std::complex<double>> in;
            for (std::int64_t i = 0; i < 6; ++i) in.emplace_back(x.value(n / 4 * 20 + n % 4 * 4 + i) * window.value(i));
            for (std::int64_t k = 0; k < bins; ++k) {
                EXPECT_NEAR(y.at((n * bins + k) * 2), bin<double>(in, k, -1).real(), 1e-12);
                EXPECT_NEAR(y.at((n * bins + k) * 2 + 1), bin<double>(in, k, -1).imag(), 1e-12);
                EXPECT_LE(std::fabs(static_cast<double>(bin<float>(in, k, -1).real()) - bin<double>(in, k, -1).real()), y.error((n * bins + k) * 2));
            }
        }
    }
}

/// In sines of half the angle, where the operators' definitions have cosines.
double window_value(const std::string& op, double n, double period) {
    const double s = std::pow(std::sin(pi * n / period), 2);
    if (op == "HannWindow") return s;
    if (op == "HammingWindow") return 4.0 / 46 + 42.0 / 46 * s;
    return 0.42 - 0.5 * (1 - 2 * s) + 0.08 * (2 * std::pow(1 - 2 * s, 2) - 1);
}

TEST(Windows, AreTheirFormulas) {
    for (const std::string op : {"HannWindow", "HammingWindow", "BlackmanWindow"})
        for (const bool periodic : {true, false})
            for (const std::int64_t size : {0, 1, 2, 9, 400}) {
                SCOPED_TRACE(op + " " + std::to_string(size));
                const Reference reference(ModelBuilder(17).input("size", DType::i64, {}).node(op, {"size"}, "y").integer("periodic", periodic).output("y").build());
                const Value y = reference.evaluate("y", {{"size", scalar(size)}}, {"fp32", 0});
                ASSERT_EQ(y.shape, Shape{size});
                for (std::int64_t i = 0; i < size; ++i) {
                    EXPECT_NEAR(y.at(i), window_value(op, static_cast<double>(i), static_cast<double>(periodic ? size : std::max<std::int64_t>(size - 1, 1))), 1e-12) << i;
                    EXPECT_TRUE(y.error(i) > 0 && y.error(i) < 2e-6) << y.error(i);
                }
            }
}

TEST(MelWeightMatrix, IsATriangleAColumnWithItsPeakAtOne) {
    const auto model = ModelBuilder(17).constant("mels", scalar(8)).constant("length", scalar(128)).constant("rate", scalar(8192)).constant("low", floats({}, {0}))
                           .constant("high", floats({}, {2500})).node("MelWeightMatrix", {"mels", "length", "rate", "low", "high"}, "y").output("y").build();
    const Value y = Reference(model).evaluate("y", {}, {"fp32", 0});
    ASSERT_EQ(y.shape, (Shape{65, 8}));
    const double top = 2595 * std::log10(1 + 2500.0 / 700);
    const auto corner = [&](int i) { return std::floor(129 * 700 * (std::pow(10, i * top / 10 / 2595) - 1) / 8192); };
    for (int m = 0; m < 8; ++m)
        for (int b = 0; b < 65; ++b) {
            const double left = corner(m), centre = corner(m + 1), right = corner(m + 2);
            double want = 0;  // the lower of two slopes
            if (b == centre) want = 1;
            else if (b >= left && b < centre) want = (b - left) / (centre - left);
            else if (b > centre && b < right) want = (right - b) / (right - centre);
            EXPECT_NEAR(y.at(b * 8 + m), want, 1e-12) << "bin " << b << ", mel " << m;
            EXPECT_LT(y.error(b * 8 + m), 1e-6);
        }
}

TEST(DynamicQuantizeLinear, IsItsFloatDefinition) {
    int checked = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        const float low = seed % 3 == 0 ? 0.5f : -static_cast<float>(seed), high = seed % 5 == 0 ? -0.25f : static_cast<float>(seed % 7) + 1;
        const Tensor x = random_floats({3, 50}, seed, std::min(low, high), std::max(low, high));
        float least = 0, most = 0;
        for (const float v : x.as<float>()) least = std::min(least, v), most = std::max(most, v);
        const float scale = (most - least) / 255.0f, zero = std::nearbyint(std::clamp(-least / scale, 0.0f, 255.0f));
        const auto model = ModelBuilder(11).input("x", DType::f32, x.shape).node("DynamicQuantizeLinear", {"x"}, "y").output("y", DType::u8).build();
        model->mutable_graph()->mutable_node(0)->add_output("s");
        model->mutable_graph()->mutable_node(0)->add_output("z");
        const Reference reference(model);
        const Value y = reference.evaluate("y", {{"x", x}}, {"fp32", 0}), s = reference.evaluate("s", {{"x", x}}, {"fp32", 0}), z = reference.evaluate("z", {{"x", x}}, {"fp32", 0});
        EXPECT_LE(std::fabs(s.at(0) - static_cast<double>(scale)), s.error(0));
        EXPECT_LT(s.error(0), 1e-6);
        EXPECT_LE(std::fabs(z.at(0) - static_cast<double>(zero)), z.error(0)) << seed;
        for (std::int64_t i = 0; i < x.count(); ++i, ++checked) {
            const float q = std::clamp(std::nearbyint(std::as_const(x).as<float>()[static_cast<std::size_t>(i)] / scale) + zero, 0.0f, 255.0f);
            EXPECT_LE(std::fabs(y.at(i) - static_cast<double>(q)), y.error(i)) << "seed " << seed << ", element " << i;
            EXPECT_LE(y.error(i), 2);
        }
    }
    EXPECT_EQ(checked, 40 * 150);
    const auto model = ModelBuilder(11).input("x", DType::f32, {4}).node("DynamicQuantizeLinear", {"x"}, "y").output("y", DType::u8).build();
    const Value zeros = Reference(model).run({{"x", Tensor(DType::f32, {4})}}).at("y");
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(zeros.at(i), 0) << "a range of 0";
}

TEST(Blocks, QuantiseAndDequantiseWithAScaleABlock) {
    // Axis 1 of 3 x 7 x 2 in blocks of 3: the last block is short.
    const Tensor x = random_floats({3, 7, 2}, 1, -20, 20), scale = random_floats({3, 3, 2}, 2, 0.1f, 0.4f);
    Tensor zero = testing::random_int8({3, 3, 2}, 3);
    for (auto& z : zero.as<std::int8_t>()) z = static_cast<std::int8_t>(z / 4);
    const auto model = ModelBuilder(21).input("x", DType::f32, x.shape).constant("s", scale).constant("z", zero).node("QuantizeLinear", {"x", "s", "z"}, "q").integer("axis", 1).integer("block_size", 3)
                           .node("DequantizeLinear", {"q", "s", "z"}, "y").integer("axis", 1).integer("block_size", 3).output("q", DType::i8).output("y").build();
    const Values values = Reference(model).run({{"x", x}});
    int inside = 0;
    for (std::int64_t a = 0; a < 3; ++a)
        for (std::int64_t b = 0; b < 7; ++b)
            for (std::int64_t c = 0; c < 2; ++c) {
                const std::int64_t i = (a * 7 + b) * 2 + c, p = (a * 3 + b / 3) * 2 + c;
                const double q = std::clamp(std::nearbyint(x.value(i) / scale.value(p)) + zero.value(p), -128.0, 127.0);
                EXPECT_EQ(values.at("q").at(i), q) << i;
                EXPECT_EQ(values.at("y").at(i), (q - zero.value(p)) * scale.value(p)) << i;
                inside += q > -128 && q < 127;
            }
    EXPECT_GT(inside, 20);
    const auto odd = ModelBuilder(21).input("x", DType::f32, x.shape).constant("s", random_floats({3, 2, 2}, 2, 0.1f, 0.4f)).node("QuantizeLinear", {"x", "s"}, "q").integer("axis", 1).integer("block_size", 3).output("q", DType::u8).build();
    try {
        Reference(odd).run({{"x", x}});
        ADD_FAILURE() << "a scale of two blocks for three";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("3x3x2 is expected"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace assay::golden
