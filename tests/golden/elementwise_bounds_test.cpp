// Bounds of operators other than products: a float evaluation written here, as a chip would do it, stays within them, and a wrong one not.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "golden/judge/local.hpp"
#include "small_model.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;

struct Unary {
    const char* op;
    std::function<float(float)> device;
    float low, high;
};

class UnaryBound : public ::testing::TestWithParam<Unary> {};

TEST_P(UnaryBound, HoldsTheFloatEvaluationAndNotARelativeErrorOf2ToTheMinus14) {
    const auto& [op, device, low, high] = GetParam();
    const Tensor x = random_floats({2000}, 7, low, high);
    const Reference reference(ModelBuilder(24).input("x", DType::f32, {2000}).node(op, {"x"}, "y").output("y").build());
    Tensor y = x;
    for (float& v : y.as<float>()) v = device(v);
    const LocalQuestion question{reference, "y", {{"x", x}}, {"fp32", 0}};
    const TensorVerdict honest = judge_local(y, question);
    EXPECT_EQ(honest.verdict, Verdict::pass) << op << ": " << honest.reason;
    for (float& v : y.as<float>()) v *= 1 + 0x1p-14f;
    const TensorVerdict wrong = judge_local(y, question);
    EXPECT_EQ(wrong.verdict, Verdict::fail) << op;
    EXPECT_GT(wrong.local->failed, 1000) << op;
}

float exp_by_exp2(float x) { return std::exp2(x * 1.44269504f); }

INSTANTIATE_TEST_SUITE_P(
    Operators, UnaryBound,
    ::testing::Values(Unary{"Exp", exp_by_exp2, -80, 80}, Unary{"Sigmoid", [](float x) { return 1 / (1 + exp_by_exp2(-x)); }, -20, 20},
                      Unary{"Tanh",
                            [](float x) {
                                const float e = exp_by_exp2(-2 * std::fabs(x));
                                return std::copysign((1 - e) / (1 + e), x);
                            },
                            -9, 9},
                      Unary{"Tanh", [](float x) { return 1 + -2 / (1 + exp_by_exp2(2 * x)); }, -9, 9},
                      Unary{"Sqrt", [](float x) { return std::sqrt(x); }, 0, 1000},
                      Unary{"Log", [](float x) { return std::log2(x) * 0.693147182f; }, 0.001f, 900},
                      Unary{"Erf", [](float x) { return static_cast<float>(std::erf(static_cast<double>(x))); }, 0.01f, 3},
                      Unary{"Reciprocal", [](float x) { return 1 / x; }, 0.01f, 50},
                      Unary{"Atan", [](float x) { return std::atan(x); }, 0.01f, 50},
                      Unary{"Asinh", [](float x) { return static_cast<float>(std::asinh(static_cast<double>(x))); }, 0.01f, 50},
                      Unary{"Cosh", [](float x) { return static_cast<float>(std::cosh(static_cast<double>(x))); }, -5, 5},
                      Unary{"Elu", [](float x) { return x < 0 ? std::expm1(x) : x; }, -5, 5},
                      Unary{"Selu", [](float x) { return 1.05070102f * (x < 0 ? 1.67326319f * std::expm1(x) : x); }, -5, 5},
                      Unary{"Celu", [](float x) { return x < 0 ? std::expm1(x) : x; }, -5, 5},
                      Unary{"Gelu",
                            [](float x) { return 0.5f * x * (1 + static_cast<float>(std::erf(static_cast<double>(x * 0.707106769f)))); },
                            0.1f, 6},
                      Unary{"Swish", [](float x) { return x * (1 / (1 + exp_by_exp2(-x))); }, -10, 10},
                      Unary{"Softplus", [](float x) { return std::max(x, 0.0f) + std::log1p(exp_by_exp2(-std::fabs(x))); }, -10, 10},
                      Unary{"Softsign", [](float x) { return x / (1 + std::fabs(x)); }, -10, 10},
                      Unary{"HardSigmoid", [](float x) { return std::min(1.0f, std::max(0.0f, 0.2f * x + 0.5f)); }, -2.4f, 4},
                      Unary{"LeakyRelu", [](float x) { return x < 0 ? 0.01f * x : x; }, -5, 5}),
    [](const auto& instance) { return std::string(instance.param.op) + std::to_string(instance.index); });

TEST(SoftmaxBound, HoldsAFloatEvaluationAndNotAWrongExponentBase) {
    const Tensor x = random_floats({3, 50}, 8, -30, 30);
    const Reference reference(ModelBuilder().input("x", DType::f32, {3, 50}).node("Softmax", {"x"}, "y").output("y").build());
    const auto device = [&](float log2e) {
        Tensor y = x;
        for (std::size_t r = 0; r < 3; ++r) {
            const auto row = y.as<float>().subspan(r * 50, 50);
            const float top = *std::max_element(row.begin(), row.end());
            float sum = 0;
            for (float& v : row) sum += v = std::exp2((v - top) * log2e);
            for (float& v : row) v /= sum;
        }
        return y;
    };
    const LocalQuestion question{reference, "y", {{"x", x}}, {"fp32", 0}};
    const TensorVerdict honest = judge_local(device(1.44269504f), question);
    EXPECT_EQ(honest.verdict, Verdict::pass) << honest.reason;
    EXPECT_EQ(judge_local(device(1.4427f), question).verdict, Verdict::fail);
}

