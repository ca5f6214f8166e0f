// Attention against its definition written as plain loops over one query at a time, in fp64 for values and in fp32 for bounds.
#include <cmath>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::ModelBuilder;
using testing::random_floats;

struct Case {
    std::string name;
    std::int64_t heads = 2, shared = 2, queries = 3, keys = 4, past = 0;
    bool causal = false, packed = false;
    float softcap = 0, scale = 0;
    int mask = 0;  ///< 0 none, 1 bool queries x keys, 2 float batch x 1 x queries x keys, 3 bool of the first keys alone
    std::vector<std::int64_t> lengths = {};
    std::int64_t mode = 0, left = -1, right = -1;
};
constexpr std::int64_t kBatch = 2, kSize = 4, kValueSize = 3;

/// The definition for one batch and head: probabilities and scores of one query, by T's arithmetic.
template <class T>
struct Loops {
    const Case& c;
    const Tensor &q, &k, &v, &mask;  ///< 4-D; k and v with the past in front

    std::int64_t total() const { return c.past + c.keys; }
    double masked(std::int64_t b, std::int64_t i, std::int64_t j) const {
        const std::int64_t offset = c.lengths.empty() ? c.past : c.lengths[static_cast<std::size_t>(b)] - c.queries;
        if (c.causal && j > i + offset) return -HUGE_VAL;
        if (!c.lengths.empty() && j >= c.lengths[static_cast<std::size_t>(b)]) return -HUGE_VAL;
        if (c.left >= 0 && j < i + offset - c.left) return -HUGE_VAL;
        if (c.right >= 0 && j > i + offset + c.right) return -HUGE_VAL;
        if (c.mask == 1) return mask.value(i * total() + j) != 0 ? 0 : -HUGE_VAL;
        if (c.mask == 2) return mask.value((b * c.queries + i) * total() + j);
        if (c.mask == 3) return j < 3 && mask.value(i * 3 + j) != 0 ? 0 : -HUGE_VAL;
        return 0;
    }
    /// Calls use(h, i, y of the query, what qk_matmul_output shows of it).
    template <class Use>
    void run(std::int64_t b, Use use) const {
        for (std::int64_t h = 0; h < c.heads; ++h)
            for (std::int64_t i = 0; i < c.queries; ++i) {
                const std::int64_t g = b * c.shared + h / (c.heads / c.shared);
                std::vector<T> s(static_cast<std::size_t>(total())), shown(s.size()), y(kValueSize, T(0));
                T top = -std::numeric_limits<T>::infinity(), sum = 0;
                bool open = false;
                for (std::int64_t j = 0; j < total(); ++j) {
                    T& e = s[static_cast<std::size_t>(j)];
                    for (std::int64_t d = 0; d < kSize; ++d)
                        e += static_cast<T>(q.value(((b * c.heads + h) * c.queries + i) * kSize + d)) * static_cast<T>(k.value((g * total() + j) * kSize + d));
                    e *= static_cast<T>(c.scale != 0 ? static_cast<double>(c.scale) : 0.5);  // 1 / sqrt(4)
                    T& show = shown[static_cast<std::size_t>(j)];
                    if (c.mode == 0) show = e;
                    if (c.softcap != 0) e = static_cast<T>(c.softcap) * std::tanh(e / static_cast<T>(c.softcap));
                    if (c.mode == 1) show = e;
                    const double bias = masked(b, i, j);
                    open = open || bias != -HUGE_VAL;
                    e += static_cast<T>(bias);
                    if (c.mode == 2) show = e;
                    top = std::max(top, e);
                }
                for (T& e : s) sum += e = open ? std::exp(e - top) : T(0);
                for (T& e : s) e = open ? e / sum : T(0);
                if (c.mode == 3) shown = s;
                for (std::int64_t j = 0; j < total(); ++j)
                    for (std::int64_t d = 0; d < kValueSize; ++d)
                        y[static_cast<std::size_t>(d)] += s[static_cast<std::size_t>(j)] * static_cast<T>(v.value((g * total() + j) * kValueSize + d));
                use(h, i, y, shown);
            }
    }
};

Tensor joined(const Tensor& past, const Tensor& next) {
    Shape shape = next.shape;
    shape[2] += past.shape[2];
    Tensor out(DType::f32, shape);
    const std::int64_t a = past.shape[2] * shape[3], b = next.shape[2] * shape[3];
    for (std::int64_t i = 0; i < out.count(); ++i) {
        const std::int64_t plane = i / (a + b), e = i % (a + b);
        out.as<float>()[static_cast<std::size_t>(i)] = static_cast<float>(e < a ? past.value(plane * a + e) : next.value(plane * b + e - a));
    }
    return out;
}

