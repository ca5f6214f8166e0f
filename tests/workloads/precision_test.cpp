// Precision policies: scales, calibrated ranges, and matrix products in fp16 and fp8 against chains written out here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

CompileOptions under(const char* precision) {
    CompileOptions options;
    options.chip = preset("aurum-edge");
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
        EXPECT_STREQ(error.what(), "precision 'fp4' is unknown; use one of native, bf16, fp16, fp8, fp8:e5m2");
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
    EXPECT_THROW(calibrate(model.model, std::vector<Sample>(1, Sample{{"x", first}}), CalibrationOptions{50.0}), Error);
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

}  // namespace
}  // namespace assay::workloads::testing
