// Nodes that are taken apart, against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

RunResult run(ModelBuilder& m, const std::map<std::string, Tensor>& inputs) {
    CompileOptions options;
    options.chip = preset("aurum-nano");
    RunResult result = compile_and_run(m.model, options, inputs);
    EXPECT_TRUE(result.program.host_steps.empty()) << "a node ran on the host: " << result.program.host_steps[0].reason;
    return result;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Decompose, LstmAndGruInBothDirections) {
    constexpr std::int64_t kT = 4, kB = 2, kI = 5, kH = 3;
    std::mt19937 engine(51);
    for (const char* op : {"LSTM", "GRU", "GRU reset"})
        for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
            const bool lstm = std::string(op) == "LSTM", reset = std::string(op) == "GRU reset";
            const std::int64_t d_count = direction == "bidirectional" ? 2 : 1, gates = lstm ? 4 : 3;
            const Tensor x = random_floats(engine, {kT, kB, kI}), w = random_floats(engine, {d_count, gates * kH, kI}),
                         r = random_floats(engine, {d_count, gates * kH, kH}), b = random_floats(engine, {d_count, 2 * gates * kH}),
                         h0 = random_floats(engine, {d_count, kB, kH});
            ModelBuilder m(14);
            m.input("x", x.shape).input("h0", h0.shape).constant("w", w).constant("r", r).constant("b", b).output("y").output("yh");
            auto& node = m.node(lstm ? "LSTM" : "GRU", {"x", "w", "r", "b", "", "h0"}, {"y", "yh"});
            attribute(node, "hidden_size", kH);
            attribute(node, "direction", direction.c_str());
            if (reset) attribute(node, "linear_before_reset", std::int64_t{1});
            const auto tensors = run(m, {{"x", x}, {"h0", h0}}).tensors;
            for (std::int64_t d = 0; d < d_count; ++d)
                for (std::int64_t n = 0; n < kB; ++n) {
                    std::vector<double> h(kH), c(kH, 0.0);
                    for (std::int64_t i = 0; i < kH; ++i) h[static_cast<std::size_t>(i)] = h0.value((d * kB + n) * kH + i);
                    for (std::int64_t s = 0; s < kT; ++s) {
                        const std::int64_t t = direction == "reverse" || d == 1 ? kT - 1 - s : s;
                        const auto input = [&](std::int64_t row) {
                            double sum = b.value(d * 2 * gates * kH + row);
                            for (std::int64_t k = 0; k < kI; ++k) sum += x.value((t * kB + n) * kI + k) * w.value((d * gates * kH + row) * kI + k);
                            return sum;
                        };
                        const auto recurrent = [&](std::int64_t row, const std::vector<double>& state) {
                            double sum = b.value(d * 2 * gates * kH + gates * kH + row);
                            for (std::int64_t k = 0; k < kH; ++k) sum += state[static_cast<std::size_t>(k)] * r.value((d * gates * kH + row) * kH + k);
                            return sum;
                        };
                        std::vector<double> next(kH), gated(kH);
                        for (std::int64_t i = 0; i < kH && !lstm; ++i)
                            gated[static_cast<std::size_t>(i)] = sigmoid(input(kH + i) + recurrent(kH + i, h)) * h[static_cast<std::size_t>(i)];
                        for (std::int64_t i = 0; i < kH; ++i) {
                            const auto at = static_cast<std::size_t>(i);
                            const auto gate = [&](std::int64_t g) { return input(g * kH + i) + recurrent(g * kH + i, h); };
                            if (lstm) {
                                c[at] = sigmoid(gate(2)) * c[at] + sigmoid(gate(0)) * std::tanh(gate(3));
                                next[at] = sigmoid(gate(1)) * std::tanh(c[at]);
                            } else {
                                const double z = sigmoid(gate(0));
                                const double inner = reset ? input(2 * kH + i) + sigmoid(gate(1)) * recurrent(2 * kH + i, h)
                                                           : input(2 * kH + i) + recurrent(2 * kH + i, gated);
                                next[at] = (1 - z) * std::tanh(inner) + z * h[at];
                            }
                        }
                        h = next;
                        for (std::int64_t i = 0; i < kH; ++i)
                            ASSERT_NEAR(tensors.at("y").value(((t * d_count + d) * kB + n) * kH + i), h[static_cast<std::size_t>(i)], 1e-5)
                                << op << " " << direction << " step " << t;
                    }
                    for (std::int64_t i = 0; i < kH; ++i)
                        ASSERT_NEAR(tensors.at("yh").value((d * kB + n) * kH + i), h[static_cast<std::size_t>(i)], 1e-5) << op << " " << direction;
                }
        }
}

