// What the passes make of control flow, functions, bound inputs and shapes that only the run decides.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "model_builder.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/onnx/import.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads::testing {
namespace {

Tensor int64s(const Shape& shape, const std::vector<std::int64_t>& v) { return make_tensor<std::int64_t>(DType::i64, shape, v); }

const CompileOptions kNoOptions;

Graph inferred(const ModelBuilder& m, const CompileOptions& options = kNoOptions) {
    Graph graph = import_model(m.model, {"model.onnx", ""}, options);
    std::vector<NodeError> errors;
    infer_and_fold(graph, errors);
    for (const NodeError& error : errors) ADD_FAILURE() << graph.node(error.node).name << ": " << error.what();
    return graph;
}

const Value& value(const Graph& graph, const std::string& name) {
    static const Value absent;
    const ValueId id = graph.find(name);
    EXPECT_NE(id, kNoValue) << name;
    return id == kNoValue ? absent : graph.value(id);
}

/// A graph attribute with one node a body line; values read from around it need no declaration.
onnx::GraphProto& body(onnx::NodeProto& node, const std::string& name) {
    auto* a = node.add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::GRAPH);
    return *a->mutable_g();
}
void add(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
    auto* node = graph.add_node();
    node->set_op_type(op);
    for (const auto& i : inputs) node->add_input(i);
    node->add_output(output);
}

/// y = x + 1 when sr is 16000, else x - 1 reshaped to a list: the branches differ in shape.
ModelBuilder choice() {
    ModelBuilder m;
    m.input("x", {2, 3}).input("sr", {1}, DType::i64).constant("rate", int64s({1}, {16000})).constant("list", int64s({1}, {-1})).scalar("one", 1).output("y");
    m.node("Equal", {"sr", "rate"}, {"is"});
    auto& node = m.node("If", {"is"}, {"y"});
    node.set_name("pick");
    auto& yes = body(node, "then_branch");
    add(yes, "Add", {"x", "one"}, "r");
    yes.add_output()->set_name("r");
    auto& no = body(node, "else_branch");
    add(no, "Sub", {"x", "one"}, "s");
    add(no, "Reshape", {"s", "list"}, "r");
    no.add_output()->set_name("r");
    return m;
}

TEST(Flatten, AGivenInputDecidesTheBranchAndIsRecorded) {
    CompileOptions options;
    for (const std::int64_t rate : {16000, 8000}) {
        options.input_values["sr"] = int64s({1}, {rate});
        const Graph graph = inferred(choice(), options);
        ASSERT_TRUE(graph.bound_inputs.contains("sr"));
        EXPECT_EQ(graph.bound_inputs.at("sr"), options.input_values["sr"]);
        EXPECT_EQ(value(graph, "y").shape, rate == 16000 ? (Shape{2, 3}) : (Shape{6}));
        EXPECT_FALSE(value(graph, "y").dynamic);
        const Value& inner = value(graph, rate == 16000 ? "pick/then/r" : "pick/else/r");
        EXPECT_EQ(graph.node(inner.producer).index, 1) << "an inner node reports the outermost node's index";
        EXPECT_EQ(graph.node(inner.producer).name, rate == 16000 ? "pick/then/Add_0" : "pick/else/Reshape_1");
        EXPECT_EQ(graph.node(value(graph, "y").producer).op, "Identity");
    }
}

TEST(Flatten, WithoutAValueTheBranchIsDecidedAtRunTime) {
    const Graph graph = inferred(choice());
    EXPECT_TRUE(graph.bound_inputs.empty());
    EXPECT_TRUE(value(graph, "y").known);
    EXPECT_TRUE(value(graph, "y").dynamic);
    const Node& node = graph.node(value(graph, "y").producer);
    ASSERT_EQ(node.op, "If");
    ASSERT_EQ(node.captures.size(), 3u) << "x, one and list are read from around the branches";
    EXPECT_EQ(graph.value(node.captures[0]).name, "x");
}

TEST(Flatten, AnIntegerThatIsOnlyDataIsNotBound) {
    ModelBuilder m;
    m.input("table", {8, 4}).input("position", {1}, DType::i64).output("y");
    m.node("Gather", {"table", "position"}, {"y"});
    CompileOptions options;
    options.input_values["position"] = int64s({1}, {3});
    const Graph graph = inferred(m, options);
    EXPECT_TRUE(graph.bound_inputs.empty());
    EXPECT_EQ(value(graph, "y").shape, (Shape{1, 4}));
    EXPECT_EQ(value(graph, "position").constant, nullptr);
}

/// s = x, then three times s = s * s + x; t stacks each s.
ModelBuilder loop(std::int64_t trips) {
    ModelBuilder m;
    m.input("x", {2}).constant("trips", int64s({}, {trips})).output("y").output("t");
    auto& node = m.node("Loop", {"trips", "", "x"}, {"y", "t"});
    node.set_name("again");
    auto& b = body(node, "body");
    for (const char* name : {"i", "go", "s"}) b.add_input()->set_name(name);
    add(b, "Mul", {"s", "s"}, "square");
    add(b, "Add", {"square", "x"}, "next");
    add(b, "Identity", {"go"}, "still");
    add(b, "Identity", {"next"}, "seen");
    for (const char* name : {"still", "next", "seen"}) b.add_output()->set_name(name);
    return m;
}

