// Functions and control flow: taken apart under documented names when their course is known, run as they are when it is not, alike in value.
#include <gtest/gtest.h>
#include <google/protobuf/text_format.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/reference.hpp"
#include "small_model.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

using testing::floats;
using testing::tensor;

std::shared_ptr<onnx::ModelProto> parse(const std::string& body) {
    auto model = std::make_shared<onnx::ModelProto>();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("ir_version: 8 opset_import { version: 16 } " + body, model.get()));
    return model;
}

std::string input(const char* name, int type, const char* dims = "") {
    return std::string("input { name: '") + name + "' type { tensor_type { elem_type: " + std::to_string(type) + " shape { " + dims + " } } } } ";
}
constexpr const char* kTwo = "dim { dim_value: 2 }";

Tensor number(std::int64_t v) { return tensor<std::int64_t>(DType::i64, {}, {v}); }
Tensor flag(bool v) { return tensor<std::uint8_t>(DType::boolean, {}, {v}); }

std::string refused(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input);
        return error.what();
    }
    ADD_FAILURE() << "no Error was thrown";
    return "";
}

/// y = c ? -x : |x| + x, where the branches read x from around them.
std::shared_ptr<onnx::ModelProto> choice() {
    return parse("graph { name: 'g' " + input("c", 9) + input("x", 1, kTwo) +
                 "node { op_type: 'If' name: 'pick' input: 'c' output: 'y' "
                 "  attribute { name: 'then_branch' type: GRAPH g { name: 't' node { op_type: 'Neg' input: 'x' output: 'v' } output { name: 'v' } } } "
                 "  attribute { name: 'else_branch' type: GRAPH g { name: 'e' node { op_type: 'Abs' input: 'x' output: 'a' } "
                 "    node { op_type: 'Add' input: 'a' input: 'x' output: 'v' } output { name: 'v' } } } } "
                 "output { name: 'y' } }");
}

TEST(ControlFlow, ADecidedBranchIsTakenApartUnderItsNames) {
    for (const bool c : {true, false}) {
        const std::map<std::string, Tensor> inputs{{"c", flag(c)}, {"x", floats({2}, {-1, 2})}};
        const Reference decided(choice(), "model", inputs), open(choice());
        const Values values = decided.run(inputs), same = open.run(inputs);
        EXPECT_EQ(values.at("y").f, (c ? std::vector<double>{1, -2} : std::vector<double>{0, 4}));
        EXPECT_EQ(same.at("y").f, values.at("y").f) << "run as it is";
        EXPECT_EQ(values.at(c ? "pick/then/v" : "pick/else/v").f, values.at("y").f);
        EXPECT_EQ(decided.has_value("pick/else/a"), !c) << "only the branch that is taken has values";
        EXPECT_FALSE(open.has_value("pick/then/v"));
        EXPECT_EQ(decided.node_of(c ? "pick/then/v" : "pick/else/a"), 0);
        EXPECT_EQ(decided.node_output(0), "y");
        const std::string text = refused([&] { decided.run({{"c", flag(!c)}, {"x", floats({2}, {-1, 2})}}); });
        EXPECT_NE(text.find("input 'c': another value"), std::string::npos) << text;
    }
}

TEST(ControlFlow, AnInnerValueIsBoundedFromItsFeeds) {
    const Reference reference(choice(), "model", {{"c", flag(false)}, {"x", floats({2}, {-1, 2})}});
    const Value y = reference.evaluate("y", {{"pick/else/a", floats({2}, {3, 4})}, {"x", floats({2}, {1, 1})}}, {"fp32", 0});
    EXPECT_EQ(y.f, (std::vector<double>{4, 5}));
    EXPECT_GT(y.err[0], 0);
    // Undecided, the whole If is one layer: its branches' reads are feeds too.
    const Value whole = Reference(choice()).evaluate("y", {{"c", flag(false)}, {"x", floats({2}, {1, 1})}}, {"fp32", 0});
    EXPECT_EQ(whole.f, (std::vector<double>{2, 2}));
}