/// batch x heads x sequence x size as batch x sequence x (heads * size).
Tensor packed(const Tensor& x) {
    Tensor out(DType::f32, {x.shape[0], x.shape[2], x.shape[1] * x.shape[3]});
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const std::int64_t d = i % x.shape[3], s = i / x.shape[3] % x.shape[2], h = i / (x.shape[3] * x.shape[2]) % x.shape[1], b = i / (x.shape[3] * x.shape[2] * x.shape[1]);
        out.as<float>()[static_cast<std::size_t>(((b * x.shape[2] + s) * x.shape[1] + h) * x.shape[3] + d)] = static_cast<float>(x.value(i));
    }
    return out;
}

void check(const Case& c) {
    SCOPED_TRACE(c.name);
    const std::int64_t total = c.past + c.keys;
    const Tensor q = random_floats({kBatch, c.heads, c.queries, kSize}, 1, -2, 2), k = random_floats({kBatch, c.shared, c.keys, kSize}, 2, -2, 2),
                 v = random_floats({kBatch, c.shared, c.keys, kValueSize}, 3), past_k = random_floats({kBatch, c.shared, c.past, kSize}, 4, -2, 2),
                 past_v = random_floats({kBatch, c.shared, c.past, kValueSize}, 5);
    const Tensor all_k = joined(past_k, k), all_v = joined(past_v, v);
    const std::int64_t wide = c.mask == 3 ? 3 : total;
    Tensor mask;
    if (c.mask == 2) mask = random_floats({kBatch, 1, c.queries, total}, 6, -3, 3);
    if (c.mask == 1 || c.mask == 3) {
        mask = Tensor(DType::boolean, {c.queries, wide});
        for (std::int64_t i = 0; i < mask.count(); ++i) mask.as<std::uint8_t>()[static_cast<std::size_t>(i)] = i < wide ? 0 : i % 3 != 1;  // query 0 sees nothing
    }
    ModelBuilder builder(c.left >= 0 || c.right >= 0 ? 25 : 24);
    std::map<std::string, Tensor> inputs{{"q", c.packed ? packed(q) : q}, {"k", c.packed ? packed(k) : k}, {"v", c.packed ? packed(v) : v}};
    std::vector<std::string> names{"q", "k", "v", "", "", "", ""};
    if (c.mask) inputs["m"] = mask, names[3] = "m";
    if (c.past) inputs["pk"] = past_k, inputs["pv"] = past_v, names[4] = "pk", names[5] = "pv";
    if (!c.lengths.empty()) inputs["n"] = testing::tensor<std::int64_t>(DType::i64, {kBatch}, c.lengths), names[6] = "n";
    for (const auto& [name, t] : inputs) builder.input(name, t.dtype, t.shape);
    builder.node("Attention", names, "y").integer("is_causal", c.causal).integer("qk_matmul_output_mode", c.mode);
    if (c.packed) builder.integer("q_num_heads", c.heads).integer("kv_num_heads", c.shared);
    if (c.softcap != 0) builder.real("softcap", c.softcap);
    if (c.scale != 0) builder.real("scale", c.scale);
    if (c.left >= 0) builder.integer("left_window_size", c.left);
    if (c.right >= 0) builder.integer("right_window_size", c.right);
    const auto model = builder.output("y").build();
    auto* node = model->mutable_graph()->mutable_node(0);
    for (const char* name : {"present_k", "present_v", "shown"}) node->add_output(name);
    for (auto& input : *model->mutable_graph()->mutable_input())
        if (input.name() == "m" && mask.dtype == DType::boolean) input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
    const Reference reference(model);
    const Values exact = reference.run(inputs);
    EXPECT_EQ(to_tensor(exact.at("present_k")), all_k);
    EXPECT_EQ(to_tensor(exact.at("present_v")), all_v);
    const Value y = reference.evaluate("y", {inputs.begin(), inputs.end()}, {"fp32", 0}), shown = reference.evaluate("shown", {inputs.begin(), inputs.end()}, {"fp32", 0});
    ASSERT_EQ(y.shape, (c.packed ? Shape{kBatch, c.queries, c.heads * kValueSize} : Shape{kBatch, c.heads, c.queries, kValueSize}));
    ASSERT_EQ(shown.shape, (Shape{kBatch, c.heads, c.queries, total}));
    int checked = 0;
    const auto hold = [&](const Value& got, std::int64_t at, double want, float narrow) {
        if (!std::isfinite(want)) {
            EXPECT_EQ(got.at(at), want);
            EXPECT_EQ(got.error(at), 0);
        } else {
            EXPECT_NEAR(got.at(at), want, 1e-12) << at;
            EXPECT_LE(std::fabs(static_cast<double>(narrow) - got.at(at)), got.error(at)) << "fp32 arithmetic is honest at " << at;
            EXPECT_LT(got.error(at), 2e-5) << "a bound that holds everything says nothing, at " << at;
        }
        ++checked;
    };
    const auto place = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
        return c.packed ? ((b * c.queries + i) * c.heads + h) * kValueSize + d : ((b * c.heads + h) * c.queries + i) * kValueSize + d;
    };
    for (std::int64_t b = 0; b < kBatch; ++b) {
        std::vector<std::vector<float>> narrow_y, narrow_shown;
        Loops<float>{c, q, all_k, all_v, mask}.run(b, [&](auto, auto, const auto& row, const auto& scores) {
            narrow_y.push_back(row);
            narrow_shown.push_back(scores);
        });
        Loops<double>{c, q, all_k, all_v, mask}.run(b, [&](std::int64_t h, std::int64_t i, const std::vector<double>& row, const std::vector<double>& scores) {
            const auto at = static_cast<std::size_t>(h * c.queries + i);
            for (std::size_t d = 0; d < row.size(); ++d) hold(y, place(b, h, i, static_cast<std::int64_t>(d)), row[d], narrow_y[at][d]);
            for (std::size_t j = 0; j < scores.size(); ++j)
                hold(shown, ((b * c.heads + h) * c.queries + i) * total + static_cast<std::int64_t>(j), scores[j], narrow_shown[at][j]);
        });
    }
    EXPECT_EQ(checked, kBatch * c.heads * c.queries * (kValueSize + total));
}

