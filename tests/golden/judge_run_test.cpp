// Whole runs: verdicts, the first failing layer, published outputs, and runs in which nothing was judged.
#include <cmath>

#include <gtest/gtest.h>

#include "golden/judge/global.hpp"
#include "golden/judge/judge_run.hpp"
#include "golden/judge/metrics.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;

/// Conv+Relu, then MatMul, then Softmax: the device is golden's emulation, fed layer by layer.
struct Example {
    std::shared_ptr<onnx::ModelProto> model = ModelBuilder()
                                                  .input("x", DType::f32, {1, 3, 8, 8})
                                                  .constant("w1", random_floats({8, 3, 3, 3}, 1))
                                                  .constant("b1", random_floats({8}, 2))
                                                  .constant("shape", testing::tensor<std::int64_t>(DType::i64, {2}, {1, -1}))
                                                  .constant("w2", random_floats({288, 10}, 3))
                                                  .node("Conv", {"x", "w1", "b1"}, "c")
                                                  .node("Relu", {"c"}, "r")
                                                  .node("Reshape", {"r", "shape"}, "f")
                                                  .node("MatMul", {"f", "w2"}, "m")
                                                  .node("Softmax", {"m"}, "y")
                                                  .output("y")
                                                  .build();
    Reference reference{model};
    std::map<std::string, Tensor> inputs{{"x", random_floats({1, 3, 8, 8}, 4)}}, device, published;
    std::map<std::string, std::uint64_t> unwritten;
    simkernel::Program program;

    explicit Example(const std::string& precision = "bf16x3") {
        program.precision = precision == "bf16" ? "bf16" : "native";
        const auto layer = [&](const char* name, const char* op, std::vector<int> nodes, const char* in, const char* out,
                               const std::string& rule) {
            simkernel::Layer l;
            l.name = name, l.op = op, l.nodes = std::move(nodes), l.inputs = {in}, l.outputs = {out}, l.precision = rule;
            program.layers.push_back(l);
        };
        layer("conv", "Conv+Relu", {0, 1}, "x", "r", precision);
        layer("fc", "Reshape+MatMul", {2, 3}, "r", "m", precision);
        layer("softmax", "Softmax", {4}, "m", "y", "fp32");
        const Values values = reference.emulate(inputs, {}, {precision, 0});
        for (const char* name : {"r", "m", "y"}) device[name] = to_tensor(values.at(name));
        published["y"] = to_tensor(reference.run(inputs).at("y"));
    }
    /// Recomputes what follows a changed tensor, as the chip would.
    void recompute_from(const std::string& changed) {
        if (changed == "r") device["m"] = to_tensor(reference.evaluate("m", {{"r", device["r"]}}, {"bf16x3", 0}));
        if (changed != "y") device["y"] = to_tensor(reference.evaluate("y", {{"m", device["m"]}}, {"fp32", 0}));
    }
    RunVerdict judge() const { return judge_run({program, reference, inputs, device, unwritten, &published}); }
};

TEST(JudgeRun, AnHonestRunPassesUnderBothPolicies) {
    for (const char* precision : {"bf16x3", "bf16"}) {
        const RunVerdict verdict = Example(precision).judge();
        EXPECT_EQ(verdict.verdict, Verdict::pass) << precision;
        ASSERT_EQ(verdict.tensors.size(), 3u);
        ASSERT_EQ(verdict.outputs.size(), 2u);
        for (const auto* list : {&verdict.tensors, &verdict.outputs})
            for (const TensorVerdict& t : *list)
                EXPECT_EQ(t.verdict, Verdict::pass) << precision << " " << t.role << " " << t.name << ": " << t.reason;
        EXPECT_EQ(verdict.outputs[1].role, "published");
        EXPECT_FALSE(verdict.first_failing.has_value());
        EXPECT_EQ(verdict.tensors[0].node, "node 'c' (Conv-11), node 'r' (Relu-13)");
    }
}

TEST(JudgeRun, NamesTheFirstFailingLayerThoughLaterOnesAreWrongToo) {
    Example run;
    for (float& v : run.device["m"].as<float>()) v *= 1.01f;
    run.recompute_from("m");
    const RunVerdict verdict = run.judge();
    EXPECT_EQ(verdict.verdict, Verdict::fail);
    ASSERT_TRUE(verdict.first_failing.has_value());
    EXPECT_EQ(verdict.first_failing_layer, "fc");
    EXPECT_EQ(verdict.tensors[0].verdict, Verdict::pass);
    EXPECT_EQ(verdict.tensors[2].local->failed, 0) << "the softmax itself is right";
    EXPECT_GT(verdict.tensors[1].pcc, 0.9999) << "correlation sees nothing";
}

