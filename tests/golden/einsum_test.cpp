// Einsum and Det against their definitions: a sum over every value of every label, and over every permutation.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::ModelBuilder;
using testing::random_floats;

/// `explicit_equation` has no spaces, no dots, and an arrow: what `equation` means, spelled out.
void check(const std::string& equation, const std::string& explicit_equation, const std::vector<Shape>& shapes) {
    SCOPED_TRACE(equation);
    std::vector<std::string> terms(1);
    const std::size_t arrow = explicit_equation.find("->");
    for (const char c : explicit_equation.substr(0, arrow)) {
        if (c == ',') terms.emplace_back();
        else terms.back() += c;
    }
    const std::string out = explicit_equation.substr(arrow + 2);
    std::map<std::string, Tensor> inputs;
    std::vector<std::string> names;
    std::map<char, std::int64_t> extent;
    ModelBuilder builder(12);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        names.push_back("x" + std::to_string(i));
        inputs[names[i]] = random_floats(shapes[i], static_cast<unsigned>(i + 1));
        builder.input(names[i], DType::f32, shapes[i]);
        for (std::size_t d = 0; d < terms[i].size(); ++d) extent[terms[i][d]] = std::max(extent[terms[i][d]], shapes[i][d]);
    }
    builder.node("Einsum", names, "y").text("equation", equation);
    const Reference reference(builder.output("y").build());
    const Value y = reference.evaluate("y", {inputs.begin(), inputs.end()}, {"fp32", 0});
    Shape shape;
    for (const char c : out) shape.push_back(extent[c]);
    ASSERT_EQ(y.shape, shape);
    std::vector<double> want(static_cast<std::size_t>(element_count(shape)), 0.0);
    std::vector<float> narrow(want.size(), 0.0f);
    std::int64_t all = 1;
    for (const auto& [label, n] : extent) all *= n;
    for (std::int64_t step = 0; step < all; ++step) {
        std::map<char, std::int64_t> at;
        std::int64_t rest = step;
        for (const auto& [label, n] : extent) {
            at[label] = rest % n;
            rest /= n;
        }
        const auto index = [&](const std::string& term, const Shape& dims) {
            std::int64_t i = 0;
            for (std::size_t d = 0; d < term.size(); ++d) i = i * dims[d] + (dims[d] == 1 ? 0 : at[term[d]]);
            return i;
        };
        double product = 1;
        float narrow_product = 1;
        for (std::size_t i = 0; i < terms.size(); ++i) {
            product *= inputs[names[i]].value(index(terms[i], shapes[i]));
            narrow_product *= static_cast<float>(inputs[names[i]].value(index(terms[i], shapes[i])));
        }
        const auto to = static_cast<std::size_t>(index(out, shape));
        want[to] += product;
        narrow[to] += narrow_product;
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        EXPECT_NEAR(y.at(at), want[i], 1e-12) << i;
        EXPECT_LE(std::fabs(static_cast<double>(narrow[i]) - y.at(at)), y.error(at)) << "fp32 sums are honest at " << i;
        EXPECT_LT(y.error(at), 1e-4) << "a bound that holds everything says nothing, at " << i;
    }
}

TEST(Einsum, IsTheSumOverEveryLabel) {
    check("ij,jk->ik", "ij,jk->ik", {{3, 4}, {4, 5}});
    check("ij,jk", "ij,jk->ik", {{3, 4}, {4, 5}});
    check("bhqd, bhkd -> bhqk", "bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}});
    check("...qd,...kd->...qk", "bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}});
    check("...ij,jk", "abij,jk->abik", {{2, 3, 2, 4}, {4, 3}});
    check("a...,b...->ab...", "axy,by->abxy", {{2, 3, 4}, {5, 4}});
    check("ii->i", "ii->i", {{4, 4}});
    check("ii", "ii->", {{4, 4}});
    check("iij,jkk->ik", "iij,jkk->ik", {{3, 3, 2}, {2, 4, 4}});
    check("ij->ji", "ij->ji", {{3, 4}});
    check("ba", "ba->ab", {{3, 4}});  // implicit: sorted by code
    check("bA", "bA->Ab", {{3, 4}});
    check("ij->", "ij->", {{3, 4}});
    check("i,j->ij", "i,j->ij", {{3}, {4}});
    check("i,i->i", "i,i->i", {{5}, {5}});
    check("i,i->", "i,i->", {{5}, {5}});
    check("ij,jk,kl->il", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}});
    check("ij,ij,ij->i", "ij,ij,ij->i", {{2, 3}, {2, 3}, {2, 3}});
    check("ia,jb->ij", "ia,jb->ij", {{3, 2}, {4, 2}});  // labels of one term alone
    check("bi,bi->b", "bi,bi->b", {{1, 4}, {3, 4}});    // an extent of 1 repeats
    check("bi,ci->bc", "bi,ci->bc", {{2, 1}, {3, 4}});
}

TEST(Einsum, IntegersAreExact) {
    const auto model = ModelBuilder(12).input("a", DType::i64, {2, 2}).input("b", DType::i64, {2, 2}).node("Einsum", {"a", "b"}, "y").text("equation", "ij,jk->ki").output("y", DType::i64).build();
    const auto ids = [](const std::vector<std::int64_t>& v) { return testing::tensor<std::int64_t>(DType::i64, {2, 2}, v); };
    EXPECT_EQ(to_tensor(Reference(model).run({{"a", ids({1, 2, 3, 4})}, {"b", ids({1000000007, -5, 11, 13})}}).at("y")), ids({1000000029, 3000000065, 21, 37}));
}

