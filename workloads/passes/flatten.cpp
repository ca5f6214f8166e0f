#include "workloads/passes/flatten.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <memory>
#include <set>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/host/functions.hpp"
#include "workloads/onnx/import.hpp"
#include "workloads/onnx/op_versions.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kMostNodes = 4096;       // that one control node may become
constexpr std::size_t kMostInlined = 1u << 17;  // of all functions together: calls of calls double
constexpr int kDeepest = 40;
constexpr double kMostBytes = 256e6;  // of node attributes that unrolling may copy

using Names = std::map<std::string, std::string>;

std::string renamed(const Names& names, const std::string& name) {
    const auto it = names.find(name);
    return it == names.end() ? name : it->second;
}

/// Renames what a node reads and writes, and what its subgraphs read from around them.
void rename(onnx::NodeProto& node, const Names& names);

void rename_captured(onnx::GraphProto& graph, Names names) {
    for (const auto& input : graph.input()) names.erase(input.name());
    for (const auto& init : graph.initializer()) names.erase(init.name());
    for (const auto& inner : graph.node())
        for (const auto& output : inner.output()) names.erase(output);
    for (auto& inner : *graph.mutable_node()) rename(inner, names);
    for (auto& output : *graph.mutable_output()) output.set_name(renamed(names, output.name()));
}

void rename(onnx::NodeProto& node, const Names& names) {
    for (auto& input : *node.mutable_input()) input = renamed(names, input);
    for (auto& output : *node.mutable_output()) output = renamed(names, output);
    for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) rename_captured(*attribute.mutable_g(), names);
        for (auto& graph : *attribute.mutable_graphs()) rename_captured(graph, names);
    }
}

double bytes_of_nodes(const onnx::GraphProto& graph) {
    double bytes = 0;
    for (const auto& node : graph.node()) bytes += static_cast<double>(node.ByteSizeLong());
    return bytes;
}

std::string name_of_node(const onnx::NodeProto& node, int index) { return node.name().empty() ? fmt::format("{}_{}", node.op_type(), index) : node.name(); }

onnx::NodeProto identity(const std::string& from, const std::string& to, const std::string& name) {
    onnx::NodeProto node;
    node.set_op_type("Identity");
    node.set_name(name);
    node.add_input(from);
    node.add_output(to);
    return node;
}

class Inliner {
public:
    explicit Inliner(const onnx::ModelProto& model) {
        for (const auto& function : model.functions()) functions_[{domain(function.domain()), function.name()}] = &function;
        for (const auto& set : model.opset_import())
            if (domain(set.domain()).empty()) opset_ = static_cast<int>(set.version());
    }

    void expand(const onnx::NodeProto& node, int index, std::vector<onnx::NodeProto>& out, int depth) {
        if (depth > kDeepest) bad("functions or graphs nest deeper than 40, or call themselves; repair the model");
        if (out.size() > kMostInlined || ++made_ > kMostInlined) bad("functions that become more than 131,072 nodes; repair the model");
        const std::string name = name_of_node(node, index);
        const auto it = functions_.find({domain(node.domain()), node.op_type()});
        if (it == functions_.end()) {
            out.push_back(node);
            out.back().set_name(name);
            for (auto& attribute : *out.back().mutable_attribute()) {
                if (attribute.has_g()) expand_graph(*attribute.mutable_g(), depth + 1);
                for (auto& graph : *attribute.mutable_graphs()) expand_graph(graph, depth + 1);
            }
            return;
        }
        const onnx::FunctionProto& function = *it->second;
        check_versions(function);
        Names names;
        auto body = hostops::function_body(function, node);
        for (const auto& inner : body)
            for (const auto& output : inner.output())
                if (!output.empty()) names[output] = name + "/fn/" + output;
        for (int i = 0; i < function.input_size(); ++i) names[function.input(i)] = i < node.input_size() ? node.input(i) : "";
        for (std::size_t i = 0; i < body.size(); ++i) {
            const std::string inner_name = name + "/fn/" + name_of_node(body[i], static_cast<int>(i));
            rename(body[i], names);
            body[i].set_name(inner_name);
            expand(body[i], static_cast<int>(i), out, depth + 1);
        }
        for (int i = 0; i < node.output_size() && i < function.output_size(); ++i)
            if (!node.output(i).empty()) out.push_back(identity(renamed(names, function.output(i)), node.output(i), name));
    }

private:
    static std::string domain(const std::string& d) { return d == "ai.onnx" ? "" : d; }
    [[noreturn]] static void bad(const std::string& text) { throw Error(ErrorKind::bad_input, text); }