/// state doubles n times from x; each iteration also gives the state and its number as scan outputs.
std::shared_ptr<onnx::ModelProto> doubling() {
    return parse("graph { name: 'g' " + input("n", 7) + input("x", 1, kTwo) +
                 "node { op_type: 'Loop' input: 'n' input: '' input: 'x' output: 'last' output: 'all' output: 'numbers' "
                 "  attribute { name: 'body' type: GRAPH g { name: 'b' "
                 "    input { name: 'i' type { tensor_type { elem_type: 7 shape {} } } } input { name: 'go' type { tensor_type { elem_type: 9 shape {} } } } "
                 "    input { name: 's' } node { op_type: 'Add' input: 's' input: 's' output: 'd' } node { op_type: 'Identity' input: 'go' output: 'on' } "
                 "    node { op_type: 'Identity' input: 'i' output: 'at' } output { name: 'on' } output { name: 'd' } "
                 "    output { name: 'd' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } "
                 "    output { name: 'at' type { tensor_type { elem_type: 7 shape {} } } } } } } "
                 "output { name: 'last' } output { name: 'all' } output { name: 'numbers' } }");
}

TEST(ControlFlow, ALoopOfKnownLengthHasAValueForEachIteration) {
    for (const std::int64_t n : {0, 1, 3}) {
        const std::map<std::string, Tensor> inputs{{"n", number(n)}, {"x", floats({2}, {1, -3})}};
        const Reference decided(doubling(), "model", inputs), open(doubling());
        const Values flat = decided.run(inputs), run = open.run(inputs);
        const double factor = std::ldexp(1.0, static_cast<int>(n));
        EXPECT_EQ(flat.at("last").f, (std::vector<double>{factor, -3 * factor}));
        EXPECT_EQ(flat.at("all").shape, Shape({n, 2}));
        for (const char* name : {"last", "all", "numbers"}) {
            EXPECT_EQ(flat.at(name).shape, run.at(name).shape) << name << " of " << n;
            EXPECT_EQ(flat.at(name).f, run.at(name).f) << name;
            EXPECT_EQ(flat.at(name).n, run.at(name).n) << name;
        }
        for (std::int64_t i = 0; i < n; ++i) {
            const std::string body = "Loop_0/body." + std::to_string(i) + "/";
            EXPECT_EQ(flat.at(body + "d").f[0], std::ldexp(2.0, static_cast<int>(i)));
            EXPECT_EQ(flat.at(body + "i").n[0], i);
            EXPECT_EQ(flat.at(body + "s").f[0], std::ldexp(1.0, static_cast<int>(i)));
        }
        EXPECT_FALSE(decided.has_value("Loop_0/body." + std::to_string(n) + "/d"));
    }
}

TEST(ControlFlow, ALoopWithoutEndIsAnErrorAndNotAHang) {
    const auto model = doubling();
    model->mutable_graph()->mutable_node(0)->set_input(0, "");
    const std::string text = refused([&] { Reference(model).run({{"n", number(1)}, {"x", floats({2}, {0, 0})}}); });
    EXPECT_NE(text.find("node '#0' (Loop-16): goes on past 131072 iterations"), std::string::npos) << text;
}

