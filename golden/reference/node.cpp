#include "golden/reference/node.hpp"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden {

Node::Node(const onnx::NodeProto& proto, int version, std::vector<const Value*> inputs, const Numerics& numerics, std::string label)
    : proto_(proto), version_(version), inputs_(std::move(inputs)), numerics_(numerics), label_(std::move(label)) {}

int Node::output_count() const { return proto_.output_size(); }

const Value& Node::in(std::size_t i) const {
    if (!has(i)) fail(fmt::format("input {} is missing", i));
    return *inputs_[i];
}

const Value& Node::real(std::size_t i) const {
    const Value& value = in(i);
    if (!value.floating()) fail(fmt::format("input {} is {}, must be a float tensor", i, name_of(value.dtype)));
    return value;
}

std::vector<std::int64_t> Node::integers(std::size_t i) const {
    const Value& value = in(i);
    if (value.dtype != DType::i64 && value.dtype != DType::i32) fail(fmt::format("input {} is {}, must be int64", i, name_of(value.dtype)));
    return value.n;
}

double Node::scalar(std::size_t i) const {
    if (in(i).count() != 1) fail(fmt::format("input {} has shape {}, must be one element", i, to_string(in(i).shape)));
    return in(i).at(0);
}

const onnx::AttributeProto* Node::attribute(std::string_view name) const {
    used_.emplace(name);
    for (const auto& attribute : proto_.attribute())
        if (attribute.name() == name) return &attribute;
    return nullptr;
}

std::int64_t Node::integer(std::string_view name, std::int64_t otherwise) const {
    const onnx::AttributeProto* a = attribute(name);
    if (!a) return otherwise;
    if (a->type() != onnx::AttributeProto::INT) fail(fmt::format("attribute '{}' must be an integer", name));
    return a->i();
}

double Node::real(std::string_view name, float otherwise) const {
    const onnx::AttributeProto* a = attribute(name);
    if (!a) return static_cast<double>(otherwise);
    if (a->type() != onnx::AttributeProto::FLOAT) fail(fmt::format("attribute '{}' must be a float", name));
    return static_cast<double>(a->f());
}

std::string Node::text(std::string_view name, std::string_view otherwise) const {
    const onnx::AttributeProto* a = attribute(name);
    if (!a) return std::string(otherwise);
    if (a->type() != onnx::AttributeProto::STRING) fail(fmt::format("attribute '{}' must be a string", name));
    return a->s();
}

std::optional<std::vector<std::int64_t>> Node::integers(std::string_view name) const {
    const onnx::AttributeProto* a = attribute(name);
    if (!a) return std::nullopt;
    if (a->type() != onnx::AttributeProto::INTS) fail(fmt::format("attribute '{}' must be a list of integers", name));
    return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
}

std::optional<Value> Node::tensor(std::string_view name) const {
    const onnx::AttributeProto* a = attribute(name);
    if (!a) return std::nullopt;
    if (a->type() != onnx::AttributeProto::TENSOR) fail(fmt::format("attribute '{}' must be a tensor", name));
    return to_value(tensor_from_proto(a->t(), fmt::format("{}: attribute '{}'", label_, name)));
}

void Node::require(std::string_view name, std::int64_t only) const {
    const std::int64_t value = integer(name, only);
    if (value != only) fail(fmt::format("{}={} is not supported; only {} is", name, value, only));
}

std::int64_t Node::axis(std::int64_t axis, std::int64_t rank) const {
    if (axis < -rank || axis >= rank) fail(fmt::format("axis {} is outside [{}, {})", axis, -rank, rank));
    return axis < 0 ? axis + rank : axis;
}

void Node::fail(const std::string& what) const { throw Error(ErrorKind::bad_input, fmt::format("{}: {}", label_, what)); }

void Node::check_all_attributes_used() const {
    for (const auto& attribute : proto_.attribute())
        if (!used_.contains(attribute.name())) fail(fmt::format("attribute '{}' is not supported", attribute.name()));
}

}  // namespace assay::golden
