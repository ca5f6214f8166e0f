#include "workloads/passes/decompose/rewriter.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>

#include "support/error.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

void set(onnx::AttributeProto& proto, Attribute& mine, const Rewriter::AttributeValue& value) {
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
        proto.set_type(onnx::AttributeProto::INT);
        proto.set_i(*i);
        mine.kind = Attribute::Kind::integer;
        mine.i = *i;
    } else if (const auto* f = std::get_if<float>(&value)) {
        proto.set_type(onnx::AttributeProto::FLOAT);
        proto.set_f(*f);
        mine.kind = Attribute::Kind::real;
        mine.f = *f;
    } else if (const auto* s = std::get_if<std::string>(&value)) {
        proto.set_type(onnx::AttributeProto::STRING);
        proto.set_s(*s);
        mine.kind = Attribute::Kind::text;
        mine.s = *s;
    } else {
        const auto& list = std::get<std::vector<std::int64_t>>(value);
        proto.set_type(onnx::AttributeProto::INTS);
        for (const std::int64_t v : list) proto.add_ints(v);
        mine.kind = Attribute::Kind::integers;
        mine.ints = list;
    }
}

}  // namespace

Tensor float_tensor(const Shape& shape, const std::vector<double>& values) {
    Tensor t;
    t.dtype = DType::f32;
    t.shape = shape;
    t.bytes.resize(values.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto v = static_cast<float>(values[i]);
        std::memcpy(&t.bytes[4 * i], &v, 4);
    }
    return t;
}

Rewriter::Rewriter(Graph& g, NodeId node) : graph(g), id(node), original(g.node(node)) {}

ValueId Rewriter::fresh() {
    const auto first = std::find_if(original.outputs.begin(), original.outputs.end(), [](ValueId v) { return v != kNoValue; });
    ASSAY_CHECK(first != original.outputs.end(), "a node that is taken apart has an output");
    // A model may use such a name itself: the next one is free.
    while (true) {
        const std::string name = fmt::format("{}#{}", graph.value(*first).name, steps_++);
        if (graph.find(name) != kNoValue) continue;
        const ValueId value = graph.value_id(name);
        graph.value(value).internal = true;
        return value;
    }
}

ValueId Rewriter::add(const std::string& op, const std::vector<ValueId>& inputs, const Attributes& attributes, ValueId output) {
    pending_.push_back({op, inputs, attributes, output == kNoValue ? fresh() : output});
    return pending_.back().output;
}

ValueId Rewriter::constant(Tensor tensor) {
    const ValueId value = fresh();
    Value& v = graph.value(value);
    v.dtype = tensor.dtype;
    v.shape = tensor.shape;
    v.known = true;
    v.constant = std::make_shared<const Tensor>(std::move(tensor));
    return value;
}

ValueId Rewriter::scalar(float value) { return constant(float_tensor({}, {static_cast<double>(value)})); }

ValueId Rewriter::integers(const std::vector<std::int64_t>& values) {
    Tensor t;
    t.dtype = DType::i64;
    t.shape = {static_cast<std::int64_t>(values.size())};
    t.bytes.resize(values.size() * 8);
    if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
    return constant(std::move(t));
}

ValueId Rewriter::reshape(ValueId x, const Shape& shape, ValueId output) { return add("Reshape", {x, integers(shape)}, {}, output); }

ValueId Rewriter::transpose(ValueId x, const std::vector<std::int64_t>& perm, ValueId output) {
    return add("Transpose", {x}, {{"perm", perm}}, output);
}

ValueId Rewriter::slice(ValueId x, std::int64_t axis, std::int64_t from, std::int64_t to) {
    if (graph.opset < 10)
        return add("Slice", {x},
                   {{"axes", std::vector<std::int64_t>{axis}}, {"starts", std::vector<std::int64_t>{from}}, {"ends", std::vector<std::int64_t>{to}}});
    return add("Slice", {x, integers({from}), integers({to}), integers({axis})});
}

ValueId Rewriter::reduce(const std::string& op, ValueId x, const std::vector<std::int64_t>& axes, ValueId output) {
    const int since = op == "ReduceSum" ? 13 : 18;  // axes became an input
    if (graph.opset >= since) return add(op, {x, integers(axes)}, {{"keepdims", std::int64_t{1}}}, output);
    return add(op, {x}, {{"axes", axes}, {"keepdims", std::int64_t{1}}}, output);
}

std::vector<double> Rewriter::constant_input(std::size_t i) const {
    if (!has(i) || !in(i).constant || in(i).dtype != DType::f32) throw NotTakenApart{};
    std::vector<double> values(static_cast<std::size_t>(in(i).constant->count()));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = in(i).constant->value(static_cast<std::int64_t>(k));
    return values;
}

ValueId Rewriter::output(std::size_t i) const {
    if (i >= original.outputs.size() || original.outputs[i] == kNoValue) return kNoValue;
    const ValueId v = original.outputs[i];
    return graph.value(v).is_output || !graph.consumers(v).empty() ? v : kNoValue;
}

void Rewriter::commit() {
    Node& old = graph.node(id);
    for (const ValueId v : old.outputs)
        if (v != kNoValue) graph.value(v).producer = -1;
    old.folded = true;
    old.inputs.clear();
    old.outputs.clear();
    old.captures.clear();
    for (Pending& p : pending_) {
        auto proto = std::make_shared<onnx::NodeProto>();
        Node node;
        node.index = original.index;
        node.name = original.name;
        node.op = p.op;
        proto->set_op_type(p.op);
        proto->set_name(original.name);
        for (const ValueId v : p.inputs) proto->add_input(v == kNoValue ? "" : graph.value(v).name);
        proto->add_output(graph.value(p.output).name);
        for (const auto& [name, value] : p.attributes) {
            auto* a = proto->add_attribute();
            a->set_name(name);
            set(*a, node.attributes[name], value);
        }
        node.inputs = std::move(p.inputs);
        node.outputs = {p.output};
        node.proto = std::move(proto);
        infer_node(graph, graph.add_node(std::move(node)));
    }
}

}  // namespace assay::workloads
