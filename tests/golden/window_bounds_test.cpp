// Pools, resampling, transposed convolution and recurrent cells: plain float loops written here stay within the bounds, bounds that are no wider
// than a thousand units of roundoff of the largest value, and equal the reference where nothing is rounded.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;
using testing::tensor;

/// `device` within the reference's bounds at every element, and these not absurdly wide.
void expect_bounded(const Reference& reference, const std::map<std::string, Tensor>& inputs, const std::vector<float>& device, const std::string& what) {
    const Value y = reference.evaluate("y", inputs, {"fp32", 0});
    ASSERT_EQ(y.f.size(), device.size()) << what;
    ASSERT_EQ(y.err.size(), device.size()) << what;
    double largest = 0;
    for (const double v : y.f) largest = std::max(largest, std::fabs(v));
    ASSERT_GT(largest, 0) << what << ": nothing was compared";
    for (std::size_t i = 0; i < device.size(); ++i) {
        ASSERT_LE(std::fabs(static_cast<double>(device[i]) - y.f[i]), y.err[i]) << what << " at " << i << ": " << device[i] << " against " << y.f[i];
        ASSERT_LE(y.err[i], 1000 * 0x1p-24 * largest) << what << " at " << i << " of " << y.f[i];
    }
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

TEST(WindowBounds, LpPoolsOfEveryNorm) {
    const Tensor x = random_floats({1, 3, 11, 9}, 21, -3, 3);
    const auto in = x.as<float>();
    for (const int p : {1, 2, 3}) {
        const Reference reference(ModelBuilder(18)
                                      .input("x", DType::f32, x.shape)
                                      .node("LpPool", {"x"}, "y")
                                      .integer("p", p)
                                      .ints("kernel_shape", {3, 2})
                                      .ints("strides", {2, 1})
                                      .ints("dilations", {1, 2})
                                      .ints("pads", {1, 0, 1, 1})
                                      .output("y")
                                      .build());
        std::vector<float> device;
        for (std::int64_t c = 0; c < 3; ++c)
            for (std::int64_t i = 0; i < 6; ++i)
                for (std::int64_t j = 0; j < 8; ++j) {
                    float sum = 0;
                    for (std::int64_t a = 0; a < 3; ++a)
                        for (std::int64_t b = 0; b < 2; ++b) {
                            const std::int64_t row = 2 * i + a - 1, col = j + 2 * b;
                            if (row < 0 || row >= 11 || col >= 9) continue;
                            const float v = std::fabs(in[at((c * 11 + row) * 9 + col)]);
                            sum += p == 1 ? v : p == 2 ? v * v : v * v * v;
                        }
                    device.push_back(p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::exp2(std::log2(sum) * (1.0f / 3)));
                }
        expect_bounded(reference, {{"x", x}}, device, "LpPool p=" + std::to_string(p));
    }
}

TEST(WindowBounds, MaxPoolsIndicesLeadBackThroughMaxUnpool) {
    const Tensor x = random_floats({2, 2, 6, 8}, 22);
    const auto model = [&](int storage) {
        auto proto = ModelBuilder(12)
                         .input("x", DType::f32, x.shape)
                         .node("MaxPool", {"x"}, "p")
                         .ints("kernel_shape", {2, 2})
                         .ints("strides", {2, 2})
                         .integer("storage_order", storage)
                         .node("MaxUnpool", {"p", "i"}, "y")
                         .ints("kernel_shape", {2, 2})
                         .ints("strides", {2, 2})
                         .output("y")
                         .build();
        proto->mutable_graph()->mutable_node(0)->add_output("i");
        return proto;
    };
    const Values rows = Reference(model(0)).run({{"x", x}}), columns = Reference(model(1)).run({{"x", x}});
    int kept = 0;
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const double v = rows.at("y").f[at(i)];
        ASSERT_TRUE(v == 0 || v == x.value(i)) << i;
        kept += v != 0;
    }
    EXPECT_EQ(kept, 2 * 2 * 3 * 4) << "one element a window";
    for (std::size_t i = 0; i < rows.at("i").n.size(); ++i) {
        const std::int64_t index = rows.at("i").n[i], plane = index / 48, row = index % 48 / 8, col = index % 8;
        EXPECT_EQ(columns.at("i").n[i], plane * 48 + col * 6 + row);
    }
}

