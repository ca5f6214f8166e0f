// The reference's own errors and hand-worked cases that no published vector covers.
#include "golden/reference/reference.hpp"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;

std::string message_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no Error was thrown";
    return "";
}

Tensor run(const std::shared_ptr<onnx::ModelProto>& model, const std::map<std::string, Tensor>& inputs) {
    return to_tensor(Reference(model).run(inputs).at("y"));
}

TEST(Reference, NamesEveryUnsupportedNodeAtOnce) {
    const auto model = ModelBuilder().input("x", DType::f32, {1}).node("Foo", {"x"}, "a").node("Bar", {"a"}, "y").output("y").build();
    const std::string text = message_of([&] { Reference(model, "m.onnx"); });
    EXPECT_NE(text.find("m.onnx: node 'a' (Foo-13): the operator is not supported"), std::string::npos) << text;
    EXPECT_NE(text.find("node 'y' (Bar-13)"), std::string::npos) << text;
}

TEST(Reference, NamesAnUnknownAttributeAndAnOperatorThatIsTooNew) {
    const auto attribute = ModelBuilder().input("x", DType::f32, {1}).node("Relu", {"x"}, "y").real("slope", 1).output("y").build();
    EXPECT_EQ(message_of([&] {
                  run(attribute, {{"x", floats({1}, {1})}});
              }),
              "model: node 'y' (Relu-13): attribute 'slope' is not supported");
    const auto early = ModelBuilder(9)
                           .input("x", DType::i8, {1})
                           .constant("s", floats({}, {1}))
                           .node("DequantizeLinear", {"x", "s"}, "y")
                           .output("y")
                           .build();
    EXPECT_NE(message_of([&] { Reference{early}; }).find("(DequantizeLinear-9)"), std::string::npos);
}

TEST(Reference, NamesInputsThatAreMissingUnknownOrDoNotFit) {
    const auto model =
        ModelBuilder().input("a", DType::f32, {2}).input("b", DType::f32, {2}).node("Add", {"a", "b"}, "y").output("y").build();
    const std::string text = message_of([&] { run(model, {{"a", floats({3}, {1, 2, 3})}, {"c", floats({2}, {1, 2})}}); });
    EXPECT_NE(text.find("input 'a': float32 of shape 3, the model takes float32 of shape 2"), std::string::npos) << text;
    EXPECT_NE(text.find("input 'b': missing"), std::string::npos) << text;
    EXPECT_NE(text.find("input 'c': the model has no such input"), std::string::npos) << text;
}

TEST(Reference, RefusesCyclesUndefinedValuesAndValuesMadeTwice) {
    const auto cycle = ModelBuilder().input("x", DType::f32, {1}).node("Add", {"x", "y"}, "z").node("Relu", {"z"}, "y").output("y").build();
    EXPECT_NE(message_of([&] { Reference{cycle}; }).find("input 'y' is not made by any earlier node"), std::string::npos);
    const auto twice = ModelBuilder().input("x", DType::f32, {1}).node("Relu", {"x"}, "y").node("Neg", {"x"}, "y").output("y").build();
    EXPECT_NE(message_of([&] { Reference{twice}; }).find("made twice"), std::string::npos);
    const auto none = ModelBuilder().input("x", DType::f32, {1}).node("Relu", {"x"}, "y").output("q").build();
    EXPECT_NE(message_of([&] { Reference{none}; }).find("output 'q'"), std::string::npos);
}

TEST(Reference, AShapeThatDoesNotFitNamesTheNode) {
    const auto model = ModelBuilder()
                           .input("x", DType::f32, {1, 3, 4, 4})
                           .constant("w", Tensor(DType::f32, {2, 4, 3, 3}))
                           .node("Conv", {"x", "w"}, "y")
                           .output("y")
                           .build();
    EXPECT_NE(message_of([&] {
                  run(model, {{"x", Tensor(DType::f32, {1, 3, 4, 4})}});
              }).find("node 'y' (Conv-11): group=1"),
              std::string::npos);
    const auto huge = ModelBuilder().input("x", DType::i64, {1}).node("ConstantOfShape", {"x"}, "y").output("y").build();
    EXPECT_NE(message_of([&] {
                  run(huge, {{"x", testing::tensor<std::int64_t>(DType::i64, {1}, {std::int64_t{1} << 40})}});
              }).find("node 'y'"),
              std::string::npos);
}

