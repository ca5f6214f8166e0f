#include "workloads/generate/graph_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"

namespace assay::workloads::generate {
namespace {

/// IR version that came with an operator set (ONNX Versioning.md, the table of releases).
int ir_version(int opset) {
    if (opset >= 23) return 11;
    if (opset >= 21) return 10;
    if (opset >= 19) return 9;
    return opset >= 15 ? 8 : 7;
}

void declare(onnx::ValueInfoProto& info, const std::string& name, const Value& value) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx_type(value.type));
    auto* shape = tensor->mutable_shape();
    for (const std::int64_t d : value.shape) shape->add_dim()->set_dim_value(d);
}

void add_attribute(onnx::NodeProto& node, const Attribute& attribute) {
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(attribute.first);
    if (const auto* i = std::get_if<std::int64_t>(&attribute.second)) {
        proto.set_type(onnx::AttributeProto::INT);
        proto.set_i(*i);
    } else if (const auto* f = std::get_if<float>(&attribute.second)) {
        proto.set_type(onnx::AttributeProto::FLOAT);
        proto.set_f(*f);
    } else if (const auto* s = std::get_if<std::string>(&attribute.second)) {
        proto.set_type(onnx::AttributeProto::STRING);
        proto.set_s(*s);
    } else {
        proto.set_type(onnx::AttributeProto::INTS);
        for (const std::int64_t v : std::get<Ints>(attribute.second)) proto.add_ints(v);
    }
}

}  // namespace

int onnx_type(DType type) {
    using Proto = onnx::TensorProto;
    switch (type) {
        case DType::f32: return Proto::FLOAT;
        case DType::f64: return Proto::DOUBLE;
        case DType::f16: return Proto::FLOAT16;
        case DType::bf16: return Proto::BFLOAT16;
        case DType::i8: return Proto::INT8;
        case DType::u8: return Proto::UINT8;
        case DType::i16: return Proto::INT16;
        case DType::u16: return Proto::UINT16;
        case DType::i32: return Proto::INT32;
        case DType::u32: return Proto::UINT32;
        case DType::i64: return Proto::INT64;
        case DType::u64: return Proto::UINT64;
        case DType::boolean: return Proto::BOOL;
        default: break;
    }
    ASSAY_CHECK(false, "the generator writes no other type");
    return 0;
}

GraphBuilder::GraphBuilder(const std::string& graph_name, const Options& options) : options_(options), model_(std::make_shared<onnx::ModelProto>()) {
    model_->set_ir_version(ir_version(options.opset));
    model_->set_producer_name("assay workload make");
    auto* set = model_->add_opset_import();
    set->set_domain("");
    set->set_version(options.opset);
    model_->mutable_graph()->set_name(graph_name);
}

GraphBuilder::~GraphBuilder() = default;

GraphBuilder::Scope::Scope(GraphBuilder& builder, const std::string& name) : builder_(builder), length_(builder.prefix_.size()) {
    builder.prefix_ += name + ".";
}

std::string GraphBuilder::fresh(const std::string& name) {
    std::string full = prefix_ + name;
    ASSAY_CHECK(names_.insert(full).second, full.c_str());
    return full;
}

Value GraphBuilder::input(const std::string& name, const Shape& shape, DType type, const Fill& fill) {
    const Value value{fresh(name), shape, type};
    declare(*model_->mutable_graph()->add_input(), value.name, value);
    inputs_.push_back({value.name, type, shape, fill, {}});
    return value;
}

Value GraphBuilder::weight(const std::string& name, const Shape& shape, const Fill& fill) {
    const Value value{fresh(name), shape, options_.float_type};
    weights_.push_back({value.name, value.type, shape, fill, {}});
    parameters_ += static_cast<std::uint64_t>(element_count(shape));
    return value;
}

Value GraphBuilder::table(const std::string& name, const Shape& shape, DType type, const Fill& fill) {
    const Value value{fresh(name), shape, type};
    weights_.push_back({value.name, type, shape, fill, {}});
    return value;
}

Value GraphBuilder::scalar(double value, DType type) {
    const std::string name = fmt::format("scalar_{}_{}", value, name_of(type));
    if (const auto found = constants_.find(name); found != constants_.end()) return found->second;
    const auto narrow = static_cast<float>(value);
    const Value made{name, {}, type, value, 0};
    weights_.push_back({name, type, {}, Fill::values(std::span(&narrow, 1), type), {}});
    return constants_[name] = made;
}