TEST(JudgeRun, UnwrittenBytesFailAndMissingOutputsAreMissing) {
    Example run;
    run.unwritten["r"] = 16;
    RunVerdict verdict = run.judge();
    EXPECT_EQ(verdict.verdict, Verdict::fail);
    EXPECT_EQ(verdict.first_failing_layer, "conv");

    Example absent;
    absent.device.erase("y");
    verdict = absent.judge();
    EXPECT_EQ(verdict.verdict, Verdict::miss);

    Example unprobed;
    unprobed.device.erase("r");
    verdict = unprobed.judge();
    EXPECT_EQ(verdict.verdict, Verdict::pass) << "what is not probed is skipped, with its reason";
    EXPECT_EQ(verdict.tensors[0].verdict, Verdict::skip);
    EXPECT_EQ(verdict.tensors[1].verdict, Verdict::pass);
    EXPECT_NE(verdict.tensors[1].reason.find("'r' was not read"), std::string::npos) << verdict.tensors[1].reason;
}

TEST(JudgeRun, PublishedOutputsDecideByValueAndTopClass) {
    Example run;
    Tensor& y = run.published["y"];
    const auto top = std::max_element(y.as<float>().begin(), y.as<float>().end());
    *top *= 1.001f;
    RunVerdict verdict = run.judge();
    EXPECT_EQ(verdict.verdict, Verdict::fail);
    EXPECT_EQ(verdict.outputs[1].verdict, Verdict::fail);
    EXPECT_FALSE(verdict.first_failing.has_value()) << "no layer is wrong in itself";
    run.published["y"].shape = {10};
    EXPECT_EQ(run.judge().outputs[1].verdict, Verdict::fail);
    run.published = {{"nonsense", floats({1}, {1})}};
    EXPECT_THROW(run.judge(), Error);
}

TEST(JudgeRun, AStoredGoldenIsWhatTheDeviceIsComparedWith) {
    const Example run;
    Values stored = run.reference.run(run.inputs);
    EXPECT_EQ(judge_run({run.program, run.reference, run.inputs, run.device, run.unwritten, nullptr, &stored}).verdict, Verdict::pass);
    for (double& v : stored.at("y").f) v *= 1.01;
    EXPECT_EQ(judge_run({run.program, run.reference, run.inputs, run.device, run.unwritten, nullptr, &stored}).verdict, Verdict::fail);
    stored.erase("m");
    EXPECT_EQ(judge_run({run.program, run.reference, run.inputs, run.device, run.unwritten, nullptr, &stored}).tensors[1].verdict,
              Verdict::error);
}

TEST(JudgeRun, AValueThatTheModelLacksIsAnError) {
    Example run;
    run.program.layers[1].outputs = {"ghost"};
    run.device["ghost"] = floats({1}, {1});
    EXPECT_EQ(run.judge().tensors[1].verdict, Verdict::error);
}

TEST(JudgeRun, NothingButShapesIsInconclusive) {
    const Reference reference(ModelBuilder().input("x", DType::f32, {0, 3}).node("Relu", {"x"}, "y").output("y").build());
    simkernel::Program program;
    simkernel::Layer layer;
    layer.name = "relu", layer.nodes = {0}, layer.inputs = {"x"}, layer.outputs = {"y"}, layer.precision = "fp32";
    program.layers = {layer};
    const std::map<std::string, Tensor> inputs{{"x", Tensor(DType::f32, {0, 3})}}, device{{"y", Tensor(DType::f32, {0, 3})}};
    EXPECT_EQ(judge_run({program, reference, inputs, device, {}}).verdict, Verdict::inconclusive);
}

TEST(Global, RatioGradesThreeWays) {
    Value fp64(DType::f32, {1}), emulation(DType::f32, {1});
    fp64.f = {1.0};
    emulation.f = {1.0 + 0x1p-20};  // eight ULP: the yardstick
    const auto verdict = [&](double error) {
        TensorVerdict t;
        judge_global(t, floats({1}, {static_cast<float>(1.0 + error)}), {fp64, fp64, emulation});
        return t.verdict;
    };
    EXPECT_EQ(verdict(0x1p-19), Verdict::pass);
    EXPECT_EQ(verdict(0x1p-19 + 0x1p-22), Verdict::inconclusive);
    EXPECT_EQ(verdict(0x1p-18), Verdict::inconclusive);
    EXPECT_EQ(verdict(0x1p-18 + 0x1p-22), Verdict::fail);
}

TEST(Global, FloorsAtOneUlpWhenTheEmulationIsExact) {
    Value exact(DType::f32, {1});
    exact.f = {1.0};
    const Ratios ratios = global_ratios(floats({1}, {1.0f + 0x1p-23f}), exact, exact, exact);
    EXPECT_EQ(ratios.r_max, 1);
    EXPECT_EQ(ratios.r_rms, 1);
}

TEST(Verdicts, TheWorstWinsAndNothingIsMissing) {
    EXPECT_EQ(worst({}), Verdict::miss);
    const Verdict skipped[] = {Verdict::skip, Verdict::skip};
    EXPECT_EQ(worst(skipped), Verdict::miss);
    const Verdict all[] = {Verdict::skip, Verdict::pass,  Verdict::measured, Verdict::inconclusive,
                           Verdict::miss, Verdict::error, Verdict::fail};
    for (std::size_t n = 2; n <= 7; ++n) EXPECT_EQ(worst(std::span(all, n)), n == 2 || n == 3 ? Verdict::pass : all[n - 1]);
}

}  // namespace
}  // namespace assay::golden
