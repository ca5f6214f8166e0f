// Random convolutions against plain loops: fp32 under both policies, and integers, on every preset.
#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

ConvCase random_case(std::mt19937& e) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(e() % static_cast<unsigned>(high - low + 1));
    };
    ConvCase c;
    c.n = pick(1, 3);
    c.kh = pick(1, 4);
    c.kw = pick(1, 4);
    c.stride_h = pick(1, 3);
    c.stride_w = pick(1, 3);
    c.dilation_h = pick(1, 2);
    c.dilation_w = pick(1, 2);
    c.top = pick(0, 2);
    c.left = pick(0, 2);
    c.bottom = pick(0, 2);
    c.right = pick(0, 2);
    c.h = (c.kh - 1) * c.dilation_h + pick(1, 14);
    c.w = (c.kw - 1) * c.dilation_w + pick(1, 14);
    switch (pick(0, 3)) {
        case 0:
            c.groups = 1;
            c.c = pick(1, 40);
            c.o = pick(1, 40);
            break;
        case 1:
            c.groups = pick(1, 40);
            c.c = c.groups;
            c.o = c.groups;
            break;  // depthwise
        case 2:
            c.groups = pick(2, 6);
            c.c = c.groups * pick(1, 12);
            c.o = c.groups * pick(1, 12);
            break;  // some groups wider than the array
        default:
            c.groups = pick(2, 9);
            c.c = c.groups;
            c.o = c.groups * 2;
            break;  // depth multiplier
    }
    return c;
}

const char* const kChips[] = {"aurum-nano", "aurum-edge", "aurum-dc"};

TEST(Conv, Fp32MatchesPlainLoopsWithinTheAccumulationsOwnError) {
    std::mt19937 engine(1);
    int checked = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const ConvCase c = random_case(engine);
        const Tensor x = random_floats(engine, {c.n, c.c, c.h, c.w}), w = random_floats(engine, {c.o, c.c / c.groups, c.kh, c.kw}),
                     b = random_floats(engine, {c.o});
        ModelBuilder m;
        m.input("x", x.shape).constant("w", w).constant("b", b).output("y");
        conv_attributes(m.node("Conv", {"x", "w", "b"}, {"conv"}), c);
        m.node("Relu", {"conv"}, {"y"});
        const ConvSums want = plain_conv(c, [&](std::int64_t i) { return x.value(i); }, [&](std::int64_t i) { return w.value(i); });
        for (const char* precision : {"native", "bf16"}) {
            CompileOptions options;
            options.chip = preset(kChips[trial % 3]);
            options.precision = precision;
            const RunResult run = compile_and_run(m.model, options, {{"x", x}});
            ASSERT_EQ(run.program.layers.size(), 1u) << "Relu and bias belong to the convolution";
            const Tensor& y = run.tensors.at("y");
            ASSERT_EQ(y.shape, (Shape{c.n, c.o, c.out_h(), c.out_w()})) << c.text();
            const auto k = static_cast<double>(c.c / c.groups * c.kh * c.kw);
            // One rounding a step, six passes (native) or one; operands to 2^-24 (three planes) or 2^-8 each; the bias and the result round
            // once.
            const bool native = std::string(precision) == "native";
            const double unit = native ? (6 * k + 4) * 0x1p-24 : k * 0x1p-24 + 2.1 * 0x1p-8;
            for (std::int64_t i = 0; i < y.count(); ++i, ++checked) {
                const double bias = b.value(i / (c.out_h() * c.out_w()) % c.o),
                             g = std::max(0.0, want.sum[static_cast<std::size_t>(i)] + bias);
                const double allow = unit * want.magnitude[static_cast<std::size_t>(i)] + 2 * 0x1p-24 * (std::abs(bias) + std::abs(g));
                ASSERT_NEAR(y.value(i), g, allow) << c.text() << ", " << precision << " on " << kChips[trial % 3] << ", element " << i;
            }
        }
    }
    EXPECT_GT(checked, 1000);
}