    void expand_graph(onnx::GraphProto& graph, int depth) {
        std::vector<onnx::NodeProto> nodes;
        for (int i = 0; i < graph.node_size(); ++i) expand(graph.node(i), i, nodes, depth);
        graph.clear_node();
        for (auto& node : nodes) *graph.add_node() = std::move(node);
    }

    /// A function may be written for another opset: right only where its operators mean the same in the model's.
    void check_versions(const onnx::FunctionProto& function) const {
        for (const auto& set : function.opset_import()) {
            if (!domain(set.domain()).empty() || set.version() == opset_) continue;
            for (const auto& node : function.node())
                if (domain(node.domain()).empty() && schema_version(node.op_type(), static_cast<int>(set.version())) != schema_version(node.op_type(), opset_))
                    bad(fmt::format("function '{}' is written for opset {}, the model for {}, and {} differs between them; convert the model", function.name(),
                                    set.version(), opset_, node.op_type()));
        }
    }

    std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
    int opset_ = 0;
    std::size_t made_ = 0;
};

/// Writes one control node out.
class Flattening {
public:
    Flattening(Graph& graph, NodeId id) : graph_(graph), id_(id), proto_(*graph.node(id).proto), name_(graph.node(id).name), index_(graph.node(id).index) {}

    bool run() {
        const std::string op = graph_.node(id_).op;
        const bool planned = op == "If" ? plan_if() : op == "Loop" ? plan_loop() : op == "Scan" ? plan_scan() : false;
        if (!planned) return false;
        // The node gives up its outputs before others claim them.
        Node& node = graph_.node(id_);
        for (const ValueId output : node.outputs)
            if (output != kNoValue) graph_.value(output).producer = -1;
        node.outputs.clear();
        node.inputs.clear();
        node.captures.clear();
        node.folded = true;
        for (auto& [value, tensor] : constants_) {
            Value& v = graph_.value(graph_.value_id(value));
            if (v.producer >= 0 || v.is_input || v.constant)
                throw MalformedNode(id_, fmt::format("its inner value '{}' has the name of another value; rename one", value));
            v.dtype = tensor->dtype;
            v.shape = tensor->shape;
            v.known = true;
            v.origin = value;
            v.constant = std::move(tensor);
        }
        for (auto& planned_node : nodes_) {
            const std::string name = planned_node.name();
            import_node(graph_, std::move(planned_node), index_, name);
        }
        return true;
    }

private:
    const onnx::GraphProto* subgraph(const char* attribute) const {
        for (const auto& a : proto_.attribute())
            if (a.name() == attribute && a.has_g()) return &a.g();
        return nullptr;
    }
    std::int64_t integer(const char* attribute, std::int64_t otherwise) const { return graph_.node(id_).integer(attribute, otherwise); }
    const Tensor* constant(std::size_t input) const {
        const ValueId v = graph_.node(id_).input(input);
        return graph_.is_constant(v) ? graph_.value(v).constant.get() : nullptr;
    }
    bool given(std::size_t input) const { return graph_.node(id_).input(input) != kNoValue; }

