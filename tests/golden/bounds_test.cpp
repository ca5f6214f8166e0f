// The derived allowance: honest arithmetic in another writing passes, wrong results do not.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "golden/judge/local.hpp"
#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;
using testing::random_int8;

float bf16(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    std::memcpy(&x, &bits, 4);
    return x;
}

/// A fully connected layer with 256 inputs, bias and Relu.
constexpr std::int64_t kIn = 256, kOut = 64;
struct Dense {
    Tensor x = random_floats({1, kIn}, 1), w = random_floats({kIn, kOut}, 2), b = random_floats({kOut}, 3);
    Reference reference{ModelBuilder()
                            .input("x", DType::f32, {1, kIn})
                            .constant("w", w)
                            .constant("b", b)
                            .node("Gemm", {"x", "w", "b"}, "g")
                            .node("Relu", {"g"}, "y")
                            .output("y")
                            .build()};

    /// Written for this test: float FMAs in k order, operands as `prepare` leaves them.
    template <class Prepare>
    Tensor device(Prepare prepare) const {
        Tensor y(DType::f32, {1, kOut});
        for (std::int64_t n = 0; n < kOut; ++n) {
            float acc = 0;
            for (std::int64_t k = 0; k < kIn; ++k)
                acc = std::fma(prepare(x.as<float>()[static_cast<std::size_t>(k)]),
                               prepare(w.as<float>()[static_cast<std::size_t>(k * kOut + n)]), acc);
            acc += b.as<float>()[static_cast<std::size_t>(n)];
            y.as<float>()[static_cast<std::size_t>(n)] = acc > 0 ? acc : 0;
        }
        return y;
    }
    TensorVerdict judge(const Tensor& y, const std::string& precision) const {
        return judge_local(y, {reference, "y", {{"x", x}}, {precision, 0}});
    }
};

TEST(Allowance, HonestFp32AndBf16Pass) {
    const Dense dense;
    const TensorVerdict fp32 = dense.judge(dense.device([](float v) { return v; }), "fp32");
    EXPECT_EQ(fp32.verdict, Verdict::pass) << fp32.reason;
    EXPECT_EQ(fp32.local->grey, 0);
    EXPECT_GT(fp32.local->max_ratio, 0) << "the arithmetic did differ";
    const TensorVerdict half = dense.judge(dense.device(bf16), "bf16");
    EXPECT_EQ(half.verdict, Verdict::pass) << half.reason;
    // The three-way split is fp32-grade, so plain fp32 fits its allowance too.
    EXPECT_EQ(dense.judge(dense.device([](float v) { return v; }), "bf16x3").verdict, Verdict::pass);
}

TEST(Allowance, Bf16ResultsDoNotPassAsFp32NorTheOtherWay) {
    const Dense dense;
    EXPECT_EQ(dense.judge(dense.device(bf16), "fp32").verdict, Verdict::fail);
    EXPECT_EQ(dense.judge(dense.device(bf16), "bf16x3").verdict, Verdict::fail);
    EXPECT_EQ(dense.judge(dense.device([](float v) { return v; }), "bf16").verdict, Verdict::fail)
        << "operands of bf16 layers are known exactly";
}

TEST(Allowance, ScaledAndShiftedResultsFailThoughTheyCorrelatePerfectly) {
    const Dense dense;
    const Tensor honest = dense.device([](float v) { return v; });
    for (const auto& [scale, shift] : {std::pair{2.0f, 0.0f}, {1.0f, 1000.0f}, {1.01f, 0.0f}, {1.0f, 1e-3f}}) {
        Tensor y = honest;
        for (float& v : y.as<float>()) v = v * scale + shift;
        const TensorVerdict verdict = dense.judge(y, "fp32");
        EXPECT_EQ(verdict.verdict, Verdict::fail) << scale << " " << shift;
        EXPECT_TRUE(verdict.first_failing.has_value());
    }
}

TEST(Allowance, EveryFlippedSignOrExponentBitOfAnyLiveResultFails) {
    const Dense dense;
    const Tensor honest = dense.device([](float v) { return v; });
    int checked = 0;
    for (std::size_t i = 0; i < kOut; i += 5)
        for (int bit = 23; bit < 32; ++bit) {
            Tensor y = honest;
            auto& word = y.as<std::uint32_t>()[i];
            if (word == 0) continue;  // a Relu that cut: -0 equals 0
            word ^= 1u << bit;
            const TensorVerdict verdict = dense.judge(y, "fp32");
            ASSERT_EQ(verdict.verdict, Verdict::fail) << "element " << i << " bit " << bit;
            ASSERT_EQ(verdict.first_failing->index, static_cast<std::int64_t>(i));
            ASSERT_EQ(verdict.local->failed, 1);
            ++checked;
        }
    EXPECT_GT(checked, 40);
}