/// QDQ: DequantizeLinear of x, w and bias around a Conv, QuantizeLinear after.
TEST(Conv, QuantisedLayersRoundOnceFromTheExactSum) {
    std::mt19937 engine(2);
    int checked = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const ConvCase c = random_case(engine);
        const DType type = trial % 2 ? DType::u8 : DType::i8;
        const int low = type == DType::u8 ? 0 : -128;
        const Tensor x = random_integers(engine, {c.n, c.c, c.h, c.w}, type, low, low + 255),
                     w = random_integers(engine, {c.o, c.c / c.groups, c.kh, c.kw}, DType::i8, -127, 127);
        const Tensor b = random_integers(engine, {c.o}, DType::i32, -3000, 3000);
        const int zx = low + static_cast<int>(engine() % 256), zy = low + static_cast<int>(engine() % 256), zw = trial % 5 == 0 ? 7 : 0;
        const float sx = 0.02f, sy = 0.11f * std::sqrt(static_cast<float>(c.c / c.groups * c.kh * c.kw));
        const Tensor sw = random_floats(engine, {c.o}, 0.01f, 0.03f);
        Tensor sb(DType::f32, {c.o}), zws(DType::i8, {c.o}), zb(DType::i32, {c.o});
        for (std::int64_t o = 0; o < c.o; ++o) {
            sb.as<float>()[o] = sx * sw.as<float>()[o];
            zws.bytes[static_cast<std::size_t>(o)] = static_cast<std::byte>(zw);
        }
        ModelBuilder m;
        m.input("x", x.shape, type)
            .constant("w", w)
            .constant("b", b)
            .constant("sw", sw)
            .constant("zw", zws)
            .constant("sb", sb)
            .constant("zb", zb);
        m.scalar("sx", sx).zero_point("zx", zx, type).scalar("sy", sy).zero_point("zy", zy, type).output("y");
        m.node("DequantizeLinear", {"x", "sx", "zx"}, {"xf"});
        attribute(m.node("DequantizeLinear", {"w", "sw", "zw"}, {"wf"}), "axis", std::int64_t{0});
        attribute(m.node("DequantizeLinear", {"b", "sb", "zb"}, {"bf"}), "axis", std::int64_t{0});
        conv_attributes(m.node("Conv", {"xf", "wf", "bf"}, {"cf"}), c);
        const bool relu = trial % 3 == 0;
        if (relu) m.node("Relu", {"cf"}, {"rf"});
        m.node("QuantizeLinear", {relu ? "rf" : "cf", "sy", "zy"}, {"y"});
        CompileOptions options;
        options.chip = preset(kChips[trial % 3]);
        const RunResult run = compile_and_run(m.model, options, {{"x", x}});
        ASSERT_EQ(run.program.layers.size(), 1u);
        EXPECT_EQ(run.program.layers[0].precision, "int8");
        const Tensor& y = run.tensors.at("y");
        const ConvSums want =
            plain_conv(c, [&](std::int64_t i) { return x.value(i) - zx; }, [&](std::int64_t i) { return w.value(i) - zw; });
        for (std::int64_t i = 0; i < y.count(); ++i, ++checked) {
            const std::int64_t o = i / (c.out_h() * c.out_w()) % c.o;
            double real = (want.sum[static_cast<std::size_t>(i)] + b.value(o)) * static_cast<double>(sx) *
                          static_cast<double>(sw.value(o)) / static_cast<double>(sy);
            if (relu) real = std::max(real, 0.0);
            // i32 to fp32, one product, one combined scale: three roundings before the one that counts.
            const double slack = 3.1 * 0x1p-24 * std::abs(real),
                         g = std::clamp(real + zy, static_cast<double>(low), static_cast<double>(low + 255));
            ASSERT_NEAR(y.value(i), g, 0.5 + slack) << c.text() << " element " << i << " zx " << zx << " zw " << zw;
        }
    }
    EXPECT_GT(checked, 1000);
}

