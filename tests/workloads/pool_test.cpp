// Pooling past the simple cases against plain loops: ceil_mode with counted padding, dilation, norms, windows larger than the scratchpad.
#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

RunResult run(ModelBuilder& m, const Tensor& x, const char* chip = "aurum-nano") {
    CompileOptions options;
    options.chip = preset(chip);
    RunResult result = compile_and_run(m.model, options, {{"x", x}});
    EXPECT_TRUE(result.program.host_steps.empty()) << (result.program.host_steps.empty() ? "" : result.program.host_steps[0].reason);
    return result;
}

TEST(Pools, CeilModeDilationAndCountedPadding) {
    std::mt19937 engine(51);
    const auto pick = [&](int low, int high) { return low + static_cast<std::int64_t>(engine() % static_cast<unsigned>(high - low + 1)); };
    int checked = 0;
    for (int trial = 0; trial < 60; ++trial) {
        const char* op = trial % 3 == 0 ? "MaxPool" : trial % 3 == 1 ? "AveragePool" : "LpPool";
        const bool ceil = trial % 2 == 0, include = trial % 4 < 2, line = trial % 5 == 4;  // line: one spatial dimension
        const int norm = trial % 4 == 2 ? 1 : 2;
        const std::int64_t channels = pick(1, 12);
        std::int64_t n[2], k[2], s[2], d[2], before[2], after[2], out[2];
        for (int i = 0; i < 2; ++i) {
            const bool flat = line && i == 0;
            k[i] = flat ? 1 : pick(1, 4), s[i] = flat ? 1 : pick(1, 3), d[i] = flat ? 1 : pick(1, 2);
            before[i] = flat ? 0 : pick(0, static_cast<int>(k[i] - 1)), after[i] = flat ? 0 : pick(0, static_cast<int>(k[i] - 1));
            const std::int64_t reach = (k[i] - 1) * d[i] + 1;
            n[i] = flat ? 1 : reach + pick(0, 12);
            const std::int64_t room = n[i] + before[i] + after[i] - reach;
            out[i] = (ceil ? (room + s[i] - 1) / s[i] : room / s[i]) + 1;
            if (ceil && (out[i] - 1) * s[i] >= n[i] + before[i]) --out[i];  // it would start in the padding past the end
        }
        const Tensor x = random_floats(engine, line ? Shape{2, channels, n[1]} : Shape{2, channels, n[0], n[1]}, -3, 3);
        ModelBuilder m(op[0] == 'M' ? 12 : 19);
        m.input("x", x.shape).output("y");
        auto& node = m.node(op, {"x"}, {"y"});
        const auto list = [&](const std::int64_t* v) { return line ? std::vector<std::int64_t>{v[1]} : std::vector<std::int64_t>{v[0], v[1]}; };
        attribute(node, "kernel_shape", list(k));
        attribute(node, "strides", list(s));
        attribute(node, "dilations", list(d));
        auto pads = list(before), ends = list(after);
        pads.insert(pads.end(), ends.begin(), ends.end());
        attribute(node, "pads", pads);
        attribute(node, "ceil_mode", std::int64_t{ceil});
        if (op[0] == 'A') attribute(node, "count_include_pad", std::int64_t{include});
        if (op[0] == 'L') attribute(node, "p", std::int64_t{norm});
        const Tensor y = run(m, x).tensors.at("y");
        const Shape want = line ? Shape{2, channels, out[1]} : Shape{2, channels, out[0], out[1]};
        ASSERT_EQ(y.shape, want) << op << " trial " << trial;
        for (std::int64_t i = 0; i < y.count(); ++i, ++checked) {
            const std::int64_t ox = i % out[1], oy = i / out[1] % out[0], plane = i / (out[0] * out[1]);
            double top = -1e30, sum = 0, magnitude = 0, power = 0;
            int count = 0;
            for (std::int64_t p = 0; p < k[0]; ++p)
                for (std::int64_t q = 0; q < k[1]; ++q) {
                    const std::int64_t iy = oy * s[0] + p * d[0] - before[0], ix = ox * s[1] + q * d[1] - before[1];
                    const bool inside = iy >= 0 && iy < n[0] && ix >= 0 && ix < n[1];
                    if (include ? iy < n[0] + after[0] && ix < n[1] + after[1] : inside) ++count;
                    if (!inside) continue;
                    const double v = x.value((plane * n[0] + iy) * n[1] + ix);
                    top = std::max(top, v), sum += v, magnitude += std::abs(v);
                    power += norm == 1 ? std::abs(v) : v * v;
                }
            const double g = op[0] == 'M' ? top : op[0] == 'A' ? sum / count : norm == 1 ? power : std::sqrt(power);
            const double scale = op[0] == 'M' ? 0 : op[0] == 'A' ? magnitude / count : std::abs(g);
            ASSERT_NEAR(y.value(i), g, 20 * 0x1p-24 * scale) << op << " trial " << trial << " at " << i;
        }
    }
    EXPECT_GT(checked, 5000);
}