TEST(Allowance, FlippedExponentOrSignBitsOfWeightsFail) {
    Dense dense;
    const Tensor honest = dense.w;
    int failed = 0, checked = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(kIn * kOut); i += 601)
        for (const int bit : {31, 30, 23}) {
            dense.w = honest;
            dense.w.as<std::uint32_t>()[i] ^= 1u << bit;
            const TensorVerdict verdict = dense.judge(dense.device([](float v) { return v; }), "fp32");
            // The column may be cut by Relu both times: then nothing can be seen.
            const std::size_t column = i % kOut;
            const bool visible = dense.device([](float v) { return v; }).as<float>()[column] > 0 ||
                                 dense.reference.run({{"x", dense.x}}).at("y").f[column] > 0;
            failed += verdict.verdict == Verdict::fail;
            checked += visible;
        }
    EXPECT_EQ(failed, checked);
    EXPECT_GT(checked, 30);
}

TEST(Allowance, ConstantOperandsReachTheGreyBandAndAreDecidedToTheBit) {
    // 1/3 rounds the same way at every step: the error grows with K, beyond 6 sqrt(K).
    constexpr std::int64_t kLong = 20000;
    const Tensor x = floats({1, kLong}, std::vector<float>(kLong, bf16(1.0f / 3))),
                 w = floats({kLong, 1}, std::vector<float>(kLong, bf16(1.1f)));
    const Reference reference(
        ModelBuilder().input("x", DType::f32, {1, kLong}).constant("w", w).node("MatMul", {"x", "w"}, "y").output("y").build());
    float acc = 0;
    for (std::int64_t k = 0; k < kLong; ++k) acc = std::fma(bf16(1.0f / 3), bf16(1.1f), acc);
    const LocalQuestion question{reference, "y", {{"x", x}}, {"bf16", 0}};
    const TensorVerdict honest = judge_local(floats({1, 1}, {acc}), question);
    EXPECT_EQ(honest.verdict, Verdict::pass) << honest.reason;
    EXPECT_EQ(honest.local->grey, 1);
    EXPECT_GT(honest.local->max_ratio, 1);
    const TensorVerdict off = judge_local(floats({1, 1}, {std::nextafter(acc, 1e9f)}), question);
    EXPECT_EQ(off.verdict, Verdict::fail) << "one bit off the emulation, in the grey band";
}

TEST(Allowance, NonFiniteValuesMustAgreeInClassAndPlace) {
    const Tensor x = floats({4}, {1.0f, NAN, INFINITY, -INFINITY});
    const Reference reference(ModelBuilder().input("x", DType::f32, {4}).node("Neg", {"x"}, "y").output("y").build());
    const LocalQuestion question{reference, "y", {{"x", x}}, {"fp32", 0}};
    EXPECT_EQ(judge_local(floats({4}, {-1.0f, NAN, -INFINITY, INFINITY}), question).verdict, Verdict::pass);
    EXPECT_EQ(judge_local(floats({4}, {-1.0f, NAN, INFINITY, INFINITY}), question).verdict, Verdict::fail);
    EXPECT_EQ(judge_local(floats({4}, {NAN, -1.0f, -INFINITY, INFINITY}), question).verdict, Verdict::fail) << "a NaN in another place";
    EXPECT_EQ(judge_local(floats({4}, {-1.0f, 0.0f, -INFINITY, INFINITY}), question).verdict, Verdict::fail);
    EXPECT_EQ(judge_local(floats({4}, {-1.0f, NAN, 3e38f, INFINITY}), question).verdict, Verdict::fail);
}

TEST(Allowance, RequantisedResultsMayDifferByOneOnlyAtARoundingBoundary) {
    // x * 1 quantised by 2: odd x lie on the boundary, even x do not.
    const Reference reference(ModelBuilder()
                                  .input("x", DType::i8, {4})
                                  .constant("one", floats({}, {1}))
                                  .constant("two", floats({}, {2}))
                                  .constant("zero", testing::tensor<std::int8_t>(DType::i8, {}, {0}))
                                  .node("DequantizeLinear", {"x", "one", "zero"}, "f")
                                  .node("QuantizeLinear", {"f", "two", "zero"}, "y")
                                  .output("y", DType::i8)
                                  .build());
    const Tensor x = testing::tensor<std::int8_t>(DType::i8, {4}, {3, 4, 5, -7});
    const auto judge = [&](const std::vector<std::int8_t>& y) {
        return judge_local(testing::tensor<std::int8_t>(DType::i8, {4}, y), {reference, "y", {{"x", x}}, {"int8", 0}});
    };
    const TensorVerdict even = judge({2, 2, 2, -4});  // 1.5, 2, 2.5, -3.5 half to even
    EXPECT_EQ(even.verdict, Verdict::pass) << even.reason;
    EXPECT_EQ(even.local->lsb, 0);
    const TensorVerdict other = judge({1, 2, 3, -3});
    EXPECT_EQ(other.verdict, Verdict::pass) << other.reason;
    EXPECT_EQ(other.local->lsb, 3);
    EXPECT_EQ(judge({2, 3, 2, -4}).verdict, Verdict::fail) << "4 / 2 has no boundary in reach";
    EXPECT_EQ(judge({0, 2, 2, -4}).verdict, Verdict::fail) << "two off";
}

