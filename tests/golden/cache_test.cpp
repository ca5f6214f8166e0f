// RotaryEmbedding and TensorScatter against their definitions written another way: complex numbers, and a loop over the cache.
#include <complex>
#include <functional>

#include <gtest/gtest.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;

constexpr std::int64_t kBatch = 2, kHeads = 3, kSequence = 4, kSize = 8, kPositions = 10;

Tensor ids(Shape shape, const std::vector<std::int64_t>& values) { return testing::tensor<std::int64_t>(DType::i64, std::move(shape), values); }

/// 4-D rotary embedding of the first `turned` elements of each head.
std::vector<double> expected(const Tensor& x, const Tensor& cosine, const Tensor& sine, const std::vector<std::int64_t>& row, std::int64_t turned, bool interleaved) {
    std::vector<double> y(static_cast<std::size_t>(x.count()));
    for (std::int64_t i = 0; i < x.count(); ++i) y[static_cast<std::size_t>(i)] = x.value(i);
    for (std::int64_t h = 0; h < kBatch * kHeads; ++h)
        for (std::int64_t s = 0; s < kSequence; ++s)
            for (std::int64_t p = 0; p < turned / 2; ++p) {
                const std::int64_t head = (h * kSequence + s) * kSize;
                const std::int64_t a = head + (interleaved ? 2 * p : p), b = head + (interleaved ? 2 * p + 1 : p + turned / 2);
                const std::int64_t at = row[static_cast<std::size_t>(h / kHeads * kSequence + s)] * (turned / 2) + p;
                const auto z = std::complex<double>(x.value(a), x.value(b)) * std::complex<double>(cosine.value(at), sine.value(at));
                y[static_cast<std::size_t>(a)] = z.real();
                y[static_cast<std::size_t>(b)] = z.imag();
            }
    return y;
}

TEST(RotaryEmbedding, IsTheComplexProductInEveryLayout) {
    for (const std::int64_t turned : {std::int64_t{8}, std::int64_t{4}})
        for (const bool interleaved : {false, true})
            for (const bool by_id : {false, true})
                for (const bool packed : {false, true}) {
                    SCOPED_TRACE(std::to_string(turned) + (interleaved ? " interleaved" : "") + (by_id ? " ids" : "") + (packed ? " packed" : ""));
                    const Tensor x = random_floats({kBatch, kHeads, kSequence, kSize}, 1);
                    const Shape cache = by_id ? Shape{kPositions, turned / 2} : Shape{kBatch, kSequence, turned / 2};
                    const Tensor cosine = random_floats(cache, 2), sine = random_floats(cache, 3);
                    const std::vector<std::int64_t> row = by_id ? std::vector<std::int64_t>{3, 9, 0, 3, 5, 6, 7, 8} : std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7};
                    const std::vector<double> want = expected(x, cosine, sine, row, turned, interleaved);
                    const Shape given{kBatch, kSequence, kHeads * kSize};
                    const auto packed_index = [&](std::int64_t i) {  // of element i of the 4-D tensor
                        const std::int64_t e = i % kSize, s = i / kSize % kSequence, h = i / (kSize * kSequence) % kHeads, b = i / (kSize * kSequence * kHeads);
                        return packed ? ((b * kSequence + s) * kHeads + h) * kSize + e : i;
                    };
                    Tensor fed(DType::f32, packed ? given : x.shape);
                    for (std::int64_t i = 0; i < x.count(); ++i) fed.as<float>()[static_cast<std::size_t>(packed_index(i))] = std::as_const(x).as<float>()[static_cast<std::size_t>(i)];
                    ModelBuilder builder(23);
                    builder.input("x", DType::f32, fed.shape).input("c", DType::f32, cache).input("s", DType::f32, cache);
                    std::map<std::string, Tensor> inputs{{"x", fed}, {"c", cosine}, {"s", sine}};
                    std::vector<std::string> names{"x", "c", "s"};
                    if (by_id) {
                        builder.input("p", DType::i64, {kBatch, kSequence});
                        inputs["p"] = ids({kBatch, kSequence}, row);
                        names.push_back("p");
                    }
                    builder.node("RotaryEmbedding", names, "y").integer("interleaved", interleaved);
                    if (turned != kSize) builder.integer("rotary_embedding_dim", turned);
                    if (packed) builder.integer("num_heads", kHeads);
                    const Reference reference(builder.output("y").build());
                    const Value bounded = reference.evaluate("y", {inputs.begin(), inputs.end()}, {"fp32", 0});
                    for (std::int64_t i = 0; i < x.count(); ++i) {
                        const std::int64_t at = packed_index(i);
                        EXPECT_NEAR(bounded.at(at), want[static_cast<std::size_t>(i)], 1e-12) << i;
                        if (i % kSize >= turned) EXPECT_EQ(bounded.error(at), 0) << "what stays is exact";
                        else EXPECT_TRUE(bounded.error(at) > 0 && bounded.error(at) < 1e-6) << bounded.error(at);
                    }
                }
}