TEST(Einsum, RefusesEquationsByWhatIsWrong) {
    const auto refusal = [](const std::string& equation, const Shape& a, const Shape& b) {
        const auto model = ModelBuilder(12).input("a", DType::f32, a).input("b", DType::f32, b).node("Einsum", {"a", "b"}, "y").text("equation", equation).output("y").build();
        try {
            Reference(model).run({{"a", Tensor(DType::f32, a)}, {"b", Tensor(DType::f32, b)}});
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("nothing was refused");
    };
    EXPECT_NE(refusal("ij->ij", {2, 2}, {2, 2}).find("1 terms for 2 inputs"), std::string::npos);
    EXPECT_NE(refusal("ij,jk->iz", {2, 2}, {2, 2}).find("one that no term has"), std::string::npos);
    EXPECT_NE(refusal("ij,jk->ii", {2, 2}, {2, 2}).find("names a label twice"), std::string::npos);
    EXPECT_NE(refusal("ij,jk->ik", {2, 3}, {2, 2}).find("a label is both 3 and 2"), std::string::npos);
    EXPECT_NE(refusal("ij,jkl->ik", {2, 2}, {2, 2}).find("names 3 dimensions of 2x2"), std::string::npos);
    EXPECT_NE(refusal("i1,jk->ik", {2, 2}, {2, 2}).find("is not letters"), std::string::npos);
}

double leibniz(const std::vector<double>& a, int n) {
    std::vector<int> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    double sum = 0;
    do {
        double product = 1;
        for (int i = 0; i < n; ++i) {
            product *= a[static_cast<std::size_t>(i * n + order[static_cast<std::size_t>(i)])];
            for (int j = 0; j < i; ++j) product = order[static_cast<std::size_t>(j)] > order[static_cast<std::size_t>(i)] ? -product : product;
        }
        sum += product;
    } while (std::next_permutation(order.begin(), order.end()));
    return sum;
}

/// In fp32, by elimination with pivots.
float narrow_determinant(std::vector<float> a, int n) {
    float product = 1;
    for (int i = 0; i < n; ++i) {
        int best = i;
        for (int r = i + 1; r < n; ++r)
            if (std::fabs(a[static_cast<std::size_t>(r * n + i)]) > std::fabs(a[static_cast<std::size_t>(best * n + i)])) best = r;
        for (int c = 0; c < n && best != i; ++c) std::swap(a[static_cast<std::size_t>(i * n + c)], a[static_cast<std::size_t>(best * n + c)]);
        if (best != i) product = -product;
        const float pivot = a[static_cast<std::size_t>(i * n + i)];
        if (pivot == 0) return 0;
        product *= pivot;
        for (int r = i + 1; r < n; ++r) {
            const float factor = a[static_cast<std::size_t>(r * n + i)] / pivot;
            for (int c = i; c < n; ++c) a[static_cast<std::size_t>(r * n + c)] -= factor * a[static_cast<std::size_t>(i * n + c)];
        }
    }
    return product;
}

TEST(Det, IsTheSumOverEveryPermutation) {
    int checked = 0;
    for (int n = 1; n <= 5; ++n) {
        const Tensor x = random_floats({6, n, n}, static_cast<unsigned>(n));
        const Reference reference(ModelBuilder(11).input("x", DType::f32, x.shape).node("Det", {"x"}, "y").output("y").build());
        const Value y = reference.evaluate("y", {{"x", x}}, {"fp32", 0});
        ASSERT_EQ(y.shape, Shape{6});
        for (int m = 0; m < 6; ++m, ++checked) {
            std::vector<double> a;
            for (int i = 0; i < n * n; ++i) a.push_back(x.value(m * n * n + i));
            EXPECT_NEAR(y.at(m), leibniz(a, n), 1e-12) << n;
            EXPECT_LE(std::fabs(static_cast<double>(narrow_determinant({a.begin(), a.end()}, n)) - y.at(m)), y.error(m)) << n << ", matrix " << m;
            EXPECT_LT(y.error(m), 1e-3) << n << ", matrix " << m;
        }
    }
    EXPECT_EQ(checked, 30);
}

TEST(Det, OfASingularMatrixIsZeroWithABound) {
    const Tensor x = testing::floats({3, 3}, {1, 2, 3, 2, 4, 6, 1, 0, 1});
    const Reference reference(ModelBuilder(11).input("x", DType::f32, x.shape).node("Det", {"x"}, "y").output("y").build());
    const Value y = reference.evaluate("y", {{"x", x}}, {"fp32", 0});
    EXPECT_EQ(y.shape, Shape{});
    EXPECT_EQ(y.at(0), 0);
    EXPECT_LT(y.error(0), 1e-4);
    const auto wide = ModelBuilder(11).input("x", DType::f32, {2, 3}).node("Det", {"x"}, "y").output("y").build();
    EXPECT_THROW(Reference(wide).run({{"x", Tensor(DType::f32, {2, 3})}}), Error);
}

}  // namespace
}  // namespace assay::golden
