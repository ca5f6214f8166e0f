// A model through the compiler and the reference: any graph is refused by a typed Error, or compiled to a legal program, and evaluated. Byte
// mutations of small graphs change operators, attributes, shapes, names and edges.
#include <onnx/onnx_pb.h>

#include "fuzz_target.hpp"
#include "golden/reference/reference.hpp"
#include "sample_program.hpp"
#include "simkernel/exec/legality.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/compile.hpp"

namespace assay::fuzz {
namespace {

using Proto = onnx::TensorProto;

/// A small graph under construction.
class Graph {
public:
    Graph() {
        model_.set_ir_version(8);
        model_.add_opset_import()->set_version(13);
    }
    void input(const std::string& name, const std::vector<std::int64_t>& dims, int type = Proto::FLOAT) { value(*graph().add_input(), name, dims, type); }
    void output(const std::string& name) { graph().add_output()->set_name(name); }
    void weight(const std::string& name, const std::vector<std::int64_t>& dims) {
        Proto& t = *graph().add_initializer();
        t.set_name(name);
        t.set_data_type(Proto::FLOAT);
        for (const std::int64_t dim : dims) t.add_dims(dim);
        for (std::int64_t i = 0; i < element_count(dims); ++i) t.add_float_data(0.125f * static_cast<float>(i % 7 + 1));
    }
    template <class T>
    void integers(const std::string& name, const std::vector<std::int64_t>& dims, int type, const std::vector<T>& values) {
        Proto& t = *graph().add_initializer();
        t.set_name(name);
        t.set_data_type(type);
        for (const std::int64_t dim : dims) t.add_dims(dim);
        for (const T v : values) {
            if (type == Proto::INT64) t.add_int64_data(v);
            else t.add_int32_data(static_cast<std::int32_t>(v));
        }
    }
    onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
        onnx::NodeProto& n = *graph().add_node();
        n.set_op_type(op);
        for (const std::string& name : inputs) n.add_input(name);
        n.add_output(output);
        return n;
    }
    static void ints(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
        onnx::AttributeProto& a = *node.add_attribute();
        a.set_name(name);
        a.set_type(onnx::AttributeProto::INTS);
        for (const std::int64_t v : values) a.add_ints(v);
    }
    std::string bytes() const { return model_.SerializeAsString(); }

private:
    onnx::GraphProto& graph() { return *model_.mutable_graph(); }
    static void value(onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::int64_t>& dims, int type) {
        info.set_name(name);
        auto& tensor = *info.mutable_type()->mutable_tensor_type();
        tensor.set_elem_type(type);
        for (const std::int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
    }
    onnx::ModelProto model_;
};

std::string convolutional() {
    Graph g;
    g.input("x", {1, 2, 6, 6});
    g.weight("w", {4, 2, 3, 3});
    g.weight("b", {4});
    Graph::ints(g.node("Conv", {"x", "w", "b"}, "c"), "pads", {1, 1, 1, 1});
    g.node("Relu", {"c"}, "r");
    auto& pool = g.node("MaxPool", {"r"}, "p");
    Graph::ints(pool, "kernel_shape", {2, 2});
    Graph::ints(pool, "strides", {2, 2});
    g.node("Flatten", {"p"}, "f");
    g.weight("m", {36, 5});
    g.node("MatMul", {"f", "m"}, "y0");
    g.node("Softmax", {"y0"}, "y");
    g.output("y");
    return g.bytes();
}

std::string shapes() {
    Graph g;
    g.input("x", {2, 3, 4});
    g.integers<std::int64_t>("s", {2}, Proto::INT64, {2, -1});
    g.node("Reshape", {"x", "s"}, "r");
    Graph::ints(g.node("Transpose", {"r"}, "t"), "perm", {1, 0});
    g.weight("k", {1, 2});
    g.node("Add", {"t", "k"}, "a");
    g.node("Sigmoid", {"a"}, "b");
    g.node("Mul", {"a", "b"}, "y");
    g.output("y");
    return g.bytes();
}

std::string quantised() {
    Graph g;
    g.input("x", {2, 8});
    g.weight("sx", {});
    g.integers<int>("zx", {}, Proto::INT8, {3});
    g.integers<int>("w", {8, 4}, Proto::INT8, std::vector<int>(32, -5));
    g.integers<int>("zw", {}, Proto::INT8, {0});
    g.node("QuantizeLinear", {"x", "sx", "zx"}, "q");
    g.node("DequantizeLinear", {"q", "sx", "zx"}, "d");
    g.node("DequantizeLinear", {"w", "sx", "zw"}, "dw");
    g.node("MatMul", {"d", "dw"}, "m");
    g.node("QuantizeLinear", {"m", "sx", "zx"}, "qm");
    g.node("DequantizeLinear", {"qm", "sx", "zx"}, "y");
    g.output("y");
    return g.bytes();
}

/// Models whose declared sizes are honest work are not what is looked for.
bool is_small(const onnx::GraphProto& graph) {
    constexpr std::int64_t most = 512;
    for (const auto& input : graph.input())
        for (const auto& dim : input.type().tensor_type().shape().dim())
            if (dim.dim_value() > most) return false;
    for (const auto& node : graph.node())
        for (const auto& attribute : node.attribute())
            for (const std::int64_t value : attribute.ints())
                if (value > most || value < -most) return false;
    for (const auto& t : graph.initializer())
        for (const std::int64_t value : t.int64_data())
            if (value > most || value < -most) return false;
    return true;
}

}  // namespace

std::vector<std::string> seeds() {
    return {convolutional(), shapes(), quantised()};
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay;
    using namespace assay::fuzz;
    std::shared_ptr<const onnx::ModelProto> model;
    refusing([&] { model = parse_onnx({reinterpret_cast<const char*>(data), size}, "fuzz.onnx"); });
    if (!model || !is_small(model->graph())) return 0;
    refusing([&] {
        workloads::CompileOptions options;
        options.chip = sample_chip();
        const simkernel::Program program = workloads::compile(*model, {"fuzz.onnx", std::string(64, '0')}, options);
        ++accepted;
        expect(simkernel::check_program(program.descriptors, sample_chip()).empty(), "what is compiled is legal");
        for (const simkernel::Layer& layer : program.layers) expect(!layer.outputs.empty(), "a layer has an output");
        options.chip.cores = options.cores = 3;
        const simkernel::Program dealt = workloads::compile(*model, {"fuzz.onnx", std::string(64, '0')}, options);
        expect(simkernel::check_program(dealt.descriptors, options.chip).empty(), "what is compiled for several cores is legal");
    });
    refusing([&] {
        const golden::Reference reference(model, "fuzz.onnx");
        std::map<std::string, Tensor> inputs;
        for (const auto& input : model->graph().input()) {
            Shape shape;
            for (const auto& dim : input.type().tensor_type().shape().dim()) shape.push_back(std::max<std::int64_t>(dim.dim_value(), 1));
            if (shape.size() > 6) return;
            if (element_count(shape) > 1 << 16) return;
            inputs[input.name()] = Tensor(dtype_from_onnx(input.type().tensor_type().elem_type(), input.name()), shape);
        }
        (void)reference.run(inputs);
    });
    return 0;
}
