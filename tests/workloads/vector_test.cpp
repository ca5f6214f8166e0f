// Elementwise, pooling, softmax and data movement against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

CompileOptions on(const char* chip) {
    CompileOptions options;
    options.chip = preset(chip);
    return options;
}

Tensor run_one(ModelBuilder& m, const std::map<std::string, Tensor>& inputs, const char* chip = "aurum-nano") {
    return compile_and_run(m.model, on(chip), inputs).tensors.at("y");
}

/// Index of output element i in a tensor of `shape` broadcast to `out`.
std::int64_t broadcast_index(std::int64_t i, const Shape& out, const Shape& shape) {
    std::int64_t at = 0, stride = 1;
    for (std::size_t d = 0; d < out.size(); ++d) {
        const std::int64_t extent = out[out.size() - 1 - d], index = i % extent;
        i /= extent;
        if (d < shape.size()) {
            if (shape[shape.size() - 1 - d] != 1) at += index * stride;
            stride *= shape[shape.size() - 1 - d];
        }
    }
    return at;
}

TEST(Elementwise, EveryBroadcastOfEveryOperation) {
    const std::pair<Shape, Shape> shapes[] = {{{2, 3, 5, 7}, {2, 3, 5, 7}},
                                              {{2, 3, 5, 7}, {3, 1, 1}},
                                              {{2, 3, 5, 7}, {1}},
                                              {{1, 3, 1, 7}, {2, 1, 5, 1}},
                                              {{4, 1}, {1, 6}},
                                              {{3, 2, 2, 2, 2, 3}, {2, 1, 2, 1, 3}},
                                              {{70, 90}, {90}}};
    const std::pair<const char*, double (*)(double, double)> operations[] = {
        {"Add", [](double a, double b) { return a + b; }},          {"Sub", [](double a, double b) { return a - b; }},
        {"Mul", [](double a, double b) { return a * b; }},          {"Div", [](double a, double b) { return a / b; }},
        {"Min", [](double a, double b) { return std::min(a, b); }}, {"Max", [](double a, double b) { return std::max(a, b); }}};
    std::mt19937 engine(21);
    int checked = 0;
    for (const auto& [sa, sb] : shapes)
        for (const auto& [op, function] : operations)
            for (const bool constant : {false, true}) {
                const Tensor a = random_floats(engine, sa, 0.5f, 2.0f), b = random_floats(engine, sb, -2.0f, -0.5f);
                ModelBuilder m;
                m.input("a", sa).output("y");
                if (constant)
                    m.constant("b", b);
                else
                    m.input("b", sb);
                m.node(op, {"a", "b"}, {"y"});
                std::map<std::string, Tensor> inputs{{"a", a}};
                if (!constant) inputs["b"] = b;
                const Tensor y = run_one(m, inputs);
                for (std::int64_t i = 0; i < y.count(); ++i, ++checked) {
                    const double g = function(a.value(broadcast_index(i, y.shape, sa)), b.value(broadcast_index(i, y.shape, sb)));
                    ASSERT_EQ(y.as<float>()[i], static_cast<float>(g))
                        << op << " of " << to_string(sa) << " and " << to_string(sb) << " at " << i;
                }
            }
    EXPECT_GT(checked, 10000);
}

TEST(Activations, StayWithinTheirUlp) {
    struct Case {
        const char* op;
        double (*function)(double);
        double ulp;       ///< relative allowance in units of 2^-24
        double absolute;  ///< and an absolute one
    };
    const Case cases[] = {{"Relu", [](double x) { return std::max(x, 0.0); }, 0, 0},
                          {"LeakyRelu", [](double x) { return x < 0 ? static_cast<double>(0.01f) * x : x; }, 1, 0},
                          {"HardSigmoid", [](double x) { return std::clamp(static_cast<double>(0.2f) * x + 0.5, 0.0, 1.0); }, 1, 0x1p-24},
                          {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 6, 0x1p-126},
                          {"Tanh", [](double x) { return std::tanh(x); }, 6, 0x1p-22}};
    std::mt19937 engine(22);
    for (const Case& c : cases) {
        const Tensor x = random_floats(engine, {3, 333}, -95, 95);
        ModelBuilder m;
        m.input("x", x.shape).output("y");
        m.node(c.op, {"x"}, {"y"});
        const Tensor y = run_one(m, {{"x", x}});
        for (std::int64_t i = 0; i < y.count(); ++i) {
            const double g = c.function(x.value(i));
            ASSERT_NEAR(y.value(i), g, c.ulp * 0x1p-24 * std::abs(g) + c.absolute) << c.op << " of " << x.value(i);
        }
    }
}