std::string refusal(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was refused";
}

TEST(RotaryEmbedding, RefusesWhatDoesNotFitByName) {
    const auto run = [](const Shape& x, const Shape& cache, std::int64_t heads) {
        const auto model = ModelBuilder(23).input("x", DType::f32, x).input("c", DType::f32, cache).input("s", DType::f32, cache)
                               .node("RotaryEmbedding", {"x", "c", "s"}, "y").integer("num_heads", heads).output("y").build();
        return refusal([&] { Reference(model).run({{"x", Tensor(DType::f32, x)}, {"c", Tensor(DType::f32, cache)}, {"s", Tensor(DType::f32, cache)}}); });
    };
    EXPECT_NE(run({1, 2, 12}, {1, 2, 2}, 5).find("num_heads=5 does not divide 12"), std::string::npos);
    EXPECT_NE(run({1, 1, 2, 8}, {1, 3, 4}, 0).find("1x2x4 is expected"), std::string::npos) << run({1, 1, 2, 8}, {1, 3, 4}, 0);
    EXPECT_NE(run({1, 1, 2, 7}, {1, 2, 3}, 0).find("an even part"), std::string::npos);
}

TEST(TensorScatter, WritesEachBatchFromItsIndexOn) {
    const Tensor cache = random_floats({2, 3, 5, 2}, 1), update = random_floats({2, 3, 2, 2}, 2);
    for (const std::string mode : {"linear", "circular"})
        for (const bool indexed : {false, true}) {
            const std::vector<std::int64_t> first = !indexed ? std::vector<std::int64_t>{0, 0} : mode == "linear" ? std::vector<std::int64_t>{3, 1} : std::vector<std::int64_t>{4, 0};
            ModelBuilder builder(24);
            builder.input("c", DType::f32, cache.shape).input("u", DType::f32, update.shape).constant("w", ids({2}, first));
            builder.node("TensorScatter", indexed ? std::vector<std::string>{"c", "u", "w"} : std::vector<std::string>{"c", "u"}, "y").text("mode", mode);
            const Tensor y = to_tensor(Reference(builder.output("y").build()).run({{"c", cache}, {"u", update}}).at("y"));
            Tensor want = cache;
            for (std::int64_t b = 0; b < 2; ++b)
                for (std::int64_t h = 0; h < 3; ++h)
                    for (std::int64_t s = 0; s < 2; ++s)
                        for (std::int64_t e = 0; e < 2; ++e)
                            want.as<float>()[static_cast<std::size_t>(((b * 3 + h) * 5 + (first[static_cast<std::size_t>(b)] + s) % 5) * 2 + e)] =
                                update.as<float>()[static_cast<std::size_t>(((b * 3 + h) * 2 + s) * 2 + e)];
            EXPECT_EQ(y, want) << mode;
        }
    const auto past = ModelBuilder(24).input("c", DType::f32, cache.shape).input("u", DType::f32, update.shape).constant("w", ids({2}, {4, 0}))
                          .node("TensorScatter", {"c", "u", "w"}, "y").output("y").build();
    EXPECT_NE(refusal([&] { Reference(past).run({{"c", cache}, {"u", update}}); }).find("write index 4 with 2 steps leaves a cache of 5"), std::string::npos);
}

}  // namespace
}  // namespace assay::golden
