// What the compiler cannot do, and how it says so: text and place are pinned here.
#include <gtest/gtest.h>

#include <limits>

#include "model_builder.hpp"
#include "run_program.hpp"
#include "support/error.hpp"

namespace assay::workloads::testing {
namespace {

CompileOptions nano() {
    CompileOptions options;
    options.chip = preset("aurum-nano");
    return options;
}

std::vector<std::string> problems(const ModelBuilder& m, const CompileOptions& options = nano()) {
    std::vector<std::string> texts;
    for (const Problem& p : check(m.model, {"dir/model.onnx", ""}, options).problems) texts.push_back(p.text);
    return texts;
}

std::string refusal(const ModelBuilder& m, const CompileOptions& options = nano()) {
    try {
        (void)compile(m.model, {"dir/model.onnx", ""}, options);
    } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::usage);
        return error.what();
    }
    return "accepted";
}

/// Why each node that would run on the host does.
std::vector<std::string> fallback(const ModelBuilder& m, const CompileOptions& options = nano()) {
    std::vector<std::string> texts;
    for (const Problem& p : check(m.model, {"dir/model.onnx", ""}, options).fallback) texts.push_back(p.text);
    return texts;
}

ModelBuilder unary(const std::string& op, const Shape& shape = {1, 4, 6, 6}, int opset = 13) {
    ModelBuilder m(opset);
    m.input("x", shape).output("y");
    m.node(op, {"x"}, {"y"});
    return m;
}

TEST(Messages, EveryProblemIsListedAtOnceWithItsNode) {
    ModelBuilder m;
    m.input("x", {1, 4, 6, 6}).output("y").output("z");
    m.node("RandomUniformLike", {"x"}, {"a"});
    m.node("Relu", {"a"}, {"y"});  // depends on what fails: not reported
    m.node("Foo", {"x"}, {"z"});
    EXPECT_EQ(problems(m), (std::vector<std::string>{
                               "model.onnx: node 'a_node' (RandomUniformLike-1): a random operator: its result is not a function of its inputs",
                               "model.onnx: node 'z_node' (Foo-13): the operator is not supported; rewrite the model without it"}));
    EXPECT_EQ(refusal(m), problems(m)[0] + "\n" + problems(m)[1]);
}

TEST(Messages, AnOperatorOfAnotherDomain) {
    ModelBuilder m = unary("Gelu");
    m.model.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
    EXPECT_EQ(problems(m),
              (std::vector<std::string>{
                  "model.onnx: node 'y_node' (com.microsoft.Gelu): the operator is not supported; rewrite the model without it"}));
}