TEST(Softmax, BothMeaningsOfTheAxis) {
    struct Case {
        int opset;
        std::int64_t axis;
        Shape shape;
        std::size_t first, last;  ///< normalised dimensions
    };
    const Case cases[] = {
        {13, -1, {5, 37}, 1, 2}, {13, 1, {2, 9, 4, 3}, 1, 2}, {11, 1, {3, 4, 5}, 1, 3}, {13, 0, {6, 5}, 0, 1}, {13, 2, {2, 3, 700}, 2, 3}};
    std::mt19937 engine(23);
    for (const Case& c : cases)
        for (const char* chip : {"aurum-nano", "aurum-edge"}) {
            const Tensor x = random_floats(engine, c.shape, -20, 20);
            ModelBuilder m(c.opset);
            m.input("x", c.shape).output("y");
            attribute(m.node("Softmax", {"x"}, {"y"}), "axis", c.axis);
            const Tensor y = run_one(m, {{"x", x}}, chip);
            std::int64_t length = 1, inner = 1;
            for (std::size_t d = c.first; d < c.shape.size(); ++d) (d < c.last ? length : inner) *= c.shape[d];
            for (std::int64_t i = 0; i < y.count(); ++i) {
                const std::int64_t base = i / (length * inner) * length * inner + i % inner;
                double top = -1e30, sum = 0;
                for (std::int64_t k = 0; k < length; ++k) top = std::max(top, x.value(base + k * inner));
                for (std::int64_t k = 0; k < length; ++k) sum += std::exp(x.value(base + k * inner) - top);
                const double g = std::exp(x.value(i) - top) / sum;
                // x - max rounds once (at most 40 * 2^-24 in the exponent), exp and the quotient a few ulp, the sum one each step.
                ASSERT_NEAR(y.value(i), g, (48 + static_cast<double>(length)) * 0x1p-24 * g + 0x1p-126)
                    << to_string(c.shape) << " axis " << c.axis << " at " << i;
            }
        }
}

