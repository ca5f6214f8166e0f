// Gemm and MatMul against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

/// sum over k of a(m,k)*b(k,n) with its error bound under `native`: six fused steps a product, operands to 2^-24.
struct Dot {
    double sum = 0, magnitude = 0;
    void add(double a, double b) {
        sum += a * b;
        magnitude += std::abs(a * b);
    }
    double bound(std::int64_t k) const { return (6 * static_cast<double>(k) + 4) * 0x1p-24 * magnitude; }
};

CompileOptions on(const char* chip) {
    CompileOptions options;
    options.chip = preset(chip);
    return options;
}

TEST(Gemm, TransposesAlphaBetaAndEveryKindOfBias) {
    std::mt19937 engine(11);
    for (int trial = 0; trial < 16; ++trial) {
        const std::int64_t m = 1 + static_cast<std::int64_t>(engine() % 20), k = 1 + static_cast<std::int64_t>(engine() % 150),
                           n = 1 + static_cast<std::int64_t>(engine() % 40);
        const bool ta = trial & 1, tb = trial & 2;
        const Tensor a = random_floats(engine, ta ? Shape{k, m} : Shape{m, k}), b = random_floats(engine, tb ? Shape{n, k} : Shape{k, n});
        const Tensor c = random_floats(engine, trial % 3 == 0 ? Shape{1} : trial % 3 == 1 ? Shape{n} : Shape{1, n});
        const float alpha = trial & 4 ? 0.75f : 1.0f, beta = trial & 8 ? -2.0f : 1.0f;
        ModelBuilder model;
        model.input("a", a.shape).constant("b", b).constant("c", c).output("y");
        auto& node = model.node("Gemm", {"a", "b", "c"}, {"y"});
        attribute(node, "transA", std::int64_t{ta});
        attribute(node, "transB", std::int64_t{tb});
        attribute(node, "alpha", alpha);
        attribute(node, "beta", beta);
        const Tensor y = compile_and_run(model.model, on(trial % 2 ? "aurum-nano" : "aurum-edge"), {{"a", a}}).tensors.at("y");
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                Dot dot;
                for (std::int64_t p = 0; p < k; ++p) dot.add(a.value(ta ? p * m + i : i * k + p), b.value(tb ? j * k + p : p * n + j));
                const double bias = static_cast<double>(beta) * c.value(c.count() == 1 ? 0 : j),
                             g = static_cast<double>(alpha) * dot.sum + bias;
                ASSERT_NEAR(y.value(i * n + j), g, dot.bound(k) + 2 * 0x1p-24 * (std::abs(bias) + std::abs(g)))
                    << "trial " << trial << " at " << i << "," << j;
            }
    }
}

TEST(MatMul, BatchesBroadcastAndTheRightHandSideMayBeComputed) {
    struct Case {
        Shape a, b, out;
    };
    const Case cases[] = {{{3, 7, 20}, {20, 9}, {3, 7, 9}},
                          {{2, 3, 5, 33}, {2, 3, 33, 10}, {2, 3, 5, 10}},
                          {{2, 1, 4, 6}, {3, 6, 5}, {2, 3, 4, 5}},
                          {{12}, {12, 4}, {4}},
                          {{4, 12}, {12}, {4}},
                          {{1, 5, 700}, {1, 700, 40}, {1, 5, 40}}};
    std::mt19937 engine(12);
    for (const Case& c : cases)
        for (const bool computed : {true, false})
            for (const char* chip : {"aurum-nano", "aurum-edge"}) {
                const Tensor a = random_floats(engine, c.a), b = random_floats(engine, c.b);
                ModelBuilder m;
                m.input("a", c.a).output("y");
                if (computed)
                    m.input("b", c.b);
                else
                    m.constant("b", b);
                m.node("MatMul", {"a", "b"}, {"y"});
                std::map<std::string, Tensor> inputs{{"a", a}};
                if (computed) inputs["b"] = b;
                const Tensor y = compile_and_run(m.model, on(chip), inputs).tensors.at("y");
                ASSERT_EQ(y.shape, c.out);
                const std::int64_t k = c.a.back(), n = c.b.size() == 1 ? 1 : c.b.back(), rows = c.a.size() == 1 ? 1 : c.a[c.a.size() - 2];
                const std::int64_t batches = y.count() / (rows * n), a_batches = a.count() / (rows * k), b_batches = b.count() / (k * n);
                for (std::int64_t i = 0; i < y.count(); ++i) {
                    const std::int64_t batch = i / (rows * n), row = i / n % rows, col = i % n;
                    // In the third case a has batches {2,1} and b {3}; the others repeat whole.
                    const std::int64_t ab = a_batches == batches ? batch
                                            : a_batches == 1     ? 0
                                                                 : batch / 3,
                                       bb = b_batches == batches ? batch : batch % b_batches;
                    Dot dot;
                    for (std::int64_t p = 0; p < k; ++p) dot.add(a.value((ab * rows + row) * k + p), b.value((bb * k + p) * n + col));
                    ASSERT_NEAR(y.value(i), dot.sum, dot.bound(k))
                        << to_string(c.a) << " by " << to_string(c.b) << " element " << i << (computed ? " computed" : " constant");
                }
            }
}

TEST(QLinearMatMul, IsExactUpToTheLastRounding) {
    std::mt19937 engine(13);
    for (const bool computed : {false, true})
        for (const int za : {130, 0, 255})
            for (const int zb : {120, 0, 128, 255}) {
                const Tensor a = random_integers(engine, {6, 50}, DType::u8, 0, 255),
                             b = random_integers(engine, {50, 12}, DType::u8, 0, 255);
                ModelBuilder m;
                m.input("a", a.shape, DType::u8)
                    .scalar("sa", 0.01f)
                    .zero_point("za", za, DType::u8)
                    .scalar("sb", 0.02f)
                    .zero_point("zb", zb, DType::u8);
                m.scalar("sy", 0.8f).zero_point("zy", 100, DType::u8).output("y");
                std::map<std::string, Tensor> inputs{{"a", a}};
                if (computed)
                    m.input("b", b.shape, DType::u8), inputs["b"] = b;
                else
                    m.constant("b", b);
                m.node("QLinearMatMul", {"a", "sa", "za", "b", "sb", "zb", "sy", "zy"}, {"y"});
                const RunResult run = compile_and_run(m.model, on("aurum-nano"), inputs);
                EXPECT_EQ(run.program.layers[0].precision, "int8");
                for (std::int64_t i = 0; i < 6; ++i)
                    for (std::int64_t j = 0; j < 12; ++j) {
                        double sum = 0;
                        for (std::int64_t p = 0; p < 50; ++p) sum += (a.value(i * 50 + p) - za) * (b.value(p * 12 + j) - zb);
                        const double real = sum * static_cast<double>(0.01f) * static_cast<double>(0.02f) / static_cast<double>(0.8f);
                        ASSERT_NEAR(run.tensors.at("y").value(i * 12 + j), std::clamp(real + 100, 0.0, 255.0),
                                    0.5 + 3.1 * 0x1p-24 * std::abs(real))
                            << i << "," << j << " za " << za << " zb " << zb << (computed ? " computed" : " constant");
                    }
            }
}

}  // namespace
}  // namespace assay::workloads::testing