TEST(Decompose, LayerNormalizationAndLogSoftmax) {
    std::mt19937 engine(52);
    const Tensor x = random_floats(engine, {3, 4, 20}), s = random_floats(engine, {20}), b = random_floats(engine, {20});
    ModelBuilder m(17);
    m.input("x", x.shape).constant("s", s).constant("b", b).output("y").output("l");
    m.node("LayerNormalization", {"x", "s", "b"}, {"y"});
    attribute(m.node("LogSoftmax", {"x"}, {"l"}), "axis", std::int64_t{-1});
    const auto tensors = run(m, {{"x", x}}).tensors;
    for (std::int64_t row = 0; row < 12; ++row) {
        double mean = 0, variance = 0, sum = 0;
        for (std::int64_t i = 0; i < 20; ++i) mean += x.value(row * 20 + i) / 20;
        for (std::int64_t i = 0; i < 20; ++i) variance += std::pow(x.value(row * 20 + i) - mean, 2) / 20;
        for (std::int64_t i = 0; i < 20; ++i) sum += std::exp(x.value(row * 20 + i));
        for (std::int64_t i = 0; i < 20; ++i) {
            const double v = x.value(row * 20 + i);
            ASSERT_NEAR(tensors.at("y").value(row * 20 + i), (v - mean) / std::sqrt(variance + 1e-5) * s.value(i) + b.value(i), 1e-5);
            ASSERT_NEAR(tensors.at("l").value(row * 20 + i), v - std::log(sum), 1e-5);
        }
    }
}

TEST(Decompose, ConvTransposeWithStridesGroupsAndOutputPadding) {
    std::mt19937 engine(53);
    struct Case {
        std::int64_t stride_h, stride_w, dilation, groups, top, left, bottom, right, more;
    };
    for (const Case& c : {Case{1, 1, 1, 1, 0, 0, 0, 0, 0}, Case{2, 2, 1, 1, 1, 1, 1, 1, 1}, Case{1, 2, 1, 2, 0, 1, 0, 1, 0}, Case{3, 2, 2, 2, 2, 3, 1, 0, 0}}) {
        constexpr std::int64_t kC = 4, kH = 5, kW = 4, kM = 3, kK = 3;  // kM outputs a group
        const Tensor x = random_floats(engine, {1, kC, kH, kW}), w = random_floats(engine, {kC, kM, kK, kK}), b = random_floats(engine, {kM * c.groups});
        ModelBuilder m(13);
        m.input("x", x.shape).constant("w", w).constant("b", b).output("y");
        auto& node = m.node("ConvTranspose", {"x", "w", "b"}, {"y"});
        attribute(node, "strides", std::vector<std::int64_t>{c.stride_h, c.stride_w});
        attribute(node, "dilations", std::vector<std::int64_t>{c.dilation, c.dilation});
        attribute(node, "pads", std::vector<std::int64_t>{c.top, c.left, c.bottom, c.right});
        attribute(node, "group", c.groups);
        attribute(node, "output_padding", std::vector<std::int64_t>{c.more, c.more});
        const Tensor y = run(m, {{"x", x}}).tensors.at("y");
        const std::int64_t oh = c.stride_h * (kH - 1) + c.more + (kK - 1) * c.dilation + 1 - c.top - c.bottom,
                           ow = c.stride_w * (kW - 1) + c.more + (kK - 1) * c.dilation + 1 - c.left - c.right;
        ASSERT_EQ(y.shape, (Shape{1, kM * c.groups, oh, ow}));
        std::vector<double> want(static_cast<std::size_t>(y.count()));
        for (std::int64_t o = 0; o < kM * c.groups; ++o)
            for (std::int64_t i = 0; i < oh * ow; ++i) want[static_cast<std::size_t>(o * oh * ow + i)] = b.value(o);
        for (std::int64_t ch = 0; ch < kC; ++ch)
            for (std::int64_t i = 0; i < kH; ++i)
                for (std::int64_t j = 0; j < kW; ++j)
                    for (std::int64_t mm = 0; mm < kM; ++mm)
                        for (std::int64_t p = 0; p < kK; ++p)
                            for (std::int64_t q = 0; q < kK; ++q) {
                                const std::int64_t oy = i * c.stride_h + p * c.dilation - c.top, ox = j * c.stride_w + q * c.dilation - c.left;
                                if (oy < 0 || oy >= oh || ox < 0 || ox >= ow) continue;
                                const std::int64_t o = ch / (kC / c.groups) * kM + mm;
                                want[static_cast<std::size_t>((o * oh + oy) * ow + ox)] +=
                                    x.value((ch * kH + i) * kW + j) * w.value(((ch * kM + mm) * kK + p) * kK + q);
                            }
        for (std::int64_t i = 0; i < y.count(); ++i) ASSERT_NEAR(y.value(i), want[static_cast<std::size_t>(i)], 2e-5) << "stride " << c.stride_h << " at " << i;
    }
}

}  // namespace
}  // namespace assay::workloads::testing
