// Bytes of an ONNX file through the parser, and every tensor in it through the decoder.
#include <onnx/onnx_pb.h>

#include "fuzz_target.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::fuzz {

std::vector<std::string> seeds() {
    onnx::ModelProto model;
    model.set_ir_version(7);
    model.add_opset_import()->set_version(13);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.add_output()->set_name(std::string("y"));
    using Proto = onnx::TensorProto;
    const auto initializer = [&](Proto::DataType type, std::vector<std::int64_t> dims) -> Proto& {
        Proto& t = *graph.add_initializer();
        t.set_name(std::to_string(graph.initializer_size()));
        t.set_data_type(type);
        for (const std::int64_t dim : dims) t.add_dims(dim);
        return t;
    };
    for (const float value : {1.5f, -2.0f}) {
        initializer(Proto::FLOAT, {1}).add_float_data(value);
        initializer(Proto::DOUBLE, {}).add_double_data(value);
    }
    initializer(Proto::INT8, {2}).set_raw_data("ab");
    initializer(Proto::INT64, {1, 1}).add_int64_data(-1);
    initializer(Proto::UINT32, {1}).add_uint64_data(7);
    initializer(Proto::FLOAT16, {1}).add_int32_data(0x3C00);
    initializer(Proto::FLOAT, {0, 3});
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Constant");
    node.add_output(std::string("y"));
    onnx::AttributeProto& value = *node.add_attribute();
    value.set_name(std::string("value"));
    value.set_type(onnx::AttributeProto::TENSOR);
    *value.mutable_t() = graph.initializer(0);
    return {model.SerializeAsString()};
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    refusing([&] {
        const auto model = assay::parse_onnx({reinterpret_cast<const char*>(data), size}, "fuzz.onnx");
        ++accepted;
        const auto decode = [](const onnx::TensorProto& proto) {
            refusing([&] { expect(assay::tensor_from_proto(proto, "t").count() >= 0, "a decoded tensor has a count"); });
        };
        for (const auto& tensor : model->graph().initializer()) decode(tensor);
        for (const auto& node : model->graph().node())
            for (const auto& attribute : node.attribute()) decode(attribute.t());
    });
    return 0;
}