TEST(Allowance, Int8ConvolutionIsExactUpToItsRequantisation) {
    const Tensor x = random_int8({1, 8, 6, 6}, 5), w = random_int8({4, 8, 3, 3}, 6);
    const Reference reference(ModelBuilder()
                                  .input("x", DType::i8, {1, 8, 6, 6})
                                  .constant("w", w)
                                  .constant("xs", floats({}, {0.05f}))
                                  .constant("ws", floats({}, {0.003f}))
                                  .constant("ys", floats({}, {0.7f}))
                                  .constant("zx", testing::tensor<std::int8_t>(DType::i8, {}, {-7}))
                                  .constant("z", testing::tensor<std::int8_t>(DType::i8, {}, {0}))
                                  .node("DequantizeLinear", {"x", "xs", "zx"}, "xf")
                                  .node("DequantizeLinear", {"w", "ws", "z"}, "wf")
                                  .node("Conv", {"xf", "wf"}, "c")
                                  .node("QuantizeLinear", {"c", "ys", "zx"}, "y")
                                  .output("y", DType::i8)
                                  .build());
    // Written for this test: integers, one fp32 scale, nearest even, zero point, saturation.
    Tensor y(DType::i8, {1, 4, 4, 4});
    const float scale = static_cast<float>(static_cast<double>(0.05f) * static_cast<double>(0.003f) / static_cast<double>(0.7f));
    for (std::size_t o = 0; o < 4; ++o)
        for (std::size_t p = 0; p < 16; ++p) {
            int acc = 0;
            for (std::size_t c = 0; c < 8; ++c)
                for (std::size_t t = 0; t < 9; ++t)
                    acc +=
                        (x.as<std::int8_t>()[c * 36 + (p / 4 + t / 3) * 6 + p % 4 + t % 3] + 7) * w.as<std::int8_t>()[(o * 8 + c) * 9 + t];
            const float r = std::nearbyint(static_cast<float>(acc) * scale) - 7;
            y.as<std::int8_t>()[o * 16 + p] = static_cast<std::int8_t>(std::min(127.0f, std::max(-128.0f, r)));
        }
    const LocalQuestion question{reference, "y", {{"x", x}}, {"int8", 0}};
    const TensorVerdict verdict = judge_local(y, question);
    EXPECT_EQ(verdict.verdict, Verdict::pass) << verdict.reason;
    EXPECT_LE(verdict.local->lsb, 1);
    for (int bit = 1; bit < 8; ++bit) {
        Tensor bent = y;
        bent.as<std::uint8_t>()[17] ^= static_cast<std::uint8_t>(1 << bit);
        EXPECT_EQ(judge_local(bent, question).verdict, Verdict::fail) << "bit " << bit;
    }
}

TEST(Allowance, UnwrittenBytesShapeAndTypeComeFirst) {
    const Dense dense;
    const Tensor honest = dense.device([](float v) { return v; });
    const LocalQuestion question{dense.reference, "y", {{"x", dense.x}}, {"fp32", 0}};
    EXPECT_EQ(judge_local(honest, question, 4).verdict, Verdict::fail);
    Tensor reshaped = honest;
    reshaped.shape = {kOut, 1};
    EXPECT_EQ(judge_local(reshaped, question).verdict, Verdict::fail);
    Tensor retyped = honest;
    retyped.dtype = DType::i32;
    EXPECT_EQ(judge_local(retyped, question).verdict, Verdict::fail);
    EXPECT_THROW(judge_local(honest, {dense.reference, "y", {}, {"fp32", 0}}), Error) << "the layer was not fed";
}

TEST(Allowance, AZeroSizeTensorIsJudgedByItsShape) {
    const Reference reference(ModelBuilder().input("x", DType::f32, {0, 3}).node("Relu", {"x"}, "y").output("y").build());
    const LocalQuestion question{reference, "y", {{"x", Tensor(DType::f32, {0, 3})}}, {"fp32", 0}};
    const TensorVerdict verdict = judge_local(Tensor(DType::f32, {0, 3}), question);
    EXPECT_EQ(verdict.verdict, Verdict::pass);
    EXPECT_EQ(verdict.elements, 0);
    EXPECT_NE(verdict.reason.find("shape"), std::string::npos);
    EXPECT_EQ(judge_local(Tensor(DType::f32, {0, 4}), question).verdict, Verdict::fail);
}

}  // namespace
}  // namespace assay::golden