TEST(Reference, NonFiniteWeightsWarnAndTheRunGoesOn) {
    const Reference reference(
        ModelBuilder().input("x", DType::f32, {2}).constant("w", floats({2}, {NAN, 1})).node("Add", {"x", "w"}, "y").output("y").build());
    ASSERT_EQ(reference.warnings().size(), 1u);
    EXPECT_EQ(reference.warnings()[0], "model: tensor 'w' holds 1 non-finite values");
    const Values values = reference.run({{"x", floats({2}, {1, 1})}});
    EXPECT_TRUE(std::isnan(values.at("y").f[0]));
    EXPECT_EQ(values.at("y").f[1], 2);
}

TEST(Reference, SoftmaxBeforeVersion13FlattensToAMatrix) {
    const Tensor x = floats({1, 2, 2}, {0, 0, 0, 0});
    const auto model = [&](int opset) {
        return ModelBuilder(opset).input("x", DType::f32, {1, 2, 2}).node("Softmax", {"x"}, "y").integer("axis", 1).output("y").build();
    };
    EXPECT_EQ(run(model(11), {{"x", x}}).value(0), 0.25) << "over all that follows the axis";
    EXPECT_EQ(run(model(13), {{"x", x}}).value(0), 0.5) << "along the axis alone";
}

TEST(Reference, AsymmetricPadsAndDilationOfAConvolution) {
    // One row 1 2 3, kernel (1, 10) dilated by 2, one zero before: 0*1+2*10, 1*1+3*10.
    const auto model = ModelBuilder()
                           .input("x", DType::f32, {1, 1, 3})
                           .constant("w", floats({1, 1, 2}, {1, 10}))
                           .node("Conv", {"x", "w"}, "y")
                           .ints("dilations", {2})
                           .ints("pads", {1, 0})
                           .output("y")
                           .build();
    const Tensor y = run(model, {{"x", floats({1, 1, 3}, {1, 2, 3})}});
    ASSERT_EQ(y.shape, Shape({1, 1, 2}));
    EXPECT_EQ(y.value(0), 20);
    EXPECT_EQ(y.value(1), 31);
}

TEST(Reference, ReshapeCopiesZerosInfersOneAndRefusesTheRest) {
    const auto model = [](const std::vector<std::int64_t>& shape) {
        return ModelBuilder()
            .input("x", DType::f32, {2, 3})
            .constant("s", testing::tensor<std::int64_t>(DType::i64, {static_cast<std::int64_t>(shape.size())}, shape))
            .node("Reshape", {"x", "s"}, "y")
            .output("y")
            .build();
    };
    const std::map<std::string, Tensor> inputs{{"x", Tensor(DType::f32, {2, 3})}};
    EXPECT_EQ(run(model({0, -1, 1}), inputs).shape, Shape({2, 3, 1}));
    EXPECT_NE(message_of([&] { run(model({4, -1}), inputs); }).find("does not divide"), std::string::npos);
    EXPECT_NE(message_of([&] { run(model({-1, -1}), inputs); }).find("more than one -1"), std::string::npos);
    EXPECT_NE(message_of([&] { run(model({7}), inputs); }).find("needs 7"), std::string::npos);
}

TEST(Reference, IntegerDivisionByZeroIsAnErrorAndNotACrash) {
    const auto model = ModelBuilder()
                           .input("x", DType::i32, {1})
                           .constant("z", testing::tensor<std::int32_t>(DType::i32, {1}, {0}))
                           .node("Div", {"x", "z"}, "y")
                           .output("y")
                           .build();
    EXPECT_NE(message_of([&] {
                  run(model, {{"x", testing::tensor<std::int32_t>(DType::i32, {1}, {3})}});
              }).find("division by zero"),
              std::string::npos);
}

}  // namespace
}  // namespace assay::golden
