#include "workloads/host/functions.hpp"

#include <fmt/core.h>
#include <google/protobuf/unknown_field_set.h>

#include <map>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/evaluate.hpp"

namespace assay::workloads::hostops {
namespace {

using Attributes = std::map<std::string, onnx::AttributeProto>;

/// FunctionProto.attribute_proto (field 11, IR version 9) holds defaults; the schema compiled here may be older and keep it unparsed.
constexpr int kDefaultsField = 11;

Attributes attributes_for(const onnx::FunctionProto& function, const onnx::NodeProto& call) {
    Attributes out;
    const google::protobuf::UnknownFieldSet& unknown = function.GetReflection()->GetUnknownFields(function);
    for (int i = 0; i < unknown.field_count(); ++i) {
        const auto& field = unknown.field(i);
        onnx::AttributeProto attribute;
        if (field.number() == kDefaultsField && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
            attribute.ParseFromString(field.length_delimited()))
            out[attribute.name()] = attribute;
    }
    for (const auto& attribute : call.attribute()) out[attribute.name()] = attribute;
    return out;
}

void resolve(onnx::NodeProto& node, const Attributes& given);

void resolve(onnx::GraphProto& graph, const Attributes& given) {
    for (auto& node : *graph.mutable_node()) resolve(node, given);
}

void resolve(onnx::NodeProto& node, const Attributes& given) {
    onnx::NodeProto plain = node;
    plain.clear_attribute();
    for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_ref_attr_name() && !attribute.ref_attr_name().empty()) {
            const auto it = given.find(attribute.ref_attr_name());
            if (it == given.end()) continue;
            auto* added = plain.add_attribute();
            *added = it->second;
            added->set_name(attribute.name());
            continue;
        }
        auto* added = plain.add_attribute();
        added->Swap(&attribute);
        if (added->has_g()) resolve(*added->mutable_g(), given);
        for (auto& graph : *added->mutable_graphs()) resolve(graph, given);
    }
    node.Swap(&plain);
}

}  // namespace

std::vector<onnx::NodeProto> function_body(const onnx::FunctionProto& function, const onnx::NodeProto& call) {
    const Attributes given = attributes_for(function, call);
    std::vector<onnx::NodeProto> body(function.node().begin(), function.node().end());
    for (auto& node : body) resolve(node, given);
    return body;
}

Tensor dense_from_sparse(const onnx::SparseTensorProto& proto, const std::string& where) {
    const auto bad = [&](const std::string& text) { throw Error(ErrorKind::bad_input, fmt::format("{}: {}; repair the model", where, text)); };
    const Shape shape(proto.dims().begin(), proto.dims().end());
    if (element_count(shape) > kMaxElements)
        bad(fmt::format("a sparse tensor of {} elements, allowed: {}", element_count(shape), kMaxElements));
    const Tensor values = tensor_from_proto(proto.values(), where + ": values"), indices = tensor_from_proto(proto.indices(), where + ": indices");
    const std::int64_t count = values.count();
    const auto rank = static_cast<std::int64_t>(shape.size());
    const bool linear = indices.shape == Shape{count};
    if (indices.dtype != DType::i64 || (!linear && indices.shape != Shape{count, rank}))
        bad(fmt::format("{} values need int64 indices of shape {} or {}x{}, got {} {}", count, count, count, rank, name_of(indices.dtype),
                        to_string(indices.shape)));
    Tensor out(values.dtype, shape);
    const std::size_t size = size_of(values.dtype);
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t at = 0;
        if (linear) {
            at = indices.integer(i);
            if (at < 0 || at >= out.count()) bad(fmt::format("index {} is outside {} elements", at, out.count()));
        } else {
            for (std::int64_t d = 0; d < rank; ++d) {
                const std::int64_t k = indices.integer(i * rank + d);
                if (k < 0 || k >= shape[static_cast<std::size_t>(d)]) bad(fmt::format("coordinate {} is outside {}", k, to_string(shape)));
                at = at * shape[static_cast<std::size_t>(d)] + k;
            }
        }
        std::copy_n(values.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * size), size,
                    out.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(at) * size));
    }
    return out;
}

}  // namespace assay::workloads::hostops