TEST(Conv, WeightsTooFarFromTheirZeroPointForInt8AreSplitExactly) {
    std::mt19937 engine(5);
    ConvCase c;
    c.c = 9, c.h = c.w = 6, c.o = 11, c.kh = c.kw = 2;
    for (const int zw : {0, 1, 128, 255}) {
        Tensor w = random_integers(engine, {c.o, c.c, 2, 2}, DType::u8, 0, 255);
        w.bytes[3] = std::byte{255};
        w.bytes[4] = std::byte{0};
        const Tensor x = random_integers(engine, {1, c.c, 6, 6}, DType::u8, 0, 255);
        ModelBuilder m;
        m.input("x", x.shape, DType::u8)
            .constant("w", w)
            .scalar("sx", 0.01f)
            .zero_point("zx", 100, DType::u8)
            .scalar("sw", 0.02f)
            .zero_point("zw", zw, DType::u8);
        m.scalar("sy", 0.3f).zero_point("zy", 128, DType::u8).output("y");
        m.node("QLinearConv", {"x", "sx", "zx", "w", "sw", "zw", "sy", "zy"}, {"y"});
        CompileOptions options;
        options.chip = preset("aurum-nano");
        const Tensor y = compile_and_run(m.model, options, {{"x", x}}).tensors.at("y");
        const ConvSums want =
            plain_conv(c, [&](std::int64_t i) { return x.value(i) - 100; }, [&](std::int64_t i) { return w.value(i) - zw; });
        for (std::int64_t i = 0; i < y.count(); ++i) {
            const double real =
                want.sum[static_cast<std::size_t>(i)] * static_cast<double>(0.01f) * static_cast<double>(0.02f) / static_cast<double>(0.3f);
            ASSERT_NEAR(y.value(i), std::clamp(real + 128, 0.0, 255.0), 0.5 + 3.1 * 0x1p-24 * std::abs(real))
                << "zw " << zw << " element " << i;
        }
    }
}

TEST(Conv, DeepChannelsAreCutIntoSlabsWhenTheSmallestTileDoesNotFit) {
    std::mt19937 engine(3);
    ConvCase c;
    c.c = 3000;
    c.h = c.w = c.kh = c.kw = 3;
    c.o = 9;
    const Tensor x = random_floats(engine, {1, c.c, 3, 3}), w = random_floats(engine, {c.o, c.c, 3, 3});
    ModelBuilder m;
    m.input("x", x.shape).constant("w", w).output("y");
    conv_attributes(m.node("Conv", {"x", "w"}, {"y"}), c);
    CompileOptions options;
    options.chip = preset("aurum-nano");
    const RunResult run = compile_and_run(m.model, options, {{"x", x}});
    EXPECT_LT(run.program.layers[0].k_slab, c.c);
    const ConvSums want = plain_conv(c, [&](std::int64_t i) { return x.value(i); }, [&](std::int64_t i) { return w.value(i); });
    for (std::int64_t i = 0; i < c.o; ++i)
        EXPECT_NEAR(run.tensors.at("y").value(i), want.sum[static_cast<std::size_t>(i)],
                    27000 * 6 * 0x1p-24 * want.magnitude[static_cast<std::size_t>(i)])
            << i;
}

TEST(Conv, OneSpatialDimensionIsAnImageOneRowHigh) {
    std::mt19937 engine(4);
    ConvCase c;
    c.n = 2, c.c = 5, c.w = 17, c.o = 6, c.kw = 4, c.stride_w = 2, c.left = 1, c.right = 2;
    const Tensor x = random_floats(engine, {c.n, c.c, c.w}), w = random_floats(engine, {c.o, c.c, c.kw});
    ModelBuilder m;
    m.input("x", x.shape).constant("w", w).output("y");
    auto& node = m.node("Conv", {"x", "w"}, {"y"});
    attribute(node, "strides", std::vector<std::int64_t>{2});
    attribute(node, "pads", {1, 2});
    CompileOptions options;
    options.chip = preset("aurum-nano");
    const Tensor y = compile_and_run(m.model, options, {{"x", x}}).tensors.at("y");
    const ConvSums want = plain_conv(c, [&](std::int64_t i) { return x.value(i); }, [&](std::int64_t i) { return w.value(i); });
    ASSERT_EQ(y.shape, (Shape{2, 6, c.out_w()}));
    for (std::int64_t i = 0; i < y.count(); ++i)
        EXPECT_NEAR(y.value(i), want.sum[static_cast<std::size_t>(i)], 130 * 0x1p-24 * want.magnitude[static_cast<std::size_t>(i)]) << i;
}

}  // namespace
}  // namespace assay::workloads::testing