TEST(WindowBounds, LinearResizeAtHalfPixels) {
    const Tensor x = random_floats({1, 2, 5, 7}, 23);
    const auto in = x.as<float>();
    const Reference reference(ModelBuilder(13)
                                  .input("x", DType::f32, x.shape)
                                  .constant("sizes", tensor<std::int64_t>(DType::i64, {4}, {1, 2, 11, 4}))
                                  .node("Resize", {"x", "", "", "sizes"}, "y")
                                  .output("y")
                                  .build());
    auto proto = ModelBuilder(13).input("x", DType::f32, x.shape).constant("sizes", tensor<std::int64_t>(DType::i64, {4}, {1, 2, 11, 4}))
                     .node("Resize", {"x", "", "", "sizes"}, "y").output("y").build();
    auto* mode = proto->mutable_graph()->mutable_node(0)->add_attribute();
    mode->set_name("mode");
    mode->set_type(onnx::AttributeProto::STRING);
    mode->set_s("linear");
    std::vector<float> device;
    for (std::int64_t c = 0; c < 2; ++c)
        for (std::int64_t i = 0; i < 11; ++i)
            for (std::int64_t j = 0; j < 4; ++j) {
                const auto side = [](std::int64_t o, float scale, std::int64_t n) {
                    const float p = (static_cast<float>(o) + 0.5f) / scale - 0.5f, base = std::floor(p);
                    const auto low = static_cast<std::int64_t>(base);
                    return std::tuple{std::clamp<std::int64_t>(low, 0, n - 1), std::clamp<std::int64_t>(low + 1, 0, n - 1), p - base};
                };
                const auto [r0, r1, tr] = side(i, 11.0f / 5, 5);
                const auto [c0, c1, tc] = side(j, 4.0f / 7, 7);
                const auto v = [&, c = c](std::int64_t r, std::int64_t k) { return in[at((c * 5 + r) * 7 + k)]; };
                const float top = v(r0, c0) * (1 - tc) + v(r0, c1) * tc, bottom = v(r1, c0) * (1 - tc) + v(r1, c1) * tc;
                device.push_back(top * (1 - tr) + bottom * tr);
            }
    expect_bounded(Reference(proto), {{"x", x}}, device, "Resize");
    // Nearest moves elements and rounds nothing.
    const Value nearest = reference.evaluate("y", {{"x", x}}, {"fp32", 0});
    for (const double v : nearest.f) EXPECT_TRUE(std::find(in.begin(), in.end(), static_cast<float>(v)) != in.end());
    EXPECT_TRUE(nearest.err.empty() || *std::max_element(nearest.err.begin(), nearest.err.end()) == 0);
}

TEST(WindowBounds, GridSampleBetweenElements) {
    const Tensor x = random_floats({1, 2, 6, 5}, 24), grid = random_floats({1, 4, 9, 2}, 25, -1.2f, 1.2f);
    const auto in = x.as<float>(), g = grid.as<float>();
    const Reference reference(
        ModelBuilder(20).input("x", DType::f32, x.shape).input("g", DType::f32, grid.shape).node("GridSample", {"x", "g"}, "y").output("y").build());
    std::vector<float> device;
    for (std::int64_t c = 0; c < 2; ++c)
        for (std::int64_t p = 0; p < 36; ++p) {
            const float u = ((g[at(2 * p)] + 1) * 5 - 1) / 2, v = ((g[at(2 * p + 1)] + 1) * 6 - 1) / 2;
            const float u0 = std::floor(u), v0 = std::floor(v);
            const auto element = [&](float row, float col) {
                return row < 0 || row > 5 || col < 0 || col > 4 ? 0.0f : in[at((c * 6 + static_cast<std::int64_t>(row)) * 5 + static_cast<std::int64_t>(col))];
            };
            const float tu = u - u0, tv = v - v0;
            device.push_back((element(v0, u0) * (1 - tu) + element(v0, u0 + 1) * tu) * (1 - tv) +
                             (element(v0 + 1, u0) * (1 - tu) + element(v0 + 1, u0 + 1) * tu) * tv);
        }
    expect_bounded(reference, {{"x", x}, {"g", grid}}, device, "GridSample");
}

TEST(WindowBounds, ConvTransposeAsItIsDefined) {
    // Each input spreads over the outputs that a convolution would have read it for; two groups, stride 2, padding.
    const Tensor x = random_floats({1, 4, 5, 4}, 26), w = random_floats({4, 3, 3, 2}, 27), b = random_floats({6}, 28);
    const Reference reference(ModelBuilder()
                                  .input("x", DType::f32, x.shape)
                                  .constant("w", w)
                                  .constant("b", b)
                                  .node("ConvTranspose", {"x", "w", "b"}, "y")
                                  .integer("group", 2)
                                  .ints("strides", {2, 1})
                                  .ints("pads", {1, 0, 1, 1})
                                  .ints("output_padding", {1, 0})
                                  .output("y")
                                  .build());
    const std::int64_t rows = 2 * 4 + 1 + 3 - 2, cols = 3 + 2 - 1;
    std::vector<float> device(at(6 * rows * cols), 0.0f);
    for (std::int64_t c = 0; c < 4; ++c)
        for (std::int64_t i = 0; i < 5; ++i)
            for (std::int64_t j = 0; j < 4; ++j)
                for (std::int64_t o = 0; o < 3; ++o)
                    for (std::int64_t p = 0; p < 3; ++p)
                        for (std::int64_t q = 0; q < 2; ++q) {
                            const std::int64_t r = 2 * i + p - 1, s = j + q, filter = c / 2 * 3 + o;
                            if (r < 0 || r >= rows || s >= cols) continue;
                            float& out = device[at((filter * rows + r) * cols + s)];
                            out = std::fma(x.as<float>()[at((c * 5 + i) * 4 + j)], w.as<float>()[at(((c * 3 + o) * 3 + p) * 2 + q)], out);
                        }
    for (std::int64_t f = 0; f < 6; ++f)
        for (std::int64_t i = 0; i < rows * cols; ++i) device[at(f * rows * cols + i)] += b.as<float>()[at(f)];
    expect_bounded(reference, {{"x", x}}, device, "ConvTranspose");
}

