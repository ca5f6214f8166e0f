#include "workloads/onnx/import.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <set>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/host/functions.hpp"
#include "workloads/onnx/op_versions.hpp"
#include "workloads/passes/flatten.hpp"

namespace assay::workloads {
namespace {

constexpr int kOldestOpset = 7;          // below it, broadcasting and BatchNormalization meant other things
constexpr std::int64_t kMostBound = 64;  // elements of an input that may decide shapes and conditions

[[noreturn]] void bad(const std::string& text) { throw Error(ErrorKind::bad_input, text); }

Attribute import_attribute(const onnx::AttributeProto& proto, const std::string& where) {
    Attribute a;
    using Kind = Attribute::Kind;
    switch (proto.type()) {
        case onnx::AttributeProto::INT:
            a.kind = Kind::integer;
            a.i = proto.i();
            break;
        case onnx::AttributeProto::FLOAT:
            a.kind = Kind::real;
            a.f = proto.f();
            break;
        case onnx::AttributeProto::STRING:
            a.kind = Kind::text;
            a.s = proto.s();
            break;
        case onnx::AttributeProto::INTS:
            a.kind = Kind::integers;
            a.ints.assign(proto.ints().begin(), proto.ints().end());
            break;
        case onnx::AttributeProto::FLOATS:
            a.kind = Kind::reals;
            a.floats.assign(proto.floats().begin(), proto.floats().end());
            break;
        case onnx::AttributeProto::STRINGS:
            a.kind = Kind::texts;
            a.strings.assign(proto.strings().begin(), proto.strings().end());
            break;
        case onnx::AttributeProto::TENSOR:
            a.kind = Kind::tensor;
            a.tensor = std::make_shared<const Tensor>(tensor_from_proto(proto.t(), where + " attribute '" + proto.name() + "'"));
            break;
        default:
            break;  // subgraphs and sparse tensors stay in the node's protobuf, where the host evaluator finds them
    }
    return a;
}

/// The input's shape with every dynamic dimension bound; all unbound ones are reported together.
Shape bind_shape(const onnx::ValueInfoProto& info, const std::string& file, const CompileOptions& options,
                 std::map<std::string, std::int64_t>& bound) {
    const auto given = options.input_shapes.find(info.name());
    const auto& type = info.type().tensor_type();
    Shape shape;
    if (!type.has_shape()) {
        if (given == options.input_shapes.end()) bad(fmt::format("{}: input '{}' has no shape; give an input tensor", file, info.name()));
        return given->second;
    }
    const int rank = type.shape().dim_size();
    if (given != options.input_shapes.end() && static_cast<int>(given->second.size()) != rank)
        bad(fmt::format("{}: input '{}' is given as {}, but the model declares {} dimensions; give a tensor of that rank", file,
                        info.name(), to_string(given->second), rank));
    for (int d = 0; d < rank; ++d) {
        const auto& dim = type.shape().dim(d);
        const bool fixed = dim.has_dim_value() && dim.dim_value() > 0;
        const std::string name = dim.has_dim_param() ? dim.dim_param() : "";
        std::int64_t extent = fixed ? dim.dim_value() : -1;  // -1: not bound; 0 is legal where the user gives it
        if (!fixed && !name.empty()) {
            if (const auto it = options.dims.find(name); it != options.dims.end())
                extent = it->second;
            else if (const auto earlier = bound.find(name); earlier != bound.end())
                extent = earlier->second;
        }
        if (given != options.input_shapes.end()) {
            const std::int64_t wanted = given->second[static_cast<std::size_t>(d)];
            if (extent >= 0 && extent != wanted)
                bad(fmt::format("{}: input '{}' dimension {}{} is {} in the tensor given, but {} here; give one of that size", file,
                                info.name(), d, name.empty() ? "" : " ('" + name + "')", wanted, extent));
            extent = wanted;
        }
        if (extent < 0)
            bad(fmt::format("{}: input '{}' dimension {} ('{}') is dynamic and not bound; give --dim {}=SIZE or an input tensor", file,
                            info.name(), d, name, name.empty() ? "NAME" : name));
        if (!fixed && !name.empty()) bound[name] = extent;
        shape.push_back(extent);
    }
    return shape;
}

}  // namespace

std::string op_with_version(const Node& node, int opset) {
    if (!node.domain.empty()) return fmt::format("{}.{}", node.domain, node.op);
    return fmt::format("{}-{}", node.op, schema_version(node.op, opset));
}

NodeId import_node(Graph& graph, onnx::NodeProto proto, int index, const std::string& name) {
    proto.set_name(name);
    Node n;
    n.index = index;
    n.op = proto.op_type();
    n.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
    n.name = name;
    for (const auto& a : proto.attribute()) n.attributes[a.name()] = import_attribute(a, graph.file + ": node '" + n.name + "'");
    for (const auto& input : proto.input()) n.inputs.push_back(input.empty() ? kNoValue : graph.value_id(input));
    for (const auto& output : proto.output()) n.outputs.push_back(output.empty() ? kNoValue : graph.value_id(output));
    for (const auto& capture : hostops::captured_names(proto)) n.captures.push_back(graph.value_id(capture));
    n.proto = std::make_shared<const onnx::NodeProto>(std::move(proto));
    return graph.add_node(std::move(n));
}

Graph import_model(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options) {
    Graph graph;
    graph.file = std::filesystem::path(source.path).filename().string();
    for (const auto& set : model.opset_import())
        if (set.domain().empty() || set.domain() == "ai.onnx") graph.opset = static_cast<int>(set.version());
    if (graph.opset < kOldestOpset)
        bad(fmt::format("{}: opset {} is not supported, allowed: {} and newer; convert the model", graph.file, graph.opset, kOldestOpset));
    const onnx::GraphProto& proto = model.graph();
    const auto add_initialiser = [&](const std::string& name, auto&& decode) {
        Value& v = graph.value(graph.value_id(name));
        const std::string where = graph.file + ": initialiser '" + name + "'";
        if (v.constant) bad(where + " is defined twice; rename one");
        v.constant = std::make_shared<const Tensor>(decode(where));
        v.dtype = v.constant->dtype;
        v.shape = v.constant->shape;
        v.known = true;
        v.origin = name;
    };
    for (const auto& init : proto.initializer())
        add_initialiser(init.name(), [&](const std::string& where) { return tensor_from_proto(init, where); });
    for (const auto& init : proto.sparse_initializer())
        add_initialiser(init.values().name(), [&](const std::string& where) { return hostops::dense_from_sparse(init, where); });
    std::map<std::string, std::int64_t> bound;
    for (const auto& info : proto.input()) {
        const ValueId id = graph.value_id(info.name());
        if (graph.is_constant(id)) continue;  // before IR version 4 initialisers are listed as inputs too
        if (graph.value(id).is_input) bad(fmt::format("{}: input '{}' is declared twice; rename one", graph.file, info.name()));
        Shape shape = bind_shape(info, graph.file, options, bound);
        Value& v = graph.value(id);
        v.dtype = dtype_from_onnx(info.type().tensor_type().elem_type(), graph.file + ": input '" + info.name() + "'");
        v.shape = std::move(shape);
        v.known = v.is_input = true;
        graph.inputs.push_back(id);
    }
    for (const auto& [name, tensor] : options.input_values) {
        const ValueId id = graph.find(name);
        if (id == kNoValue || !graph.value(id).is_input || is_float(tensor.dtype) || tensor.count() > kMostBound) continue;
        if (tensor.dtype == graph.value(id).dtype && tensor.shape == graph.value(id).shape) graph.input_values[name] = tensor;
    }
    onnx::GraphProto inlined;
    std::vector<int> index;
    if (model.functions_size() > 0) index = inline_functions(model, inlined);
    const onnx::GraphProto& nodes = model.functions_size() > 0 ? inlined : proto;
    for (int i = 0; i < nodes.node_size(); ++i) {
        const auto& p = nodes.node(i);
        import_node(graph, p, index.empty() ? i : index[static_cast<std::size_t>(i)], p.name().empty() ? fmt::format("{}_{}", p.op_type(), i) : p.name());
    }
    for (NodeId id = 0; id < graph.node_count(); ++id) {
        std::vector<ValueId> reads = graph.node(id).inputs;
        reads.insert(reads.end(), graph.node(id).captures.begin(), graph.node(id).captures.end());
        for (const ValueId input : reads) {
            if (input == kNoValue) continue;
            const Value& v = graph.value(input);
            if (v.producer < 0 && !v.is_input && !v.constant)
                bad(fmt::format("{}: node '{}' reads '{}', which nothing defines; repair the model", graph.file, graph.node(id).name,
                                v.name));
        }
    }
    for (const auto& info : proto.output()) {
        const ValueId id = graph.find(info.name());
        if (id == kNoValue || (graph.value(id).producer < 0 && !graph.value(id).is_input && !graph.value(id).constant))
            bad(fmt::format("{}: output '{}' is defined by no node; repair the model", graph.file, info.name()));
        graph.value(id).is_output = true;
        graph.outputs.push_back(id);
    }
    graph.connect();
    return graph;
}

}  // namespace assay::workloads