TEST(ControlFlow, AScanIsTakenApartByItsShapeAlone) {
    // A running sum over axis 1, backwards, collected forwards along axis 1.
    const auto model = parse(
        "graph { name: 'g' " + input("x", 1, "dim { dim_value: 2 } dim { dim_value: 3 }") +
        "initializer { name: 'zero' data_type: 1 dims: 2 float_data: 0 float_data: 0 } "
        "node { op_type: 'Scan' name: 'sum' input: 'zero' input: 'x' output: 'total' output: 'sums' "
        "  attribute { name: 'num_scan_inputs' type: INT i: 1 } attribute { name: 'scan_input_axes' type: INTS ints: 1 } "
        "  attribute { name: 'scan_input_directions' type: INTS ints: 1 } attribute { name: 'scan_output_axes' type: INTS ints: 1 } "
        "  attribute { name: 'body' type: GRAPH g { name: 'b' input { name: 's' } input { name: 'e' } "
        "    node { op_type: 'Add' input: 's' input: 'e' output: 't' } output { name: 't' } output { name: 't' } } } } "
        "output { name: 'total' } output { name: 'sums' } }");
    const Reference reference(model);
    ASSERT_TRUE(reference.has_value("sum/body.2/t"));
    const Values values = reference.run({{"x", floats({2, 3}, {1, 2, 3, 10, 20, 30})}});
    EXPECT_EQ(values.at("sums").f, (std::vector<double>{3, 5, 6, 30, 50, 60}));
    EXPECT_EQ(values.at("total").f, (std::vector<double>{6, 60}));
    EXPECT_EQ(values.at("sum/body.1/e").f, (std::vector<double>{2, 20}));
}

/// own.Leaky(x; slope) = LeakyRelu(alpha = slope) in a branch, called twice; the second call leaves the slope out.
std::shared_ptr<onnx::ModelProto> calls() {
    return parse(
        "opset_import { domain: 'own' version: 1 } graph { name: 'g' " + input("x", 1, kTwo) +
        "node { op_type: 'Leaky' domain: 'own' name: 'first' input: 'x' output: 'h' attribute { name: 'slope' type: FLOAT f: 0.5 } } "
        "node { op_type: 'Leaky' domain: 'own' input: 'h' output: 'y' } output { name: 'y' } } "
        "functions { name: 'Leaky' domain: 'own' input: 'a' output: 'b' attribute: 'slope' opset_import { version: 16 } "
        "  node { op_type: 'LeakyRelu' input: 'a' output: 'l' attribute { name: 'alpha' ref_attr_name: 'slope' type: FLOAT } } "
        "  node { op_type: 'Neg' input: 'l' output: 'b' } }");
}

TEST(ControlFlow, AFunctionsNodesTakeTheCallsAttributes) {
    const Reference reference(calls());
    const Values values = reference.run({{"x", floats({2}, {-2, 4})}});
    EXPECT_EQ(values.at("first/fn/l").f, (std::vector<double>{-1, 4}));
    EXPECT_EQ(values.at("h").f, (std::vector<double>{1, -4}));
    EXPECT_EQ(values.at("Leaky_1/fn/l").f, (std::vector<double>{1, -4 * static_cast<double>(0.01f)})) << "LeakyRelu's own default";
    EXPECT_EQ(reference.node_of("Leaky_1/fn/l"), 1);
    // A rule for the call holds for what is inside, unless that has its own.
    EXPECT_NO_THROW(reference.emulate({{"x", floats({2}, {-2, 4})}}, {{"h", {"bf16", 0}}, {"first/fn/l", {"fp32", 0}}}, {"fp32", 0}));
}

TEST(ControlFlow, AFunctionThatCallsItselfIsRefused) {
    const auto model = calls();
    model->mutable_functions(0)->mutable_node(1)->set_op_type("Leaky");
    model->mutable_functions(0)->mutable_node(1)->set_domain("own");
    EXPECT_NE(refused([&] { Reference{model}; }).find("nest deeper than 64"), std::string::npos);
}

TEST(ControlFlow, ABranchThatIsNotTakenMayHoldAnything) {
    const auto model = choice();
    model->mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g()->mutable_node(0)->set_op_type("Foo");
    const std::map<std::string, Tensor> inputs{{"c", flag(true)}, {"x", floats({2}, {1, 2})}};
    EXPECT_NO_THROW(Reference(model, "model", inputs).run(inputs));
    EXPECT_NE(refused([&] { Reference{model}; }).find("node 'pick/else/Foo_0' (Foo-16): the operator is not supported"), std::string::npos);
}

}  // namespace
}  // namespace assay::golden