TEST(Pool, WindowsStridesPadsAndCounts) {
    std::mt19937 engine(24);
    int checked = 0;
    for (int trial = 0; trial < 60; ++trial) {
        const auto pick = [&](int low, int high) {
            return low + static_cast<std::int64_t>(engine() % static_cast<unsigned>(high - low + 1));
        };
        ConvCase c;
        c.n = pick(1, 2), c.c = pick(1, 20), c.kh = pick(1, 4), c.kw = pick(1, 4), c.stride_h = pick(1, 3), c.stride_w = pick(1, 3);
        c.top = pick(0, static_cast<int>(c.kh - 1)), c.left = pick(0, static_cast<int>(c.kw - 1)),
        c.bottom = pick(0, static_cast<int>(c.kh - 1)), c.right = pick(0, static_cast<int>(c.kw - 1));
        c.h = c.kh + pick(0, 20), c.w = c.kw + pick(0, 20);
        const bool maximum = trial % 2, include = trial % 4 == 0;
        const Tensor x = random_floats(engine, {c.n, c.c, c.h, c.w}, -3, 3);
        ModelBuilder m;
        m.input("x", x.shape).output("y");
        auto& node = m.node(maximum ? "MaxPool" : "AveragePool", {"x"}, {"y"});
        attribute(node, "kernel_shape", {c.kh, c.kw});
        attribute(node, "strides", {c.stride_h, c.stride_w});
        attribute(node, "pads", {c.top, c.left, c.bottom, c.right});
        if (!maximum) attribute(node, "count_include_pad", std::int64_t{include});
        const Tensor y = run_one(m, {{"x", x}}, trial % 3 ? "aurum-nano" : "aurum-edge");
        ASSERT_EQ(y.shape, (Shape{c.n, c.c, c.out_h(), c.out_w()})) << c.text();
        for (std::int64_t i = 0; i < y.count(); ++i, ++checked) {
            const std::int64_t ox = i % c.out_w(), oy = i / c.out_w() % c.out_h(), plane = i / (c.out_w() * c.out_h());
            double top = -1e30, sum = 0, magnitude = 0;
            int count = 0;
            for (std::int64_t p = 0; p < c.kh; ++p)
                for (std::int64_t q = 0; q < c.kw; ++q) {
                    const std::int64_t iy = oy * c.stride_h + p - c.top, ix = ox * c.stride_w + q - c.left;
                    if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
                    const double v = x.value((plane * c.h + iy) * c.w + ix);
                    top = std::max(top, v), sum += v, magnitude += std::abs(v), ++count;
                }
            const double divisor = include ? static_cast<double>(c.kh * c.kw) : count;
            ASSERT_NEAR(y.value(i), maximum ? top : sum / divisor, maximum ? 0 : 18 * 0x1p-24 * magnitude / divisor)
                << c.text() << " at " << i;
        }
    }
    EXPECT_GT(checked, 10000);
}

TEST(Pool, GlobalAndIntegerPools) {
    std::mt19937 engine(25);
    const Tensor x = random_floats(engine, {2, 40, 13, 11});
    for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
        ModelBuilder m;
        m.input("x", x.shape).output("y");
        m.node(op, {"x"}, {"y"});
        const Tensor y = run_one(m, {{"x", x}});
        for (std::int64_t i = 0; i < y.count(); ++i) {
            double sum = 0, top = -1e30;
            for (std::int64_t k = 0; k < 143; ++k) sum += x.value(i * 143 + k), top = std::max(top, x.value(i * 143 + k));
            const bool average = op[6] == 'A';
            ASSERT_NEAR(y.value(i), average ? sum / 143 : top, average ? 146 * 0x1p-24 : 0) << op << " " << i;
        }
    }
    // Between equal quantisations a maximum stays in integers, and the padding is below them all.
    const Tensor q = random_integers(engine, {1, 9, 6, 6}, DType::u8, 0, 255);
    ModelBuilder m;
    m.input("q", q.shape, DType::u8).scalar("s", 0.5f).zero_point("z", 17, DType::u8).output("y");
    m.node("DequantizeLinear", {"q", "s", "z"}, {"f"});
    auto& node = m.node("MaxPool", {"f"}, {"p"});
    attribute(node, "kernel_shape", {2, 2});
    attribute(node, "pads", {1, 1, 1, 1});
    m.node("QuantizeLinear", {"p", "s", "z"}, {"y"});
    const Tensor y = run_one(m, {{"q", q}});
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const std::int64_t ox = i % 7, oy = i / 7 % 7, c = i / 49;
        double top = 0;
        for (std::int64_t iy = std::max<std::int64_t>(0, oy - 1); iy <= std::min<std::int64_t>(5, oy); ++iy)
            for (std::int64_t ix = std::max<std::int64_t>(0, ox - 1); ix <= std::min<std::int64_t>(5, ox); ++ix)
                top = std::max(top, q.value((c * 6 + iy) * 6 + ix));
        ASSERT_EQ(y.value(i), top) << i;
    }
}

