// One model on one core and on several: the same bits of every tensor, legal, free of races (run_program's sanitizer watches).
#include <gtest/gtest.h>

#include <set>

#include "model_builder.hpp"
#include "run_program.hpp"
#include "support/error.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::workloads::testing {
namespace {

using Inputs = std::map<std::string, Tensor>;

std::set<std::uint32_t> cores_of(const simkernel::Program& program) {
    std::set<std::uint32_t> cores;
    for (const auto& words : program.descriptors) cores.insert(simkernel::decode_common_fields(words).core);
    return cores;
}

/// Compiles for 1, 2, 3 and 4 cores of the chip and compares every tensor. Not every number of cores pays for every layer, but one core never
/// does for these.
void same_bits(const ModelBuilder& model, const Inputs& inputs, const std::string& chip, const std::string& precision = "native") {
    CompileOptions options;
    options.chip = preset(chip);
    options.chip.cores = 4;
    options.precision = precision;
    if (find_policy(precision).calibrated()) {  // ranges of tensors: some that hold every value
        for (const auto& [name, tensor] : inputs) options.ranges[name] = {-8, 8};
        for (const auto& node : model.model.graph().node()) options.ranges[node.output(0)] = {-64, 64};
    }
    const RunResult one = compile_and_run(model.model, options, inputs);
    EXPECT_EQ(cores_of(one.program), (std::set<std::uint32_t>{0}));
    ASSERT_FALSE(one.tensors.empty());
    for (const std::uint32_t cores : {2u, 3u, 4u}) {
        options.cores = cores;
        const RunResult several = compile_and_run(model.model, options, inputs);
        EXPECT_GT(cores_of(several.program).size(), 1u) << chip;
        EXPECT_LE(cores_of(several.program).size(), cores) << chip;
        ASSERT_EQ(several.tensors.size(), one.tensors.size());
        for (const auto& [name, tensor] : one.tensors) EXPECT_EQ(several.tensors.at(name), tensor) << name << " on " << cores << " cores of " << chip;
        std::uint32_t next = 0;
        for (const simkernel::Layer& layer : several.program.layers) {
            EXPECT_EQ(layer.first_descriptor, next) << layer.name;
            next = layer.first_descriptor + layer.descriptor_count;
        }
        EXPECT_EQ(next, several.program.descriptors.size());
        for (std::uint32_t i = 0; i < next; ++i) {
            const auto& layer = several.program.layers[several.program.debug[i].layer];
            EXPECT_TRUE(i >= layer.first_descriptor && i < layer.first_descriptor + layer.descriptor_count);
        }
    }
}

TEST(Cores, ConvolutionsByRowsAndByOutputs) {
    std::mt19937 engine(41);
    for (const char* chip : {"aurum-nano", "aurum-edge"})
        for (const std::string& precision : policy_names()) {
            const Tensor x = random_floats(engine, {1, 5, 24, 24}), w = random_floats(engine, {40, 5, 3, 3}), v = random_floats(engine, {70, 40, 1, 1});
            ModelBuilder m;
            m.input("x", x.shape).constant("w", w).constant("v", v).output("y");
            auto& conv = m.node("Conv", {"x", "w"}, {"c"});
            attribute(conv, "pads", std::vector<std::int64_t>{1, 1, 1, 1});
            m.node("Relu", {"c"}, {"r"});
            m.node("Conv", {"r", "v"}, {"y"});
            same_bits(m, {{"x", x}}, chip, precision);
        }
}

TEST(Cores, FewRowsAndManyOutputsAreDealtOutByBlocks) {
    std::mt19937 engine(42);
    const Tensor x = random_floats(engine, {3, 300}), w = random_floats(engine, {300, 200});
    ModelBuilder m;
    m.input("x", x.shape).constant("w", w).output("y");
    m.node("MatMul", {"x", "w"}, {"y"});
    for (const char* chip : {"aurum-nano", "aurum-edge"})
        for (const std::string& precision : policy_names()) same_bits(m, {{"x", x}}, chip, precision);
}

TEST(Cores, HeadsOfAttention) {
    std::mt19937 engine(43);
    const Tensor q = random_floats(engine, {1, 4, 20, 16}), k = random_floats(engine, {1, 4, 16, 20}), v = random_floats(engine, {1, 4, 20, 16});
    ModelBuilder m;
    m.input("q", q.shape).input("k", k.shape).input("v", v.shape).output("y");
    m.node("MatMul", {"q", "k"}, {"s"});
    auto& softmax = m.node("Softmax", {"s"}, {"p"});
    attribute(softmax, "axis", std::int64_t{-1});
    m.node("MatMul", {"p", "v"}, {"y"});
    for (const char* chip : {"aurum-nano", "aurum-edge"}) same_bits(m, {{"q", q}, {"k", k}, {"v", v}}, chip);
}

TEST(Cores, PoolsReductionsAndElementwiseWork) {
    std::mt19937 engine(44);
    const Tensor x = random_floats(engine, {2, 40, 24, 24}), b = random_floats(engine, {1, 40, 1, 1});
    ModelBuilder m;
    m.input("x", x.shape).constant("b", b).output("a").output("p").output("g").output("r").output("t");
    m.node("Mul", {"x", "b"}, {"e"});
    m.node("Tanh", {"e"}, {"a"});
    auto& pool = m.node("MaxPool", {"a"}, {"p"});
    attribute(pool, "kernel_shape", std::vector<std::int64_t>{3, 3});
    attribute(pool, "strides", std::vector<std::int64_t>{2, 2});
    m.node("GlobalAveragePool", {"a"}, {"g"});
    auto& mean = m.node("ReduceMean", {"a"}, {"r"});
    attribute(mean, "axes", std::vector<std::int64_t>{2});
    auto& transpose = m.node("Transpose", {"a"}, {"t"});
    attribute(transpose, "perm", std::vector<std::int64_t>{3, 1, 0, 2});
    for (const char* chip : {"aurum-nano", "aurum-edge"}) same_bits(m, {{"x", x}}, chip);
}

TEST(Cores, IntegerLayersAndReusedMemory) {
    std::mt19937 engine(45);
    const Tensor x = random_integers(engine, {1, 8, 20, 20}, DType::u8, 0, 255), w = random_integers(engine, {24, 8, 3, 3}, DType::i8, -127, 127);
    const Tensor v = random_integers(engine, {24, 24, 3, 3}, DType::i8, -127, 127);
    ModelBuilder m;
    m.input("x", x.shape, DType::u8).constant("w", w).constant("v", v).output("z");
    m.scalar("s", 0.02f).zero_point("xz", 7, DType::u8).zero_point("wz", 0, DType::i8);
    m.node("QLinearConv", {"x", "s", "xz", "w", "s", "wz", "s", "xz"}, {"c"});
    std::string from = "c";
    for (int i = 0; i < 3; ++i) {  // memory of a tensor that is dead is used again
        const std::string to = i == 2 ? "z" : "c" + std::to_string(i);
        auto& conv = m.node("QLinearConv", {from, "s", "xz", "v", "s", "wz", "s", "xz"}, {to});
        attribute(conv, "pads", std::vector<std::int64_t>{1, 1, 1, 1});
        from = to;
    }
    CompileOptions options;
    options.chip = preset("aurum-nano");
    options.chip.cores = 4;
    options.probes_all = false;
    std::map<std::string, Tensor> first;
    for (const std::uint32_t cores : {1u, 2u, 4u}) {
        options.cores = cores;
        const RunResult run = compile_and_run(m.model, options, {{"x", x}});
        EXPECT_EQ(cores_of(run.program).size() > 1, cores > 1);
        if (cores == 1) first = run.tensors;
        EXPECT_EQ(run.tensors.at("z"), first.at("z")) << cores;
    }
}

TEST(Cores, MoreThanTheChipHasOrCanSynchroniseAreRefused) {
    ModelBuilder m;
    m.input("x", {4}).output("y");
    m.node("Relu", {"x"}, {"y"});
    CompileOptions options;
    options.chip = preset("aurum-dc");
    const auto refusal = [&](std::uint32_t cores) {
        options.cores = cores;
        try {
            (void)compile(m.model, {"model.onnx", ""}, options);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refusal(0), "cores = 0: 'aurum-dc' has 4; use 1 to 4");
    EXPECT_EQ(refusal(5), "cores = 5: 'aurum-dc' has 4; use 1 to 4");
    EXPECT_EQ(refusal(4), "accepted");
    options.chip.cores = 6;
    options.chip.semaphores = 8;
    EXPECT_EQ(refusal(5), "cores = 5: they need 10 shared semaphores, 'aurum-dc' has 8; use --cores 4 or --set semaphores=10");
    EXPECT_EQ(refusal(4), "accepted");
}

TEST(Cores, ALayerTooSmallToShareStaysOnOneCore) {
    const Tensor x(DType::f32, {1, 4});
    ModelBuilder m;
    m.input("x", x.shape).output("y");
    m.node("Relu", {"x"}, {"y"});
    CompileOptions options;
    options.chip = preset("aurum-dc");
    options.cores = 4;
    EXPECT_EQ(cores_of(compile(m.model, {"model.onnx", ""}, options)), (std::set<std::uint32_t>{0}));
}

}  // namespace
}  // namespace assay::workloads::testing