TEST(Flatten, ALoopUnrollsWithNamedIterations) {
    const Graph graph = inferred(loop(3));
    EXPECT_EQ(value(graph, "y").shape, (Shape{2}));
    EXPECT_EQ(value(graph, "t").shape, (Shape{3, 2}));
    for (const char* name : {"again/body.0/square", "again/body.1/next", "again/body.2/seen"}) EXPECT_EQ(value(graph, name).shape, (Shape{2})) << name;
    for (NodeId id = 0; id < graph.node_count(); ++id) EXPECT_TRUE(graph.node(id).op != "Loop" || graph.node(id).folded);
}

TEST(Flatten, ALongLoopStaysOnTheHost) {
    const Graph graph = inferred(loop(100000));
    EXPECT_TRUE(value(graph, "y").dynamic);
    EXPECT_EQ(value(graph, "y").dtype, DType::f32);
}

TEST(HostEvaluator, ALoopCountsAsItsUnrolledFormDoes) {
    const Tensor x = make_tensor<float>(DType::f32, {2}, std::vector<float>{0.5f, -1.0f});
    const auto out = hostops::evaluate_model(loop(3).model, {{"x", x}});
    std::vector<float> s{0.5f, -1.0f}, stacked;
    for (int i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 2; ++k) {
            s[k] = s[k] * s[k] + x.as<float>()[k];
            stacked.push_back(s[k]);
        }
    EXPECT_EQ(out.at("y"), make_tensor<float>(DType::f32, {2}, s));
    EXPECT_EQ(out.at("t"), make_tensor<float>(DType::f32, {3, 2}, stacked));
}

TEST(Flatten, AModelLocalFunctionIsWrittenOut) {
    ModelBuilder m;
    m.input("x", {4}).output("y");
    auto& call = m.node("Twice", {"x"}, {"y"});
    call.set_domain("local");
    call.set_name("f");
    attribute(call, "alpha", 0.25f);
    auto* function = m.model.add_functions();
    function->set_name("Twice");
    function->set_domain("local");
    function->add_input("a");
    function->add_output("c");
    function->add_attribute("alpha");
    auto* set = function->add_opset_import();
    set->set_domain("");
    set->set_version(13);
    auto* first = function->add_node();
    first->set_op_type("LeakyRelu");
    first->add_input("a");
    first->add_output("b");
    auto* reference = first->add_attribute();
    reference->set_name("alpha");
    reference->set_type(onnx::AttributeProto::FLOAT);
    reference->set_ref_attr_name("alpha");
    auto* second = function->add_node();
    second->set_op_type("Add");
    second->add_input("b");
    second->add_input("b");
    second->add_output("c");
    const Graph graph = inferred(m);
    EXPECT_EQ(value(graph, "f/fn/b").shape, (Shape{4}));
    EXPECT_EQ(graph.node(value(graph, "f/fn/b").producer).real("alpha", 0), 0.25f);
    EXPECT_EQ(graph.node(value(graph, "f/fn/b").producer).name, "f/fn/LeakyRelu_0");
    const Tensor x = make_tensor<float>(DType::f32, {4}, std::vector<float>{-4, -1, 0, 3});
    EXPECT_EQ(hostops::evaluate_model(m.model, {{"x", x}}).at("y"), make_tensor<float>(DType::f32, {4}, std::vector<float>{-2, -0.5f, 0, 6}));
}

TEST(Inference, WhatDependsOnDataIsDynamicUntilItsShapeIsStated) {
    ModelBuilder m;
    m.input("x", {3, 4}).constant("six", int64s({2}, {2, 3})).output("r").output("n");
    m.node("NonZero", {"x"}, {"at"});
    m.node("Transpose", {"at"}, {"turned"});
    m.node("Reshape", {"turned", "six"}, {"r"});
    m.node("Size", {"at"}, {"n"});
    const Graph graph = inferred(m);
    EXPECT_TRUE(value(graph, "at").dynamic);
    EXPECT_TRUE(value(graph, "turned").dynamic);
    EXPECT_EQ(value(graph, "turned").dtype, DType::i64);
    EXPECT_FALSE(value(graph, "r").dynamic);
    EXPECT_EQ(value(graph, "r").shape, (Shape{2, 3}));
    EXPECT_EQ(value(graph, "n").shape, Shape{});
    EXPECT_FALSE(value(graph, "n").dynamic);
}

TEST(Import, SparseInitialisersAreMadeDense) {
    ModelBuilder m;
    m.input("x", {2, 2}).output("y");
    auto* sparse = m.model.mutable_graph()->add_sparse_initializer();
    sparse->add_dims(2);
    sparse->add_dims(2);
    sparse->mutable_values()->set_name("w");
    sparse->mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
    sparse->mutable_values()->add_dims(1);
    sparse->mutable_values()->add_float_data(5);
    sparse->mutable_indices()->set_data_type(onnx::TensorProto::INT64);
    sparse->mutable_indices()->add_dims(1);
    sparse->mutable_indices()->add_int64_data(2);
    m.node("Add", {"x", "w"}, {"y"});
    const Graph graph = inferred(m);
    ASSERT_NE(value(graph, "w").constant, nullptr);
    EXPECT_EQ(*value(graph, "w").constant, make_tensor<float>(DType::f32, {2, 2}, std::vector<float>{0, 0, 5, 0}));
}

}  // namespace
}  // namespace assay::workloads::testing