TEST(Attention, IsTheDefinitionByOneQueryAtATime) {
    check({.name = "plain"});
    check({.name = "packed", .packed = true});
    check({.name = "groups of heads", .heads = 6, .shared = 2});
    check({.name = "groups, packed, scale", .heads = 4, .shared = 1, .packed = true, .scale = 0.3f});
    check({.name = "causal", .queries = 4, .causal = true});
    check({.name = "causal with a past", .queries = 2, .keys = 2, .past = 3, .causal = true});
    check({.name = "softcap", .softcap = 1.5f});
    check({.name = "bool mask, one query closed", .mask = 1});
    check({.name = "float mask", .mask = 2});
    check({.name = "short bool mask", .mask = 3});
    check({.name = "float mask, softcap, causal, past, groups, packed", .heads = 4, .shared = 2, .keys = 3, .past = 2, .causal = true, .packed = true, .softcap = 2, .mask = 2});
    check({.name = "padded keys", .lengths = {2, 4}});
    check({.name = "padded keys, causal, the first queries closed", .causal = true, .lengths = {2, 4}});
    check({.name = "windows", .queries = 5, .keys = 6, .left = 1, .right = 2});
    check({.name = "left window, causal, past", .queries = 3, .keys = 3, .past = 4, .causal = true, .left = 2});
}

TEST(Attention, ShowsItsScoresAtEveryStage) {
    for (std::int64_t mode = 0; mode <= 3; ++mode) {
        check({.name = "mode " + std::to_string(mode), .causal = true, .softcap = 1.25f, .mask = 2, .mode = mode});
        check({.name = "closed query, mode " + std::to_string(mode), .mask = 1, .mode = mode});
    }
}

TEST(Attention, RefusesWhatDoesNotFitByName) {
    const auto refusal = [](const Shape& q, const Shape& k, const std::function<void(ModelBuilder&)>& more) {
        ModelBuilder builder(24);
        builder.input("q", DType::f32, q).input("k", DType::f32, k).input("v", DType::f32, k).node("Attention", {"q", "k", "v"}, "y");
        more(builder);
        try {
            Reference(builder.output("y").build()).run({{"q", Tensor(DType::f32, q)}, {"k", Tensor(DType::f32, k)}, {"v", Tensor(DType::f32, k)}});
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("nothing was refused");
    };
    const auto nothing = [](ModelBuilder&) {};
    EXPECT_NE(refusal({1, 3, 2, 4}, {1, 2, 2, 4}, nothing).find("1x3x2x4, keys 1x2x2x4 and values 1x2x2x4 do not fit"), std::string::npos);
    EXPECT_NE(refusal({1, 3, 8}, {1, 3, 8}, nothing).find("which 0 heads do not divide"), std::string::npos);
    EXPECT_NE(refusal({1, 2, 2, 4}, {1, 2, 2, 4}, [](ModelBuilder& b) { b.integer("softmax_precision", 10); }).find("softmax_precision=10"), std::string::npos);
    EXPECT_NE(refusal({1, 2, 2, 4}, {1, 2, 2, 4}, [](ModelBuilder& b) { b.integer("left_window_size", 1); }).find("left_window_size"), std::string::npos)
        << "a window came with version 25";
    EXPECT_NE(refusal({1, 2, 2, 4}, {1, 2, 2, 4}, [](ModelBuilder& b) { b.integer("qk_matmul_output_mode", 4); }).find("use 0 to 3"), std::string::npos);
}

}  // namespace
}  // namespace assay::golden