TEST(Movement, TransposeReshapeConcatPadKeepEveryElement) {
    std::mt19937 engine(26);
    const Tensor x = random_floats(engine, {2, 6, 5, 4}), k = random_floats(engine, {2, 6, 3, 4});
    ModelBuilder m;
    m.input("x", x.shape).constant("k", k).output("y");
    const std::vector<std::int64_t> to{2, 4, 48};
    m.constant("shape", make_tensor<std::int64_t>(DType::i64, {3}, to))
        .constant("pads", make_tensor<std::int64_t>(DType::i64, {6}, std::vector<std::int64_t>{0, 1, 2, 0, 0, 3}));
    attribute(m.node("Concat", {"x", "k"}, {"cat"}), "axis", std::int64_t{2});  // 2x6x8x4
    attribute(m.node("Transpose", {"cat"}, {"turned"}), "perm", {0, 3, 2, 1});  // 2x4x8x6
    m.node("Reshape", {"turned", "shape"}, {"flat"});                           // 2x4x48: must move
    m.scalar("seven", 7.0f).node("Pad", {"flat", "pads", "seven"}, {"y"});      // 2x5x53
    const Tensor y = run_one(m, {{"x", x}});
    ASSERT_EQ(y.shape, (Shape{2, 5, 53}));
    for (std::int64_t n = 0; n < 2; ++n)
        for (std::int64_t r = 0; r < 5; ++r)
            for (std::int64_t c = 0; c < 53; ++c) {
                double g = 7;
                if (r >= 1 && c >= 2 && c < 50) {
                    const std::int64_t w = r - 1, h = (c - 2) / 6, ch = (c - 2) % 6;
                    g = h < 5 ? x.value(((n * 6 + ch) * 5 + h) * 4 + w) : k.value(((n * 6 + ch) * 3 + h - 5) * 4 + w);
                }
                ASSERT_EQ(y.value((n * 5 + r) * 53 + c), g) << n << "," << r << "," << c;
            }
}

TEST(Movement, AGraphOutputThatIsAViewGetsATensorOfItsOwn) {
    std::mt19937 engine(27);
    const Tensor x = random_floats(engine, {3, 8});
    ModelBuilder m;
    m.input("x", x.shape).output("y");
    m.node("Relu", {"x"}, {"r"});
    m.node("Transpose", {"r"}, {"y"});
    const Tensor y = run_one(m, {{"x", x}});
    for (std::int64_t i = 0; i < 24; ++i) ASSERT_EQ(y.value(i), std::max(0.0, x.value(i % 3 * 8 + i / 3))) << i;
}

TEST(Quantise, AddOfTwoQuantisedTensorsFollowsOnnxStepByStep) {
    std::mt19937 engine(28);
    const Tensor a = random_integers(engine, {1, 300}, DType::i8, -128, 127), b = random_integers(engine, {1, 300}, DType::i8, -128, 127);
    const float sa = 0.037f, sb = 0.021f, sy = 0.05f;
    ModelBuilder m;
    m.input("a", a.shape, DType::i8).input("b", b.shape, DType::i8).scalar("sa", sa).scalar("sb", sb).scalar("sy", sy).output("y");
    m.zero_point("za", 3, DType::i8).zero_point("zb", -9, DType::i8).zero_point("zy", 20, DType::i8);
    m.node("DequantizeLinear", {"a", "sa", "za"}, {"fa"});
    m.node("DequantizeLinear", {"b", "sb", "zb"}, {"fb"});
    m.node("Add", {"fa", "fb"}, {"sum"});
    m.node("Relu", {"sum"}, {"r"});
    m.node("QuantizeLinear", {"r", "sy", "zy"}, {"y"});
    const RunResult run = compile_and_run(m.model, on("aurum-nano"), {{"a", a}, {"b", b}});
    EXPECT_EQ(run.program.layers.size(), 1u);
    for (std::int64_t i = 0; i < 300; ++i) {
        const float f = static_cast<float>(a.integer(i) - 3) * sa + static_cast<float>(b.integer(i) + 9) * sb;
        const float q = std::nearbyint(std::max(f, 0.0f) / sy) + 20.0f;
        ASSERT_EQ(run.tensors.at("y").value(i), std::clamp(q, -128.0f, 127.0f)) << i;
    }
}

}  // namespace
}  // namespace assay::workloads::testing