TEST(Pools, AGlobalWindowLargerThanTheScratchpadIsOneReductionInParts) {
    std::mt19937 engine(52);
    const Tensor x = random_floats(engine, {1, 3, 220, 180});  // a channel alone is 158 KB, the scratchpad 64 KiB
    for (const char* op : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}) {
        ModelBuilder m;
        m.input("x", x.shape).output("y");
        m.node(op, {"x"}, {"y"});
        const Tensor small = run(m, x, "aurum-nano").tensors.at("y");
        for (std::int64_t c = 0; c < 3; ++c) {
            double sum = 0, top = -1e30, squares = 0, magnitude = 0;
            for (std::int64_t i = 0; i < 220 * 180; ++i) {
                const double v = x.value(c * 220 * 180 + i);
                sum += v, top = std::max(top, v), squares += v * v, magnitude += std::abs(v);
            }
            const double g = op[6] == 'M' ? top : op[6] == 'A' ? sum / (220 * 180) : std::sqrt(squares);
            // Sequential sums: sqrt(n) roundings is what random signs give; n would allow anything.
            ASSERT_NEAR(small.value(c), g, op[6] == 'M' ? 0 : 6 * std::sqrt(220.0 * 180.0) * 0x1p-24 * (op[6] == 'A' ? magnitude / (220 * 180) : g)) << op << " channel " << c;
        }
        // The order of a reduction is its own, not the tiling's: a chip with a larger scratchpad and the same lanes gives the same bits.
        CompileOptions large;
        large.chip = preset("aurum-nano");
        large.chip.spm_bytes = 4 << 20;
        const Tensor whole = compile_and_run(m.model, large, {{"x", x}}).tensors.at("y");
        EXPECT_TRUE(whole.bytes == small.bytes) << op;
    }
}

TEST(Pools, IntegersOfEveryHeldTypeKeepTheirMaximum) {
    std::mt19937 engine(53);
    for (const DType type : {DType::i8, DType::u8}) {
        const Tensor x = random_integers(engine, {2, 5, 9, 8}, type, type == DType::u8 ? 0 : -128, type == DType::u8 ? 255 : 127);
        ModelBuilder m;
        m.input("x", x.shape, type).output("y");
        auto& node = m.node("MaxPool", {"x"}, {"y"});
        attribute(node, "kernel_shape", {3, 2});
        attribute(node, "strides", {2, 2});
        attribute(node, "pads", {1, 0, 1, 0});
        const Tensor y = run(m, x).tensors.at("y");
        ASSERT_EQ(y.shape, (Shape{2, 5, 5, 4}));
        for (std::int64_t i = 0; i < y.count(); ++i) {
            double top = -1e9;
            for (std::int64_t p = 0; p < 3; ++p)
                for (std::int64_t q = 0; q < 2; ++q) {
                    const std::int64_t iy = i / 4 % 5 * 2 + p - 1, ix = i % 4 * 2 + q;
                    if (iy >= 0 && iy < 9) top = std::max(top, x.value((i / 20 * 9 + iy) * 8 + ix));
                }
            ASSERT_EQ(y.value(i), top) << name_of(type) << " at " << i;
        }
    }
}

}  // namespace
}  // namespace assay::workloads::testing
