// Every elementwise operator on every type that the chip computes with, and chains of them, against plain functions in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "model_builder.hpp"
#include "run_program.hpp"

namespace assay::workloads::testing {
namespace {

CompileOptions on(const char* chip) {
    CompileOptions options;
    options.chip = preset(chip);
    return options;
}

RunResult run(ModelBuilder& m, const std::map<std::string, Tensor>& inputs, const char* chip = "aurum-nano") {
    RunResult result = compile_and_run(m.model, on(chip), inputs);
    EXPECT_TRUE(result.program.host_steps.empty()) << "a node ran on the host: " << result.program.host_steps[0].reason;
    return result;
}

/// Random floats with corner cases in front. What is subnormal is a zero to the chip.
Tensor floats(std::mt19937& engine, const Shape& shape, float low, float high, bool corners = true) {
    Tensor t = random_floats(engine, shape, low, high);
    if (!corners) return t;
    const float inf = std::numeric_limits<float>::infinity();
    const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 0.5f, -0.5f, 88.7f, 88.73f, -104.0f};
    auto* out = reinterpret_cast<float*>(t.bytes.data());
    for (std::size_t i = 0; i < std::size(special) && i < static_cast<std::size_t>(t.count()); ++i) out[i] = special[i];
    return t;
}

struct Unary {
    const char* op;
    std::function<double(double)> function;
    double ulp, absolute;  ///< relative allowance in units of 2^-24, and an absolute one
    float low = -6, high = 6;
    std::vector<std::pair<const char*, float>> attributes = {};
};

double elu(double x, double a) { return x < 0 ? a * std::expm1(x) : x; }

TEST(ElementwiseFunctions, StayWithinTheirUlp) {
    const double sqrt2 = std::sqrt(2.0);
    const Unary cases[] = {
        {"Abs", [](double x) { return std::abs(x); }, 0, 0},
        {"Neg", [](double x) { return -x; }, 0, 0},
        {"Sign", [](double x) { return std::isnan(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; }, 0, 0},
        {"Floor", [](double x) { return std::floor(x); }, 0, 0},
        {"Ceil", [](double x) { return std::ceil(x); }, 0, 0},
        {"Round", [](double x) { return std::nearbyint(x); }, 0, 0},
        {"Sqrt", [](double x) { return std::sqrt(x); }, 1, 0, 0, 100},
        {"Reciprocal", [](double x) { return 1 / x; }, 1, 0},
        {"Exp", [](double x) { return std::exp(x); }, 5, 0x1p-126, -90, 88},
        {"Log", [](double x) { return std::log(x); }, 5, 0, 0, 20},
        {"Erf", [](double x) { return std::erf(x); }, 8, 0},
        {"Sin", [](double x) { return std::sin(x); }, 0, 0x1p-22, -1000, 1000},
        {"Cos", [](double x) { return std::cos(x); }, 0, 0x1p-22, -1000, 1000},
        {"Atan", [](double x) { return std::atan(x); }, 8, 0},
        {"Relu", [](double x) { return std::isnan(x) ? x : std::max(x, 0.0); }, 0, 0},
        {"Elu", [](double x) { return elu(x, 1.5); }, 10, 0, -6, 6, {{"alpha", 1.5f}}},
        {"Celu", [](double x) { return x < 0 ? elu(x / 2, 2) : x; }, 10, 0, -6, 6, {{"alpha", 2.0f}}},
        {"Selu", [](double x) { return 1.0507009873554805 * elu(x, 1.6732632423543772); }, 12, 0},
        {"Softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 10, 0x1p-126},
        {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, 4, 0},
        {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, 6, 0x1p-22},
        {"Swish", [](double x) { return x / (1 + std::exp(-x)); }, 8, 0x1p-120, -6, 6, {{"alpha", 1.0f}}},
        {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 12, 0x1p-20},
        {"Gelu", [&](double x) { return 0.5 * x * (1 + std::erf(x / sqrt2)); }, 8, 0x1p-21},
        {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0.0; }, 0, 0},
        {"Shrink", [](double x) { return x < -0.5 ? x : x > 0.5 ? x : 0.0; }, 0, 0},
        {"LeakyRelu", [](double x) { return x < 0 ? 0.25 * x : x; }, 0, 0, -6, 6, {{"alpha", 0.25f}}},
    };
    std::mt19937 engine(31);
    int checked = 0;
    for (const Unary& c : cases) {
        ModelBuilder m(23);
        const Tensor x = floats(engine, {3, 400}, c.low, c.high);
        m.input("x", x.shape).output("y");
        auto& node = m.node(c.op, {"x"}, {"y"});
        for (const auto& [name, value] : c.attributes) attribute(node, name, value);
        const Tensor y = run(m, {{"x", x}}).tensors.at("y");
        for (std::int64_t i = 0; i < y.count(); ++i, ++checked) {
            const double v = x.value(i), g = c.function(v);
            if (std::isinf(v) && (std::isnan(g) || std::string(c.op) == "Sin" || std::string(c.op) == "Cos")) continue;  // no limit there
            if (std::isnan(g)) {
                ASSERT_TRUE(std::isnan(y.value(i))) << c.op << " of " << v << " is " << y.value(i);
            } else if (std::abs(g) > 3.4028235e38) {
                ASSERT_EQ(y.value(i), g > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity())
                    << c.op << " of " << v;
            } else {
                ASSERT_NEAR(y.value(i), g, c.ulp * 0x1p-24 * std::abs(g) + c.absolute) << c.op << " of " << v;
            }
        }
    }
    EXPECT_GT(checked, 20000);
}

TEST(ElementwiseFunctions, PowersConstantAndComputed) {
    std::mt19937 engine(32);
    for (const float exponent : {0.0f, 1.0f, 2.0f, 3.0f, 7.0f, 0.5f, -0.5f, -1.0f, -2.0f, 1.7f, -2.3f})
        for (const bool constant : {true, false}) {
            ModelBuilder m(13);
            const Tensor x = floats(engine, {300}, exponent == std::floor(exponent) ? -4.0f : 0.1f, 4.0f, false);
            Tensor p;
            p.dtype = DType::f32;
            p.shape = {1};
            p.bytes.resize(4);
            std::memcpy(p.bytes.data(), &exponent, 4);
            m.input("x", x.shape).output("y");
            std::map<std::string, Tensor> inputs{{"x", x}};
            if (constant) {
                m.constant("p", p);
            } else {
                m.input("p", {1});
                inputs["p"] = p;
            }
            m.node("Pow", {"x", "p"}, {"y"});
            const Tensor y = run(m, inputs).tensors.at("y");
            for (std::int64_t i = 0; i < y.count(); ++i) {
                const double g = std::pow(x.value(i), static_cast<double>(exponent));
                const double ulp = 8 + 4 * std::abs(static_cast<double>(exponent) * std::log2(std::abs(x.value(i))));
                ASSERT_NEAR(y.value(i), g, ulp * 0x1p-23 * std::abs(g)) << x.value(i) << " to " << exponent << (constant ? " constant" : "");
            }
        }
}

TEST(ElementwiseIntegers, ArithmeticWrapsAsTheTypeDoes) {
    const auto wrap = [](std::int64_t v, DType type) -> std::int64_t {
        if (type == DType::i8) return static_cast<std::int8_t>(v);
        if (type == DType::u8) return static_cast<std::uint8_t>(v);
        return static_cast<std::int32_t>(v);
    };
    struct Case {
        const char* op;
        std::function<std::int64_t(std::int64_t, std::int64_t)> function;
    };
    const auto floor_mod = [](std::int64_t a, std::int64_t b) {
        const std::int64_t r = a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    };
    const Case cases[] = {{"Add", [](auto a, auto b) { return a + b; }},  {"Sub", [](auto a, auto b) { return a - b; }},
                          {"Mul", [](auto a, auto b) { return a * b; }},  {"Div", [](auto a, auto b) { return a / b; }},
                          {"Mod", floor_mod},                              {"Min", [](auto a, auto b) { return std::min(a, b); }},
                          {"Max", [](auto a, auto b) { return std::max(a, b); }}, {"BitwiseAnd", [](auto a, auto b) { return a & b; }},
                          {"BitwiseOr", [](auto a, auto b) { return a | b; }},    {"BitwiseXor", [](auto a, auto b) { return a ^ b; }}};
    std::mt19937 engine(33);
    int checked = 0;
    for (const DType type : {DType::i32, DType::i8, DType::u8})
        for (const Case& c : cases) {
            const int low = type == DType::i32 ? -2000000000 : type == DType::i8 ? -128 : 0, high = type == DType::i32 ? 2000000000 : type == DType::i8 ? 127 : 255;
            const Tensor a = random_integers(engine, {4, 100}, type, low, high);
            Tensor b = random_integers(engine, {100}, type, std::max(low, -90), std::min(high, 90));
            const std::int64_t size = static_cast<std::int64_t>(b.bytes.size()) / b.count();
            for (std::int64_t i = 0; i < b.count(); ++i)
                if (b.integer(i) == 0) b.bytes[static_cast<std::size_t>(i * size)] = std::byte{3};  // no division by zero
            ModelBuilder m(18);
            m.input("a", a.shape, type).input("b", b.shape, type).output("y");
            m.node(c.op, {"a", "b"}, {"y"});
            const Tensor y = run(m, {{"a", a}, {"b", b}}).tensors.at("y");
            for (std::int64_t i = 0; i < y.count(); ++i, ++checked)
                ASSERT_EQ(y.integer(i), wrap(c.function(a.integer(i), b.integer(i % 100)), type))
                    << c.op << " of " << a.integer(i) << " and " << b.integer(i % 100) << ", " << name_of(type);
        }
    EXPECT_GT(checked, 10000);
}

TEST(ElementwiseLogic, ComparisonsSelectionAndCasts) {
    std::mt19937 engine(34);
    const Tensor a = random_integers(engine, {5, 41}, DType::i32, -3, 3), b = random_integers(engine, {41}, DType::i32, -3, 3);
    ModelBuilder m(18);
    m.input("a", a.shape, DType::i32).input("b", b.shape, DType::i32);
    for (const char* name : {"eq", "lt", "gt", "le", "ge", "both", "one", "not", "chosen", "real", "byte", "half"}) m.output(name);
    m.scalar("scale", 0.75f);
    m.node("Equal", {"a", "b"}, {"eq"});
    m.node("Less", {"a", "b"}, {"lt"});
    m.node("Greater", {"a", "b"}, {"gt"});
    m.node("LessOrEqual", {"a", "b"}, {"le"});
    m.node("GreaterOrEqual", {"a", "b"}, {"ge"});
    m.node("And", {"le", "ge"}, {"both"});
    m.node("Xor", {"le", "ge"}, {"one"});
    m.node("Not", {"eq"}, {"not"});
    m.node("Where", {"lt", "a", "b"}, {"chosen"});
    attribute(m.node("Cast", {"a"}, {"real"}), "to", std::int64_t{1});
    m.node("Mul", {"real", "scale"}, {"scaled"});
    attribute(m.node("Cast", {"scaled"}, {"half"}), "to", std::int64_t{6});
    attribute(m.node("Cast", {"scaled"}, {"byte"}), "to", std::int64_t{3});
    const auto tensors = run(m, {{"a", a}, {"b", b}}).tensors;
    for (std::int64_t i = 0; i < a.count(); ++i) {
        const std::int64_t x = a.integer(i), y = b.integer(i % 41);
        const auto is = [&](const char* name, std::int64_t want) { EXPECT_EQ(tensors.at(name).integer(i), want) << name << " of " << x << " and " << y; };
        is("eq", x == y);
        is("lt", x < y);
        is("gt", x > y);
        is("le", x <= y);
        is("ge", x >= y);
        is("both", x == y);
        is("one", x != y);
        is("not", x != y);
        is("chosen", std::min(x, y));
        is("half", static_cast<std::int64_t>(static_cast<double>(x) * 0.75));
        is("byte", static_cast<std::int64_t>(static_cast<double>(x) * 0.75));
        EXPECT_EQ(tensors.at("real").value(i), static_cast<double>(x));
    }
}

TEST(ElementwiseChains, AreOneLayerWithWhatTheyReadTwice) {
    std::mt19937 engine(35);
    const Tensor x = random_floats(engine, {2, 3, 40}, -4, 4), r = random_floats(engine, {2, 3, 40});
    ModelBuilder m(13);
    m.input("x", x.shape).input("r", r.shape).output("y").scalar("three", 3).scalar("zero", 0).scalar("six", 6).scalar("half", 0.5f);
    // x*sigmoid(x) + r, hard swish of that, then an erf gelu: values read twice all along, and more operations than three descriptors hold.
    m.node("Sigmoid", {"x"}, {"s"});
    m.node("Mul", {"x", "s"}, {"silu"});
    m.node("Add", {"silu", "r"}, {"sum"});
    m.node("Add", {"sum", "three"}, {"up"});
    m.node("Clip", {"up", "zero", "six"}, {"clipped"});
    m.node("Mul", {"sum", "clipped"}, {"h"});
    m.node("Div", {"h", "six"}, {"hs"});
    m.node("Erf", {"hs"}, {"e"});
    m.node("Add", {"e", "half"}, {"e1"});
    m.node("Mul", {"hs", "e1"}, {"y"});
    const RunResult result = run(m, {{"x", x}, {"r", r}});
    EXPECT_EQ(result.program.layers.size(), 1u) << "the chain was cut";
    const Tensor& y = result.tensors.at("y");
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const double v = x.value(i), sum = v / (1 + std::exp(-v)) + r.value(i), hs = sum * std::clamp(sum + 3, 0.0, 6.0) / 6;
        ASSERT_NEAR(y.value(i), hs * (std::erf(hs) + 0.5), 1e-5) << v;
    }
}

TEST(ElementwiseChains, ManyOperandsAreSplit) {
    std::mt19937 engine(36);
    ModelBuilder m(13);
    std::map<std::string, Tensor> inputs;
    std::vector<std::string> names;
    for (int i = 0; i < 11; ++i) {
        names.push_back(std::string("x").append(std::to_string(i)));
        inputs[names.back()] = random_floats(engine, {7, 30});
        m.input(names.back(), {7, 30});
    }
    m.output("y").output("z");
    m.node("Sum", names, {"y"});
    m.node("Max", names, {"z"});
    const auto tensors = run(m, inputs).tensors;
    for (std::int64_t i = 0; i < 210; ++i) {
        double sum = 0, most = -9;
        for (const std::string& name : names) {
            sum += inputs.at(name).value(i);
            most = std::max(most, inputs.at(name).value(i));
        }
        ASSERT_NEAR(tensors.at("y").value(i), sum, 1e-5);
        ASSERT_EQ(tensors.at("z").value(i), most);
    }
}

TEST(MatrixDrain, TakesSiluResidualAndGate) {
    std::mt19937 engine(37);
    ConvCase c;
    c.c = 5, c.h = 9, c.w = 7, c.o = 11, c.kh = c.kw = 3, c.top = c.left = c.bottom = c.right = 1;
    for (const char* chip : {"aurum-nano", "aurum-edge"}) {
        const Tensor x = random_floats(engine, {1, c.c, c.h, c.w}), w = random_floats(engine, {c.o, c.c, 3, 3}, -0.4f, 0.4f),
                     b = random_floats(engine, {c.o}), r = random_floats(engine, {1, c.o, c.h, c.w}), k = random_floats(engine, {c.o, 1, 1});
        ModelBuilder m(13);
        m.input("x", x.shape).input("r", r.shape).output("y").constant("w", w).constant("b", b).constant("k", k);
        conv_attributes(m.node("Conv", {"x", "w", "b"}, {"c"}), c);
        m.node("Sigmoid", {"c"}, {"s"});
        m.node("Mul", {"c", "s"}, {"silu"});
        m.node("Add", {"r", "silu"}, {"sum"});
        m.node("Mul", {"sum", "k"}, {"y"});
        const RunResult result = run(m, {{"x", x}, {"r", r}}, chip);
        EXPECT_EQ(result.program.layers.size(), 1u) << chip;
        const auto sums = plain_conv(c, [&](std::int64_t i) { return x.value(i); }, [&](std::int64_t i) { return w.value(i); });
        const Tensor& y = result.tensors.at("y");
        for (std::int64_t i = 0; i < y.count(); ++i) {
            const std::int64_t o = i / (c.h * c.w) % c.o;
            const double v = sums.sum[static_cast<std::size_t>(i)] + b.value(o);
            ASSERT_NEAR(y.value(i), (v / (1 + std::exp(-v)) + r.value(i)) * k.value(o), 2e-5) << chip << " at " << i;
        }
    }
}

}  // namespace
}  // namespace assay::workloads::testing