TEST(Messages, Attributes) {
    {
        ModelBuilder m;
        m.input("x", {1, 2}).constant("p", make_tensor<std::int64_t>(DType::i64, {4}, std::vector<std::int64_t>{0, 1, 0, 1})).output("y");
        attribute(m.node("Pad", {"x", "p"}, {"y"}), "mode", "mirror");
        EXPECT_EQ(refusal(m), "model.onnx: node 'y_node' (Pad-13): mode=\"mirror\" is unknown; use constant, edge, reflect or wrap");
    }
    {
        ModelBuilder m = unary("MaxPool");
        auto* node = m.model.mutable_graph()->mutable_node(0);
        attribute(*node, "kernel_shape", {2, 2});
        attribute(*node, "auto_pad", "SAME");
        EXPECT_EQ(refusal(m),
                  "model.onnx: node 'y_node' (MaxPool-12): auto_pad=\"SAME\" is unknown; use NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    }
    {
        ModelBuilder m = unary("Softmax");
        attribute(*m.model.mutable_graph()->mutable_node(0), "axis", std::int64_t{4});
        EXPECT_EQ(refusal(m), "model.onnx: node 'y_node' (Softmax-13): axis 4 is out of range for 4 dimensions; repair the model");
    }
}

TEST(Messages, Shapes) {
    ModelBuilder m;
    m.input("x", {1, 3, 8, 8}).constant("w", Tensor(DType::f32, {4, 2, 3, 3})).output("y");
    m.node("Conv", {"x", "w"}, {"y"});
    EXPECT_EQ(refusal(m), "model.onnx: node 'y_node' (Conv-11): 3 channels in 1 groups do not fit the weight 4x2x3x3; repair the model");
    ModelBuilder small;
    small.input("x", {1, 2, 2, 8}).constant("w", Tensor(DType::f32, {4, 2, 3, 3})).output("y");
    small.node("Conv", {"x", "w"}, {"y"});
    EXPECT_EQ(refusal(small), "model.onnx: node 'y_node' (Conv-11): a window of 3 does not fit the padded input of 2; repair the model");
    ModelBuilder add;
    add.input("x", {2, 3}).input("b", {4}).output("y");
    add.node("Add", {"x", "b"}, {"y"});
    EXPECT_EQ(refusal(add), "model.onnx: node 'y_node' (Add-13): 2x3 and 4 do not broadcast; repair the model");
}

TEST(Messages, DynamicDimensions) {
    ModelBuilder m = unary("Relu", {0, 4});
    EXPECT_EQ(refusal(m), "model.onnx: input 'x' dimension 0 ('N') is dynamic and not bound; give --dim N=SIZE or an input tensor");
    CompileOptions bound = nano();
    bound.dims["N"] = 3;
    EXPECT_EQ(refusal(m, bound), "accepted");
    bound.input_shapes["x"] = {2, 4};
    EXPECT_EQ(refusal(m, bound), "model.onnx: input 'x' dimension 0 ('N') is 2 in the tensor given, but 3 here; give one of that size");
    bound.input_shapes["x"] = {3, 4, 1};
    EXPECT_EQ(refusal(m, bound),
              "model.onnx: input 'x' is given as 3x4x1, but the model declares 2 dimensions; give a tensor of that rank");
}

TEST(Messages, TheModelAsAWhole) {
    EXPECT_EQ(refusal(unary("Relu", {1, 4}, 6)), "model.onnx: opset 6 is not supported, allowed: 7 and newer; convert the model");
    ModelBuilder cycle;
    cycle.input("x", {1}).output("y");
    cycle.node("Add", {"x", "y"}, {"a"});
    cycle.node("Relu", {"a"}, {"y"});
    EXPECT_EQ(refusal(cycle), "model.onnx: node 'a_node' lies on a cycle; an ONNX graph has none");
    ModelBuilder missing = unary("Relu");
    missing.model.mutable_graph()->mutable_node(0)->set_input(0, "nowhere");
    EXPECT_EQ(refusal(missing), "model.onnx: node 'y_node' reads 'nowhere', which nothing defines; repair the model");
    ModelBuilder twice = unary("Relu");
    twice.node("Tanh", {"x"}, {"y"});
    EXPECT_EQ(refusal(twice), "model.onnx: value 'y' is defined twice; the second time by node 'y_node'");
    ModelBuilder pass;
    pass.input("x", {1}).output("x");
    EXPECT_EQ(refusal(pass), "accepted") << "the input is handed over as it is";
    CompileOptions options = nano();
    options.precision = "fp4";
    EXPECT_EQ(refusal(unary("Relu"), options), "precision 'fp4' is unknown; use one of native, bf16, fp16, fp8, fp8:e5m2, int8, w8, w4");
}

TEST(Messages, Values) {
    Tensor w(DType::f32, {4, 4, 1, 1});
    w.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
    ModelBuilder m;
    m.input("x", {1, 4, 6, 6}).constant("w", w).output("y");
    m.node("Conv", {"x", "w"}, {"y"});
    EXPECT_EQ(refusal(m), "model.onnx: node 'y_node' (Conv-11): weight 'w' holds nan at element 5; repair the model");
    ModelBuilder q;
    q.input("x", {1, 4}).input("s", {1}).output("y");
    q.node("QuantizeLinear", {"x", "s"}, {"y"});
    EXPECT_EQ(fallback(q).at(0),
              "model.onnx: node 'y_node' (QuantizeLinear): runs on the host: scale and zero point must be constants; export with static quantisation");
    ModelBuilder dynamic;
    dynamic.input("x", {1, 4, 6, 6}).input("w", {4, 4, 1, 1}).output("y");
    dynamic.node("Conv", {"x", "w"}, {"y"});
    EXPECT_EQ(fallback(dynamic).at(0),
              "model.onnx: node 'y_node' (Conv): runs on the host: a weight computed at run time is not supported; make it an initialiser");
}

TEST(Messages, WhatDoesNotFitTheChip) {
    const ModelBuilder rows = unary("Softmax", {1, 9000});
    EXPECT_EQ(fallback(rows).at(0),
              "model.onnx: node 'y_node' (Softmax): runs on the host: a row of 9000 elements needs 216320 scratchpad bytes, the chip has 65536; use a "
              "larger chip");
}

TEST(Messages, WhatRunsOnTheHostAndWhy) {
    ModelBuilder m;
    m.input("x", {1, 4}, DType::f64).output("y");
    m.node("Identity", {"x"}, {"y"});
    EXPECT_EQ(fallback(m), (std::vector<std::string>{"model.onnx: node 'y_node' (Identity): runs on the host: a tensor of type float64 at run time is "
                                                     "not supported; use float32, int8, uint8 or int32"}));
    EXPECT_TRUE(fallback(unary("Relu")).empty());
}

}  // namespace
}  // namespace assay::workloads::testing