Value GraphBuilder::integers(const Ints& values) {
    const std::string name = fmt::format("ints_{}", fmt::join(values, "_"));
    if (const auto found = constants_.find(name); found != constants_.end()) return found->second;
    const Shape shape{static_cast<std::int64_t>(values.size())};
    weights_.push_back({name, DType::i64, shape, Fill::values(values), {}});
    return constants_[name] = Value{name, shape, DType::i64};
}

Value GraphBuilder::integer_scalar(std::int64_t value) {
    const std::string name = fmt::format("int_{}", value);
    if (const auto found = constants_.find(name); found != constants_.end()) return found->second;
    weights_.push_back({name, DType::i64, {}, Fill::values(std::span<const std::int64_t>(&value, 1)), {}});
    return constants_[name] = Value{name, {}, DType::i64};
}

Value GraphBuilder::node(const std::string& op, const std::string& name, const std::vector<Value>& inputs, const Shape& shape, const Attributes& attributes) {
    return node(op, name, inputs, shape, inputs.at(0).type, attributes);
}

Value GraphBuilder::node(const std::string& op, const std::string& name, const std::vector<Value>& inputs, const Shape& shape, DType type,
                         const Attributes& attributes) {
    return nodes(op, name, inputs, {shape}, {type}, attributes).at(0);
}

std::vector<Value> GraphBuilder::nodes(const std::string& op, const std::string& name, const std::vector<Value>& inputs, const std::vector<Shape>& shapes,
                                       const std::vector<DType>& types, const Attributes& attributes) {
    std::string given = name;
    if (given.empty()) {
        const int number = counters_[prefix_ + op]++;
        given = number == 0 ? op : fmt::format("{}_{}", op, number);
    }
    onnx::NodeProto& proto = *model_->mutable_graph()->add_node();
    proto.set_op_type(op);
    proto.set_name(fresh(given));
    for (const Value& value : inputs) {
        proto.add_input(value.name);
        expect(value);
    }
    std::vector<Value> made;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (shapes[i] == Shape{-1}) {
            proto.add_output("");
            made.push_back({});
            continue;
        }
        const std::string output = shapes.size() == 1 ? proto.name() + ".out" : fmt::format("{}.out_{}", proto.name(), i);
        Value value{output, shapes[i], types.at(i)};
        if (!inputs.empty()) value = value.with(inputs[0].mean, inputs[0].variance);
        proto.add_output(output);
        values_[output] = value;
        order_.push_back(output);
        made.push_back(std::move(value));
    }
    for (const Attribute& attribute : attributes) add_attribute(proto, attribute);
    return made;
}

void GraphBuilder::expect(const Value& value) {
    const auto found = values_.find(value.name);
    if (found != values_.end()) found->second = value;
}

void GraphBuilder::output(const Value& value, const std::string& name) {
    ASSAY_CHECK(values_.count(value.name) == 1, "only a node's output can be a graph output");
    ASSAY_CHECK(renamed_.emplace(value.name, name).second && names_.insert(name).second, "an output is named once");
    expect(value);
    outputs_.push_back(value);
}

GeneratedModel GraphBuilder::finish() {
    ASSAY_CHECK(!outputs_.empty(), "a model has outputs");
    onnx::GraphProto& graph = *model_->mutable_graph();
    const auto rename = [this](std::string& name) {
        if (const auto found = renamed_.find(name); found != renamed_.end()) name = found->second;
    };
    for (onnx::NodeProto& node : *graph.mutable_node()) {
        for (std::string& name : *node.mutable_input()) rename(name);
        for (std::string& name : *node.mutable_output()) rename(name);
    }
    for (const Value& value : outputs_) declare(*graph.add_output(), renamed_.at(value.name), value);
    for (const std::string& name : order_)
        if (renamed_.count(name) == 0) declare(*graph.add_value_info(), name, values_.at(name));
    GeneratedModel model{std::move(model_), std::move(weights_), std::move(inputs_), options_.seed, parameters_, macs_, {}};
    for (auto& [name, value] : values_)
        if (is_float(value.type)) {
            const auto renamed = renamed_.find(name);
            model.expected[renamed == renamed_.end() ? name : renamed->second] = value;
        }
    return model;
}

}  // namespace assay::workloads::generate