TEST(WindowBounds, AnLstmOverThreeSteps) {
    constexpr std::int64_t kSteps = 3, kInputs = 4, kHidden = 5;
    const Tensor x = random_floats({kSteps, 1, kInputs}, 29), w = random_floats({1, 4 * kHidden, kInputs}, 30), r = random_floats({1, 4 * kHidden, kHidden}, 31),
                 b = random_floats({1, 8 * kHidden}, 32);
    const Reference reference(ModelBuilder(14)
                                  .input("x", DType::f32, x.shape)
                                  .constant("w", w)
                                  .constant("r", r)
                                  .constant("b", b)
                                  .node("LSTM", {"x", "w", "r", "b"}, "y")
                                  .integer("hidden_size", kHidden)
                                  .output("y")
                                  .build());
    std::vector<float> h(kHidden, 0.0f), c(kHidden, 0.0f), device;
    const auto sigmoid = [](float v) { return 1 / (1 + std::exp2(v * -1.44269504f)); };
    const auto tanh = [](float v) { return 1 - 2 / (1 + std::exp2(v * 2.88539008f)); };
    for (std::int64_t t = 0; t < kSteps; ++t) {
        const std::vector<float> before = h;
        for (std::int64_t i = 0; i < kHidden; ++i) {
            float gate[4];  // i, o, f, c
            for (std::int64_t g = 0; g < 4; ++g) {
                float a = 0, s = 0;
                for (std::int64_t k = 0; k < kInputs; ++k) a = std::fma(x.as<float>()[at(t * kInputs + k)], w.as<float>()[at((g * kHidden + i) * kInputs + k)], a);
                for (std::int64_t k = 0; k < kHidden; ++k) s = std::fma(before[at(k)], r.as<float>()[at((g * kHidden + i) * kHidden + k)], s);
                gate[g] = a + b.as<float>()[at(g * kHidden + i)] + (s + b.as<float>()[at((4 + g) * kHidden + i)]);
            }
            c[at(i)] = sigmoid(gate[2]) * c[at(i)] + sigmoid(gate[0]) * tanh(gate[3]);
            h[at(i)] = sigmoid(gate[1]) * tanh(c[at(i)]);
        }
        device.insert(device.end(), h.begin(), h.end());
    }
    expect_bounded(reference, {{"x", x}}, device, "LSTM");
}

TEST(WindowBounds, SizesThatDoNotFitAreRefusedAndNotRead) {
    const auto refused = [](const std::shared_ptr<onnx::ModelProto>& model, const std::map<std::string, Tensor>& inputs) {
        try {
            Reference(model).run(inputs);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::bad_input);
            return std::string(error.what());
        }
        ADD_FAILURE() << "no Error was thrown";
        return std::string();
    };
    const Tensor x = random_floats({1, 1, 2}, 33);
    const auto lstm = ModelBuilder(14)
                          .input("x", DType::f32, x.shape)
                          .constant("w", Tensor(DType::f32, {1, 8, 2}))
                          .constant("r", Tensor(DType::f32, {1, 8, 2}))
                          .constant("b", Tensor(DType::f32, {1, 3}))
                          .node("LSTM", {"x", "w", "r", "b"}, "y")
                          .output("y")
                          .build();
    EXPECT_NE(refused(lstm, {{"x", x}}).find("node 'y' (LSTM-14): input 3 has shape 1x3, needs 16 elements"), std::string::npos);
    const auto unpool = ModelBuilder(11)
                            .input("x", DType::f32, {1, 1, 2})
                            .constant("i", tensor<std::int64_t>(DType::i64, {1, 1, 2}, {0, 99}))
                            .node("MaxUnpool", {"x", "i"}, "y")
                            .ints("kernel_shape", {2})
                            .ints("strides", {2})
                            .output("y")
                            .build();
    EXPECT_NE(refused(unpool, {{"x", x}}).find("index 99 is outside the output 1x1x4"), std::string::npos);
    const auto huge = ModelBuilder(13)
                          .input("x", DType::f32, {1, 1, 2})
                          .constant("s", floats({3}, {1, 1, 1e9f}))
                          .node("Resize", {"x", "", "s"}, "y")
                          .output("y")
                          .build();
    EXPECT_NE(refused(huge, {{"x", x}}).find("node 'y' (Resize-13)"), std::string::npos);
}

}  // namespace
}  // namespace assay::golden
