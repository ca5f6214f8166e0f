// Sampling and detection operators that no published vector covers, worked by hand.
#include <gtest/gtest.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;

std::vector<double> run(const std::shared_ptr<onnx::ModelProto>& model, const std::map<std::string, Tensor>& inputs) {
    return Reference(model).run(inputs).at("y").f;
}

TEST(Regions, MaxRoiPoolTakesWholeElementsWithBothEnds) {
    const auto model = ModelBuilder()
                           .input("x", DType::f32, {1, 1, 4, 4})
                           .constant("rois", floats({2, 5}, {0, 0, 0, 6, 6, 0, 4, 2, 7, 3}))
                           .node("MaxRoiPool", {"x", "rois"}, "y")
                           .ints("pooled_shape", {2, 2})
                           .real("spatial_scale", 0.5f)
                           .output("y")
                           .build();
    std::vector<float> x(16);
    for (std::size_t i = 0; i < 16; ++i) x[i] = static_cast<float>(i);
    // The whole image in quarters; then columns 2 to 4 (past the edge), rows 1 to 2 in one and a half elements a bin: 2..3 and 3 alone.
    EXPECT_EQ(run(model, {{"x", floats({1, 1, 4, 4}, x)}}), (std::vector<double>{5, 7, 13, 15, 7, 7, 11, 11}));
}

TEST(Regions, AffineGridOfATurnAndAShift) {
    const auto model = [](std::int64_t align) {
        return ModelBuilder(20)
            .input("t", DType::f32, {1, 2, 3})
            .constant("size", testing::tensor<std::int64_t>(DType::i64, {4}, {1, 1, 2, 2}))
            .node("AffineGrid", {"t", "size"}, "y")
            .integer("align_corners", align)
            .output("y")
            .build();
    };
    const std::map<std::string, Tensor> inputs{{"t", floats({1, 2, 3}, {0, 1, 0.5f, -1, 0, 0})}};  // (x, y) -> (y + 1/2, -x)
    EXPECT_EQ(run(model(1), inputs), (std::vector<double>{-0.5, 1, -0.5, -1, 1.5, 1, 1.5, -1}));
    EXPECT_EQ(run(model(0), inputs), (std::vector<double>{0, 0.5, 0, -0.5, 1, 0.5, 1, -0.5}));
}

TEST(Regions, DeformConvMovesEachTapAndWeighsIt) {
    // One tap. It reads the element itself, half an element down, one to the right, and outside; the mask halves the last but one.
    const auto model = ModelBuilder(19)
                           .input("x", DType::f32, {1, 1, 2, 2})
                           .constant("w", floats({1, 1, 1, 1}, {10}))
                           .constant("offset", floats({1, 2, 2, 2}, {0, 0.5f, 0, 5, 0, 0, 1, 5}))
                           .constant("b", floats({1}, {1}))
                           .constant("mask", floats({1, 1, 2, 2}, {1, 1, 0.5f, 1}))
                           .node("DeformConv", {"x", "w", "offset", "b", "mask"}, "y")
                           .output("y")
                           .build();
    EXPECT_EQ(run(model, {{"x", floats({1, 1, 2, 2}, {1, 2, 3, 4})}}), (std::vector<double>{11, 31, 21, 1}));
}

TEST(Regions, CubicAndReflectedSamplesOfALine) {
    // Positions -1, 0, 1.5 and 4 of a line 0 1 2 3: -0.5 is the mirror, so -1 reads 0 and 4 reads 3.
    const auto model = [](const char* mode, const char* padding) {
        auto proto = ModelBuilder(20)
                         .input("x", DType::f32, {1, 1, 4})
                         .constant("g", floats({1, 4, 1}, {-1.25f, -0.75f, 0, 1.25f}))
                         .node("GridSample", {"x", "g"}, "y")
                         .output("y")
                         .build();
        for (const auto& [name, value] : {std::pair{"mode", mode}, {"padding_mode", padding}}) {
            auto* a = proto->mutable_graph()->mutable_node(0)->add_attribute();
            a->set_name(name);
            a->set_type(onnx::AttributeProto::STRING);
            a->set_s(value);
        }
        return proto;
    };
    const std::map<std::string, Tensor> line{{"x", floats({1, 1, 4}, {0, 1, 2, 3})}};
    EXPECT_EQ(run(model("linear", "reflection"), line), (std::vector<double>{0, 0, 1.5, 3}));
    EXPECT_EQ(run(model("cubic", "reflection"), line)[2], 1.5) << "a cubic is exact on a straight line";
    EXPECT_EQ(run(model("linear", "border"), line), (std::vector<double>{0, 0, 1.5, 3}));
    EXPECT_EQ(run(model("linear", "zeros"), line), (std::vector<double>{0, 0, 1.5, 0}));
}

}  // namespace
}  // namespace assay::golden