    /// Adds a copy of the graph's nodes under `prefix`; `names` maps its inputs and receives its inner values.
    void add_copy(const onnx::GraphProto& graph, const std::string& prefix, Names& names) {
        for (const auto& init : graph.initializer()) {
            names[init.name()] = prefix + init.name();
            auto& tensor = decoded_[&init];  // iterations share it
            if (!tensor) tensor = std::make_shared<const Tensor>(tensor_from_proto(init, fmt::format("initialiser '{}'", init.name())));
            constants_.emplace_back(prefix + init.name(), tensor);
        }
        for (const auto& init : graph.sparse_initializer()) {
            names[init.values().name()] = prefix + init.values().name();
            auto& tensor = decoded_[&init];
            if (!tensor) tensor = std::make_shared<const Tensor>(hostops::dense_from_sparse(init, fmt::format("initialiser '{}'", init.values().name())));
            constants_.emplace_back(prefix + init.values().name(), tensor);
        }
        for (const auto& node : graph.node())
            for (const auto& output : node.output())
                if (!output.empty()) names[output] = prefix + output;
        for (int i = 0; i < graph.node_size(); ++i) {
            nodes_.push_back(graph.node(i));
            nodes_.back().set_name(prefix + name_of_node(graph.node(i), i));
            rename(nodes_.back(), names);
        }
    }
    void add_output(std::size_t k, const std::string& from) {
        if (static_cast<int>(k) < proto_.output_size() && !proto_.output(static_cast<int>(k)).empty())
            nodes_.push_back(identity(from, proto_.output(static_cast<int>(k)), name_));
    }

    bool plan_if() {
        const Tensor* condition = constant(0);
        if (!condition || condition->count() != 1) return false;
        const bool yes = condition->integer(0) != 0;
        const auto* branch = subgraph(yes ? "then_branch" : "else_branch");
        if (!branch || branch->node_size() > kMostNodes || branch->output_size() != proto_.output_size()) return false;
        Names names;
        add_copy(*branch, name_ + (yes ? "/then/" : "/else/"), names);
        for (int k = 0; k < branch->output_size(); ++k) add_output(static_cast<std::size_t>(k), renamed(names, branch->output(k).name()));
        return true;
    }

    /// True when the body's condition output is its condition input, or a constant true.
    bool goes_on(const onnx::GraphProto& body) const {
        std::string name = body.output(0).name();
        for (int hops = 0; hops <= body.node_size(); ++hops) {
            if (name == body.input(1).name()) return true;
            for (const auto& init : body.initializer())
                if (init.name() == name) {
                    const Tensor t = tensor_from_proto(init, "condition");
                    return t.count() == 1 && t.integer(0) != 0;
                }
            const onnx::NodeProto* producer = nullptr;
            for (const auto& node : body.node())
                for (const auto& output : node.output())
                    if (output == name) producer = &node;
            if (!producer) {
                const ValueId outer = graph_.find(name);
                return graph_.is_constant(outer) && graph_.value(outer).constant->count() == 1 && graph_.value(outer).constant->integer(0) != 0;
            }
            if (producer->op_type() == "Constant") {
                const auto t = hostops::evaluate(*producer, graph_.opset, {});
                return t.at(0).count() == 1 && t[0].integer(0) != 0;
            }
            if ((producer->op_type() != "Identity" && producer->op_type() != "Cast") || producer->input_size() != 1) return false;
            name = producer->input(0);
        }
        return false;
    }