TEST(FusedBound, ErrorsTravelThroughTheNodesOfALayer) {
    // (a - b) * 1000 with a near b: the rounding of the sum counts a thousandfold, and no more.
    const Tensor a = random_floats({500}, 9, 1, 2), b = random_floats({500}, 10, 1, 2);
    const Reference reference(ModelBuilder()
                                  .input("a", DType::f32, {500})
                                  .input("b", DType::f32, {500})
                                  .constant("thousand", floats({1}, {1000}))
                                  .node("Mul", {"a", "b"}, "p")
                                  .node("Sub", {"p", "a"}, "d")
                                  .node("Mul", {"d", "thousand"}, "y")
                                  .output("y")
                                  .build());
    Tensor y = a;
    for (std::size_t i = 0; i < 500; ++i) y.as<float>()[i] = (a.as<float>()[i] * b.as<float>()[i] - a.as<float>()[i]) * 1000;
    const LocalQuestion question{reference, "y", {{"a", a}, {"b", b}}, {"fp32", 0}};
    const TensorVerdict honest = judge_local(y, question);
    EXPECT_EQ(honest.verdict, Verdict::pass) << honest.reason;
    for (float& v : y.as<float>()) v += 4 * 1000 * 4 * 0x1p-24f;  // four times the products' ULP, scaled
    EXPECT_EQ(judge_local(y, question).verdict, Verdict::fail);
}

/// One row of 64 numbers off centre, normalised in fp32 as the formulas read.
std::vector<float> normalised_in_float(const Tensor& x, bool centre) {
    std::vector<float> y(x.as<float>().begin(), x.as<float>().end());
    float mean = 0, variance = 0;
    if (centre) {
        for (const float v : y) mean += v;
        mean /= 64;
    }
    for (float& v : y) {
        v -= mean;
        variance += v * v;
    }
    const float factor = 1 / std::sqrt(variance / 64 + 1e-5f);
    for (float& v : y) v *= factor;
    return y;
}

TEST(NormalizationBound, HoldsTheFloatEvaluationAndNotARelativeErrorOf2ToTheMinus12) {
    const Tensor x = random_floats({1, 64}, 16, 1, 3), scale = floats({64}, std::vector<float>(64, 1.0f));
    for (const char* op : {"LayerNormalization", "RMSNormalization"}) {
        ModelBuilder builder(23);
        builder.input("x", DType::f32, {1, 64}).constant("s", scale).node(op, {"x", "s"}, "y").output("y");
        const Reference reference(builder.build());
        const std::vector<float> row = normalised_in_float(x, op[0] == 'L');
        Tensor y = x;
        std::copy(row.begin(), row.end(), y.as<float>().begin());
        const LocalQuestion question{reference, "y", {{"x", x}}, {"fp32", 0}};
        const TensorVerdict honest = judge_local(y, question);
        EXPECT_EQ(honest.verdict, Verdict::pass) << op << ": " << honest.reason;
        for (float& v : y.as<float>()) v *= 1 + 0x1p-12f;
        EXPECT_EQ(judge_local(y, question).verdict, Verdict::fail) << op;
    }
}

TEST(BatchNormalizationBound, HoldsTheFoldedFusedMultiplyAdd) {
    const Tensor x = random_floats({1, 4, 25}, 11), gamma = random_floats({4}, 12), beta = random_floats({4}, 13),
                 mean = random_floats({4}, 14), var = random_floats({4}, 15, 0.1f, 2);
    const Reference reference(ModelBuilder()
                                  .input("x", DType::f32, {1, 4, 25})
                                  .constant("s", gamma)
                                  .constant("b", beta)
                                  .constant("m", mean)
                                  .constant("v", var)
                                  .node("BatchNormalization", {"x", "s", "b", "m", "v"}, "y")
                                  .output("y")
                                  .build());
    Tensor y = x;
    for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t c = i / 25;
        const double scale = gamma.as<float>()[c] / std::sqrt(static_cast<double>(var.as<float>()[c]) + static_cast<double>(1e-5f));
        const double shift = beta.as<float>()[c] - mean.as<float>()[c] * scale;
        y.as<float>()[i] = std::fma(x.as<float>()[i], static_cast<float>(scale), static_cast<float>(shift));
    }
    const LocalQuestion question{reference, "y", {{"x", x}}, {"fp32", 0}};
    const TensorVerdict honest = judge_local(y, question);
    EXPECT_EQ(honest.verdict, Verdict::pass) << honest.reason;
    for (float& v : y.as<float>()) v *= 1.00001f;
    EXPECT_EQ(judge_local(y, question).verdict, Verdict::fail);
}

}  // namespace
}  // namespace assay::golden
