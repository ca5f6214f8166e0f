// Precision policies: scales, calibrated ranges, and matrix products in fp16 and fp8 against chains written out here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "model_builder.hpp"
#include "run_program.hpp"
#include "support/error.hpp"
#include "workloads/precision/calibrate.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::workloads::testing {
namespace {

using simkernel::Dtype;
using Sample = std::map<std::string, Tensor>;

/// Nearest value with `fraction` stored bits and least normal exponent `least`, ties to even; past `largest` that value.
float nearest(float x, int fraction, int least, float largest) {
    if (x == 0) return x;
    const int exponent = std::max(std::ilogb(x), least);
    const double unit = std::ldexp(1.0, exponent - fraction);
    const double rounded = std::nearbyint(static_cast<double>(x) / unit) * unit;
    const double limit = static_cast<double>(largest);
    return static_cast<float>(std::fabs(rounded) > limit ? std::copysign(limit, rounded) : rounded);
}

CompileOptions under(const char* precision, const char* chip = "aurum-edge") {
    CompileOptions options;
    options.chip = preset(chip);
    options.precision = precision;
    return options;
}

TEST(Policies, AreFoundByNameAndAnUnknownOneIsRefusedNamingAll) {
    EXPECT_EQ(find_policy("fp8:e5m2").array, Dtype::f8e5m2);
    EXPECT_EQ(find_policy("native").planes, 3);
    try {
        find_policy("fp4");
        FAIL() << "an unknown policy was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_STREQ(error.what(), "precision 'fp4' is unknown; use one of native, bf16, fp16, fp8, fp8:e5m2, int8, w8, w4");
    }
}

TEST(Policies, ScalesAreTheLeastPowersOfTwoThatBringAMagnitudeIntoRange) {
    EXPECT_EQ(scale_for(Dtype::f8e4m3, 448), 1.0);
    EXPECT_EQ(scale_for(Dtype::f8e4m3, 449), 2.0);
    EXPECT_EQ(scale_for(Dtype::f8e4m3, 224), 0.5);
    EXPECT_EQ(scale_for(Dtype::f8e5m2, 57344), 1.0);
    EXPECT_EQ(scale_for(Dtype::f8e5m2, 1), 0x1p-15);
    EXPECT_EQ(scale_for(Dtype::f8e4m3, 0), 1.0);
    EXPECT_EQ(scale_for(Dtype::f8e4m3, HUGE_VAL), 1.0);
    EXPECT_EQ(scale_for(Dtype::f16, 1e6), 1.0) << "fp16 scales nothing";
}

TEST(Calibration, TakesTheRangesOfWhatMatrixNodesReadAndMakeOverAllSamples) {
    ModelBuilder model;
    Tensor w(DType::f32, {2, 1});
    w.as<float>()[0] = 2;
    w.as<float>()[1] = -1;
    model.input("x", {1, 2}).constant("w", w).output("y");
    model.node("MatMul", {"x", "w"}, {"y"});
    Tensor first(DType::f32, {1, 2}), second(DType::f32, {1, 2});
    first.as<float>()[0] = 3;
    first.as<float>()[1] = -5;
    second.as<float>()[0] = -1;
    second.as<float>()[1] = 4;
    const auto ranges = calibrate(model.model, std::vector<Sample>{Sample{{"x", first}}, Sample{{"x", second}}});
    ASSERT_EQ(ranges.size(), 2u) << "the weight is no activation";
    EXPECT_EQ(ranges.at("x").low, -5.0);
    EXPECT_EQ(ranges.at("x").high, 4.0);
    EXPECT_EQ(ranges.at("y").low, -6.0);
    EXPECT_EQ(ranges.at("y").high, 11.0);
    EXPECT_THROW(calibrate(model.model, std::vector<Sample>{}), Error);
    EXPECT_THROW(calibrate(model.model, std::vector<Sample>(1, Sample{{"x", first}}), CalibrationOptions{"fp8", 50.0}), Error);
}

TEST(NarrowMatMul, IsTheChainOfRoundedOperandsToTheBit) {
    struct Case {
        const char* precision;
        const char* layer;
        Dtype type;
        int fraction, least;
        float largest;
    };
    int compared = 0;
    for (const Case& c : {Case{"fp16", "fp16", Dtype::f16, 10, -14, 65504.0f}, Case{"fp8", "fp8e4m3", Dtype::f8e4m3, 3, -6, 448.0f},
                          Case{"fp8:e5m2", "fp8e5m2", Dtype::f8e5m2, 2, -14, 57344.0f}}) {
        std::mt19937 engine(5);
        constexpr std::int64_t kM = 9, kK = 70, kN = 37;
        const Tensor a = random_floats(engine, {kM, kK});
        Tensor w = random_floats(engine, {kK, kN});
        // Output 0 needs a scale of its own.
        for (std::int64_t k = 0; k < kK; ++k) w.as<float>()[static_cast<std::size_t>(k * kN)] *= 1000;
        ModelBuilder model;
        model.input("a", a.shape).constant("w", w).output("y");
        model.node("MatMul", {"a", "w"}, {"y"});
        CompileOptions options = under(c.precision);
        options.ranges = calibrate(model.model, std::vector<Sample>(1, Sample{{"a", a}}));
        const RunResult run = compile_and_run(model.model, options, {{"a", a}});
        ASSERT_EQ(run.program.layers.size(), 1u);
        EXPECT_EQ(run.program.layers[0].precision, c.layer);
        const Tensor& y = run.tensors.at("y");
        const auto largest = [](const Tensor& t, std::int64_t first, std::int64_t step) {
            double found = 0;
            for (std::int64_t i = first; i < t.count(); i += step) found = std::max(found, std::fabs(t.value(i)));
            return found;
        };
        const double sa = scale_for(c.type, largest(a, 0, 1));
        for (std::int64_t n = 0; n < kN; ++n) {
            const double sw = scale_for(c.type, largest(w, n, kN));
            for (std::int64_t m = 0; m < kM; ++m, ++compared) {
                float sum = 0;
                for (std::int64_t k = 0; k < kK; ++k)
                    sum = std::fma(nearest(static_cast<float>(a.value(m * kK + k) / sa), c.fraction, c.least, c.largest),
                                   nearest(static_cast<float>(w.value(k * kN + n) / sw), c.fraction, c.least, c.largest), sum);
                ASSERT_EQ(y.value(m * kN + n), static_cast<double>(sum) * sa * sw) << c.precision << " at " << m << ',' << n;
            }
        }
    }
    EXPECT_EQ(compared, 3 * 9 * 37);
}

TEST(NarrowMatMul, WithoutARangeOfItsInputALayerRunsInBf16AndSaysSo) {
    std::mt19937 engine(6);
    const Tensor a = random_floats(engine, {3, 8}), w = random_floats(engine, {8, 4});
    ModelBuilder model;
    model.input("a", a.shape).constant("w", w).output("y");
    model.node("MatMul", {"a", "w"}, {"y"});
    const RunResult run = compile_and_run(model.model, under("fp8"), {{"a", a}});
    ASSERT_EQ(run.program.layers.size(), 1u);
    EXPECT_EQ(run.program.layers[0].precision, "bf16");
}

double largest_of(const Tensor& t, std::int64_t first, std::int64_t end, std::int64_t step) {
    double found = 0;
    for (std::int64_t i = first; i < end; i += step) found = std::max(found, std::fabs(t.value(i)));
    return found;
}

float bf16(double x) { return nearest(static_cast<float>(x), 7, -126, 3.0e38f); }

/// a [M, K] times w [K, N] under a policy, as the program interpreter has it.
RunResult product(const char* policy, const char* chip, const Tensor& a, const Tensor& w) {
    ModelBuilder model;
    model.input("a", a.shape).constant("w", w).output("y");
    model.node("MatMul", {"a", "w"}, {"y"});
    CompileOptions options = under(policy, chip);
    options.ranges = calibrate(model.model, std::vector<Sample>(1, Sample{{"a", a}}));
    return compile_and_run(model.model, options, {{"a", a}});
}

/// Resident weights, blocks, and pieces of K; K that fills no group; N that fills no block.
struct Shape3 {
    const char* chip;
    std::int64_t m, k, n;
};
constexpr Shape3 kShapes[] = {{"aurum-edge", 9, 70, 37}, {"aurum-nano", 5, 71, 19}, {"aurum-nano", 3, 610, 40}, {"aurum-nano", 2, 2051, 13}};

TEST(NarrowWeights, OfEightBitsAreTheirIntegersOnTheArrayAndTheStepInTheDrain) {
    int compared = 0;
    for (const auto& [chip, kM, kK, kN] : kShapes) {
        std::mt19937 engine(7);
        const Tensor a = random_floats(engine, {kM, kK}), w = random_floats(engine, {kK, kN});
        const RunResult run = product("w8", chip, a, w);
        ASSERT_EQ(run.program.layers.size(), 1u);
        EXPECT_EQ(run.program.layers[0].precision, "w8");
        for (std::int64_t n = 0; n < kN; ++n) {
            const auto step = static_cast<float>(largest_of(w, n, w.count(), kN) / 127);
            for (std::int64_t m = 0; m < kM; ++m, ++compared) {
                float sum = 0;
                for (std::int64_t k = 0; k < kK; ++k)
                    sum = std::fma(bf16(a.value(m * kK + k)), static_cast<float>(std::nearbyint(w.value(k * kN + n) / static_cast<double>(step))), sum);
                ASSERT_EQ(run.tensors.at("y").value(m * kN + n), static_cast<double>(sum * step)) << chip << ' ' << kK << " at " << m << ',' << n;
            }
        }
    }
    EXPECT_EQ(compared, 9 * 37 + 5 * 19 + 3 * 40 + 2 * 13);
}

TEST(NarrowWeights, OfFourBitsAreBf16OfIntegerTimesTheStepOfTheirGroup) {
    int compared = 0;
    for (const auto& [chip, kM, kK, kN] : kShapes) {
        std::mt19937 engine(8);
        const Tensor a = random_floats(engine, {kM, kK});
        Tensor w = random_floats(engine, {kK, kN});
        for (std::int64_t k = 32; k < 64; ++k)  // a group of another size
            for (std::int64_t n = 0; n < kN; ++n) w.as<float>()[static_cast<std::size_t>(k * kN + n)] *= 50;
        const RunResult run = product("w4", chip, a, w);
        ASSERT_EQ(run.program.layers.size(), 1u);
        EXPECT_EQ(run.program.layers[0].precision, "w4");
        for (std::int64_t n = 0; n < kN; ++n)
            for (std::int64_t m = 0; m < kM; ++m, ++compared) {
                float sum = 0;
                for (std::int64_t k = 0; k < kK; ++k) {
                    const std::int64_t first = k / 32 * 32;
                    const auto step = static_cast<double>(bf16(largest_of(w, first * kN + n, std::min(first + 32, kK) * kN, kN) / 7));
                    const double q = std::clamp(std::nearbyint(w.value(k * kN + n) / step), -7.0, 7.0);
                    sum = std::fma(bf16(a.value(m * kK + k)), bf16(q * step), sum);
                }
                ASSERT_EQ(run.tensors.at("y").value(m * kN + n), static_cast<double>(sum)) << chip << ' ' << kK << " at " << m << ',' << n;
            }
    }
    EXPECT_EQ(compared, 9 * 37 + 5 * 19 + 3 * 40 + 2 * 13);
}

TEST(NarrowWeights, AreSmallerInDeviceMemory) {
    std::mt19937 engine(9);
    const Tensor a = random_floats(engine, {1, 256}), w = random_floats(engine, {256, 64});
    const auto bytes = [&](const char* policy) {
        std::size_t all = 0;
        for (const simkernel::Constant& c : product(policy, "aurum-edge", a, w).program.constants) all += c.bytes.size();
        return all;
    };
    EXPECT_EQ(bytes("bf16"), 2u * 256 * 64);
    EXPECT_EQ(bytes("w8"), 256u * 64 + 64 * 4) << "a byte each, and an fp32 step for each output";
    EXPECT_EQ(bytes("w4"), 256u * 64 / 2 + 256 / 32 * 64 * 2) << "half a byte each, and a bf16 step for each group";
}

TEST(Int8, IsTheExactSumOfCalibratedStepsTimesOneScale) {
    int compared = 0;
    for (const auto& [chip, kM, kK, kN] : kShapes) {
        std::mt19937 engine(10);
        Tensor a = random_floats(engine, {kM, kK});
        const Tensor w = random_floats(engine, {kK, kN});
        double low = 0, high = 0;
        for (float& v : a.as<float>()) {
            v += 0.75f;  // a range that is not symmetrical
            low = std::min(low, static_cast<double>(v));
            high = std::max(high, static_cast<double>(v));
        }
        const RunResult run = product("int8", chip, a, w);
        ASSERT_EQ(run.program.layers.size(), 1u);
        EXPECT_EQ(run.program.layers[0].precision, "w8a8");
        const auto x_step = static_cast<float>((high - low) / 255);
        const double zero = std::nearbyint(-128 - low / static_cast<double>(x_step));
        for (std::int64_t n = 0; n < kN; ++n) {
            const auto w_step = static_cast<float>(largest_of(w, n, w.count(), kN) / 127);
            for (std::int64_t m = 0; m < kM; ++m, ++compared) {
                double sum = 0;
                for (std::int64_t k = 0; k < kK; ++k) {
                    const double q = std::nearbyint(static_cast<double>(a.as<float>()[static_cast<std::size_t>(m * kK + k)] * (1 / x_step)));
                    sum += std::clamp(q, -128 - zero, 127 - zero) * std::nearbyint(w.value(k * kN + n) / static_cast<double>(w_step));
                }
                const auto scale = static_cast<float>(static_cast<double>(x_step) * static_cast<double>(w_step));
                ASSERT_EQ(run.tensors.at("y").value(m * kN + n), static_cast<double>(static_cast<float>(sum) * scale)) << chip << ' ' << kK << " at " << m << ',' << n;
            }
        }
    }
    EXPECT_EQ(compared, 9 * 37 + 5 * 19 + 3 * 40 + 2 * 13);
}

TEST(Int8, OfTwoActivationsHasNoZeroPoints) {
    std::mt19937 engine(11);
    const Tensor a = random_floats(engine, {4, 6}), b = random_floats(engine, {6, 5});
    ModelBuilder model;
    model.input("a", a.shape).input("b", b.shape).output("y");
    model.node("MatMul", {"a", "b"}, {"y"});
    CompileOptions options = under("int8");
    options.ranges = calibrate(model.model, std::vector<Sample>(1, Sample{{"a", a}, {"b", b}}));
    const RunResult run = compile_and_run(model.model, options, {{"a", a}, {"b", b}});
    ASSERT_EQ(run.program.layers.size(), 1u);
    EXPECT_EQ(run.program.layers[0].precision, "w8a8");
    EXPECT_EQ(run.program.layers[0].x_zero, 0);
    EXPECT_GT(run.program.layers[0].w_scale, 0);
    const auto in_steps = [](const Tensor& t, std::int64_t i, float step) {
        return std::nearbyint(static_cast<double>(t.as<float>()[static_cast<std::size_t>(i)] * (1 / step)));
    };
    const auto sa = static_cast<float>(largest_of(a, 0, a.count(), 1) / 127), sb = static_cast<float>(largest_of(b, 0, b.count(), 1) / 127);
    for (std::int64_t m = 0; m < 4; ++m)
        for (std::int64_t n = 0; n < 5; ++n) {
            double sum = 0;
            for (std::int64_t k = 0; k < 6; ++k) sum += in_steps(a, m * 6 + k, sa) * in_steps(b, k * 5 + n, sb);
            const auto scale = static_cast<float>(static_cast<double>(sa) * static_cast<double>(sb));
            EXPECT_EQ(run.tensors.at("y").value(m * 5 + n), static_cast<double>(static_cast<float>(sum) * scale)) << m << ',' << n;
        }
}

TEST(Int8, PaddingOfAConvolutionIsTheZeroPoint) {
    std::mt19937 engine(12);
    Tensor x = random_floats(engine, {1, 2, 5, 5});
    for (float& v : x.as<float>()) v = std::fabs(v) + 1;  // 0 lies at the end of the steps: as anything else it would show
    const Tensor w = random_floats(engine, {3, 2, 3, 3});
    ModelBuilder model;
    model.input("x", x.shape).constant("w", w).output("y");
    attribute(model.node("Conv", {"x", "w"}, {"y"}), "pads", std::vector<std::int64_t>{1, 1, 1, 1});
    CompileOptions options = under("int8");
    options.ranges = calibrate(model.model, std::vector<Sample>(1, Sample{{"x", x}}));
    const RunResult run = compile_and_run(model.model, options, {{"x", x}});
    ASSERT_EQ(run.program.layers[0].precision, "w8a8");
    for (std::int64_t o = 0; o < 3; ++o)
        for (std::int64_t h = 0; h < 5; ++h)
            for (std::int64_t v = 0; v < 5; ++v) {
                double sum = 0, magnitude = 0;
                for (std::int64_t c = 0; c < 2; ++c)
                    for (std::int64_t i = 0; i < 3; ++i)
                        for (std::int64_t j = 0; j < 3; ++j) {
                            const std::int64_t r = h + i - 1, s = v + j - 1;
                            if (r < 0 || r > 4 || s < 0 || s > 4) continue;
                            const double p = x.value((c * 5 + r) * 5 + s) * w.value(((o * 2 + c) * 3 + i) * 3 + j);
                            sum += p;
                            magnitude += std::fabs(p);
                        }
                EXPECT_NEAR(run.tensors.at("y").value((o * 5 + h) * 5 + v), sum, magnitude * 0.02) << o << ',' << h << ',' << v;
            }
}

TEST(Policies, LeaveTheModelsOwnIntegerLayersAlone) {
    std::mt19937 engine(13);
    ModelBuilder model;
    Tensor x = random_floats(engine, {2, 16}), scale(DType::f32, {}), w(DType::i8, {16, 4});
    scale.as<float>()[0] = 0.02f;
    for (std::int8_t& v : w.as<std::int8_t>()) v = static_cast<std::int8_t>(engine() % 255 - 127);
    model.input("x", x.shape).constant("s", scale).constant("z", Tensor(DType::i8, {})).constant("wq", w).output("y");
    model.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    model.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
    model.node("DequantizeLinear", {"wq", "s", "z"}, {"w"});
    model.node("MatMul", {"d", "w"}, {"y"});
    std::map<std::string, std::vector<double>> results;
    for (const std::string& policy : policy_names()) {
        CompileOptions options = under(policy.c_str());
        if (find_policy(policy).calibrated()) options.ranges = calibrate(model.model, std::vector<Sample>(1, Sample{{"x", x}}));
        const RunResult run = compile_and_run(model.model, options, {{"x", x}});
        EXPECT_EQ(run.program.layers.back().precision, "int8") << policy;
        for (std::int64_t i = 0; i < 8; ++i) results[policy].push_back(run.tensors.at("y").value(i));
        EXPECT_EQ(results[policy], results["native"]) << policy;
    }
    EXPECT_EQ(results.size(), policies().size());
}

}  // namespace
}  // namespace assay::workloads::testing