    bool plan_loop() {
        const auto* body = subgraph("body");
        const std::size_t carried = graph_.node(id_).inputs.size() > 2 ? graph_.node(id_).inputs.size() - 2 : 0;
        if (!body || static_cast<std::size_t>(body->input_size()) != carried + 2 || static_cast<std::size_t>(body->output_size()) < carried + 1) return false;
        if (!constant(0) || constant(0)->count() != 1 || (given(1) && (!constant(1) || constant(1)->count() != 1))) return false;
        const bool enters = !given(1) || constant(1)->integer(0) != 0;
        const std::int64_t trips = enters ? std::max<std::int64_t>(0, constant(0)->integer(0)) : 0;
        const std::size_t scans = static_cast<std::size_t>(body->output_size()) - carried - 1;
        if (trips > kMostNodes || trips * (body->node_size() + static_cast<std::int64_t>(scans) + 1) > kMostNodes || (trips == 0 && scans > 0) ||
            (trips > 1 && !goes_on(*body)) || static_cast<double>(trips) * bytes_of_nodes(*body) > kMostBytes)
            return false;
        std::vector<std::string> values;
        for (std::size_t k = 0; k < carried; ++k) values.push_back(proto_.input(static_cast<int>(k + 2)));
        std::vector<std::vector<std::string>> slices(scans);
        for (std::int64_t i = 0; i < trips; ++i) {
            const std::string prefix = fmt::format("{}/body.{}/", name_, i);
            Names names;
            names[body->input(0).name()] = prefix + body->input(0).name();
            names[body->input(1).name()] = prefix + body->input(1).name();
            constants_.emplace_back(prefix + body->input(0).name(), std::make_shared<const Tensor>(make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{i})));
            constants_.emplace_back(prefix + body->input(1).name(), std::make_shared<const Tensor>(make_tensor<std::uint8_t>(DType::boolean, {}, std::vector<std::uint8_t>{1})));
            for (std::size_t k = 0; k < carried; ++k) names[body->input(static_cast<int>(k + 2)).name()] = values[k];
            add_copy(*body, prefix, names);
            for (std::size_t k = 0; k < carried; ++k) values[k] = renamed(names, body->output(static_cast<int>(k + 1)).name());
            for (std::size_t k = 0; k < scans; ++k)
                slices[k].push_back(add_unsqueeze(renamed(names, body->output(static_cast<int>(k + 1 + carried)).name()), fmt::format("{}slice.{}", prefix, k), 0));
        }
        for (std::size_t k = 0; k < carried; ++k) add_output(k, values[k]);
        for (std::size_t k = 0; k < scans; ++k) add_concat(slices[k], carried + k, 0);
        return true;
    }

    bool plan_scan() {
        if (graph_.opset < 9) return false;
        const auto* body = subgraph("body");
        const auto total = static_cast<std::int64_t>(graph_.node(id_).inputs.size()), m = integer("num_scan_inputs", 0);
        if (!body || m < 1 || m > total || body->input_size() != total) return false;
        const auto n = static_cast<std::size_t>(total - m);
        const auto list = [&](const char* name, std::size_t i) {
            const auto v = graph_.node(id_).integers(name);
            return i < v.size() ? v[i] : 0;
        };
        std::int64_t trips = -1;
        std::vector<std::int64_t> axes;
        for (std::size_t k = 0; k < static_cast<std::size_t>(m); ++k) {
            const ValueId id = graph_.node(id_).inputs[n + k];
            if (id == kNoValue || !graph_.value(id).known || graph_.value(id).dynamic) return false;
            const Shape& shape = graph_.value(id).shape;
            axes.push_back(normal_axis(list("scan_input_axes", k), shape.size()));
            if (axes.back() < 0 || (trips >= 0 && trips != shape[static_cast<std::size_t>(axes.back())])) return false;
            trips = shape[static_cast<std::size_t>(axes.back())];
        }
        const auto outs = static_cast<std::size_t>(body->output_size());
        if (outs < n || trips < 1 || static_cast<double>(trips) * bytes_of_nodes(*body) > kMostBytes || trips > kMostNodes || trips * (body->node_size() + m + static_cast<std::int64_t>(outs)) > kMostNodes) return false;
        for (std::size_t k = 0; k + n < outs; ++k)
            if (list("scan_output_axes", k) < 0) return false;  // needs the inner rank; the host counts it
        std::vector<std::string> states;
        for (std::size_t k = 0; k < n; ++k) states.push_back(proto_.input(static_cast<int>(k)));
        std::vector<std::vector<std::string>> slices(outs - n);
        for (std::int64_t i = 0; i < trips; ++i) {
            const std::string prefix = fmt::format("{}/body.{}/", name_, i);
            Names names;
            for (std::size_t k = 0; k < n; ++k) names[body->input(static_cast<int>(k)).name()] = states[k];
            for (std::size_t k = 0; k < static_cast<std::size_t>(m); ++k) {
                const std::string inner = prefix + body->input(static_cast<int>(n + k)).name();
                names[body->input(static_cast<int>(n + k)).name()] = inner;
                add_gather(proto_.input(static_cast<int>(n + k)), inner, axes[k], list("scan_input_directions", k) ? trips - 1 - i : i);
            }
            add_copy(*body, prefix, names);
            for (std::size_t k = 0; k < n; ++k) states[k] = renamed(names, body->output(static_cast<int>(k)).name());
            for (std::size_t k = 0; k + n < outs; ++k)
                slices[k].push_back(add_unsqueeze(renamed(names, body->output(static_cast<int>(k + n)).name()), fmt::format("{}slice.{}", prefix, k), list("scan_output_axes", k)));
        }
        for (std::size_t k = 0; k < n; ++k) add_output(k, states[k]);
        for (std::size_t k = 0; k + n < outs; ++k) {
            if (list("scan_output_directions", k)) std::reverse(slices[k].begin(), slices[k].end());
            add_concat(slices[k], n + k, list("scan_output_axes", k));
        }
        return true;
    }

    static std::int64_t normal_axis(std::int64_t axis, std::size_t rank) {
        const auto r = static_cast<std::int64_t>(rank);
        return axis < -r || axis >= r ? -1 : axis < 0 ? axis + r : axis;
    }
    onnx::NodeProto& add_node(const char* op, const std::string& name) {
        onnx::NodeProto node;
        node.set_op_type(op);
        node.set_name(name);
        nodes_.push_back(std::move(node));
        return nodes_.back();
    }
    static void set_integer(onnx::NodeProto& node, const char* name, std::int64_t value) {
        auto* a = node.add_attribute();
        a->set_name(name);
        a->set_type(onnx::AttributeProto::INT);
        a->set_i(value);
    }
    std::string add_unsqueeze(const std::string& from, const std::string& to, std::int64_t axis) {
        onnx::NodeProto& node = add_node("Unsqueeze", to);
        node.add_input(from);
        node.add_output(to);
        if (graph_.opset < 13) {
            auto* a = node.add_attribute();
            a->set_name("axes");
            a->set_type(onnx::AttributeProto::INTS);
            a->add_ints(axis);
        } else {
            node.add_input(to + ".axes");
            constants_.emplace_back(to + ".axes", std::make_shared<const Tensor>(make_tensor<std::int64_t>(DType::i64, {1}, std::vector<std::int64_t>{axis})));
        }
        return to;
    }
    void add_gather(const std::string& from, const std::string& to, std::int64_t axis, std::int64_t index) {
        onnx::NodeProto& node = add_node("Gather", to);
        node.add_input(from);
        node.add_input(to + ".index");
        node.add_output(to);
        set_integer(node, "axis", axis);
        constants_.emplace_back(to + ".index", std::make_shared<const Tensor>(make_tensor<std::int64_t>(DType::i64, {}, std::vector<std::int64_t>{index})));
    }
    void add_concat(const std::vector<std::string>& parts, std::size_t output, std::int64_t axis) {
        if (static_cast<int>(output) >= proto_.output_size() || proto_.output(static_cast<int>(output)).empty()) return;
        onnx::NodeProto& node = add_node("Concat", name_);
        for (const auto& part : parts) node.add_input(part);
        node.add_output(proto_.output(static_cast<int>(output)));
        set_integer(node, "axis", axis);
    }

    Graph& graph_;
    NodeId id_;
    const onnx::NodeProto proto_;
    const std::string name_;
    const int index_;
    std::vector<onnx::NodeProto> nodes_;
    std::vector<std::pair<std::string, std::shared_ptr<const Tensor>>> constants_;
    std::map<const void*, std::shared_ptr<const Tensor>> decoded_;
};

}  // namespace

std::vector<int> inline_functions(const onnx::ModelProto& model, onnx::GraphProto& graph) {
    std::vector<int> index;
    Inliner inliner(model);
    std::vector<onnx::NodeProto> nodes;
    for (int i = 0; i < model.graph().node_size(); ++i) {
        inliner.expand(model.graph().node(i), i, nodes, 0);
        index.resize(nodes.size(), i);
    }
    for (auto& node : nodes) *graph.add_node() = std::move(node);
    return index;
}

bool flatten_control(Graph& graph, NodeId id) { return Flattening(graph, id).run(); }

}  // namespace assay::workloads
