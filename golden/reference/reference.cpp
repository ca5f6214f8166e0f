#include "golden/reference/reference.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/registry.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden {
namespace {

int default_opset(const onnx::ModelProto& model) {
    for (const auto& import : model.opset_import())
        if (import.domain().empty() || import.domain() == "ai.onnx") return static_cast<int>(import.version());
    return 0;
}

Shape declared_shape(const onnx::ValueInfoProto& info) {
    Shape shape;
    for (const auto& dim : info.type().tensor_type().shape().dim()) shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    return shape;
}

std::string shape_text(const Shape& shape) {
    std::vector<std::string> words;
    for (const std::int64_t dim : shape) words.push_back(dim < 0 ? "?" : std::to_string(dim));
    return words.empty() ? "scalar" : fmt::format("{}", fmt::join(words, "x"));
}

void check_input(const InputInfo& info, const Tensor& tensor) {
    bool fits = tensor.shape.size() == info.shape.size();
    for (std::size_t d = 0; fits && d < info.shape.size(); ++d) fits = info.shape[d] < 0 || info.shape[d] == tensor.shape[d];
    if (tensor.dtype != info.dtype || !fits)
        throw Error(ErrorKind::bad_input,
                    fmt::format("input '{}': {} of shape {}, the model takes {} of shape {}", info.name, name_of(tensor.dtype),
                                to_string(tensor.shape), name_of(info.dtype), shape_text(info.shape)));
}

}  // namespace

struct Reference::Graph {
    const onnx::GraphProto& proto;
    std::vector<Operator> operators;      ///< one a node
    std::map<std::string, int> producer;  ///< node that makes a value
    Values initialisers;
    std::string name;

    const onnx::NodeProto& node(int i) const { return proto.node(i); }

    std::string label(int i) const {
        const auto& n = proto.node(i);
        return fmt::format("{}: node '{}' ({}{}-{})", name, n.name().empty() ? fmt::format("#{}", i) : n.name(),
                           n.domain().empty() ? "" : n.domain() + ".", n.op_type(), operators[static_cast<std::size_t>(i)].version);
    }

    /// Evaluates node i from `values` and stores its outputs there.
    void evaluate(int i, Values& values, const Numerics& numerics) const {
        std::vector<const Value*> in;
        for (const auto& input : proto.node(i).input()) in.push_back(input.empty() ? nullptr : &values.at(input));
        const Operator& op = operators[static_cast<std::size_t>(i)];
        const Node node(proto.node(i), op.version, std::move(in), numerics, label(i));
        std::vector<Value> out;
        try {
            out = op.kernel(node);
        } catch (const Error& error) {
            const std::string text = error.what();
            if (error.kind() != ErrorKind::bad_input || text.starts_with(name)) throw;
            node.fail(text);  // from a helper that does not know the node
        }
        node.check_all_attributes_used();
        if (out.size() < static_cast<std::size_t>(proto.node(i).output_size()))
            node.fail(fmt::format("has {} outputs, only {} is supported", proto.node(i).output_size(), out.size()));
        for (int o = 0; o < proto.node(i).output_size(); ++o)
            if (!proto.node(i).output(o).empty()) values[proto.node(i).output(o)] = std::move(out[static_cast<std::size_t>(o)]);
    }
};

Reference::Reference(std::shared_ptr<const onnx::ModelProto> model, std::string name)
    : model_(std::move(model)), name_(std::move(name)), graph_(new Graph{model_->graph(), {}, {}, {}, name_}) {
    const int opset = default_opset(*model_);
    std::vector<std::string> problems;
    const auto problem = [&](const std::string& text) { problems.push_back(text); };
    std::set<std::string> known;
    for (const auto& proto : graph_->proto.initializer()) {
        try {
            Value value = to_value(tensor_from_proto(proto, fmt::format("{}: tensor '{}'", name_, proto.name())));
            std::int64_t bad = 0;
            for (const double v : value.f) bad += !std::isfinite(v);
            if (bad) warnings_.push_back(fmt::format("{}: tensor '{}' holds {} non-finite values", name_, proto.name(), bad));
            graph_->initialisers[proto.name()] = std::move(value);
            known.insert(proto.name());
        } catch (const Error& error) {
            problem(error.what());
        }
    }
    if (graph_->proto.sparse_initializer_size()) problem(fmt::format("{}: sparse initializers are not supported", name_));
    for (const auto& info : graph_->proto.input()) {
        if (!known.insert(info.name()).second) continue;  // an initialiser that is listed as an input too
        if (!info.type().has_tensor_type()) {
            problem(fmt::format("{}: input '{}' is not a tensor", name_, info.name()));
            continue;
        }
        try {
            inputs_.push_back({info.name(),
                               dtype_from_onnx(info.type().tensor_type().elem_type(), fmt::format("{}: input '{}'", name_, info.name())),
                               declared_shape(info)});
        } catch (const Error& error) {
            problem(error.what());
        }
    }
    for (int i = 0; i < graph_->proto.node_size(); ++i) {
        const auto& node = graph_->proto.node(i);
        const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
        const Operator op = standard ? find_operator(node.op_type(), opset) : Operator{};
        graph_->operators.push_back(op.kernel ? op : Operator{nullptr, opset});
        if (!op.kernel) problem(fmt::format("{}: the operator is not supported", graph_->label(i)));
        for (const auto& input : node.input()) {
            if (input.empty()) continue;
            if (!known.contains(input)) problem(fmt::format("{}: input '{}' is not made by any earlier node", graph_->label(i), input));
        }
        for (const auto& output : node.output()) {
            if (output.empty()) continue;
            if (!known.insert(output).second) problem(fmt::format("{}: output '{}' is made twice", graph_->label(i), output));
            graph_->producer[output] = i;
        }
    }
    for (const auto& info : graph_->proto.output()) {
        outputs_.push_back(info.name());
        if (!known.contains(info.name())) problem(fmt::format("{}: output '{}' is not made by any node", name_, info.name()));
    }
    if (!problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(problems, "\n")));
}

Reference::~Reference() = default;
Reference::Reference(Reference&&) noexcept = default;

int Reference::node_count() const { return graph_->proto.node_size(); }
std::string Reference::node_label(int node) const { return graph_->label(node).substr(name_.size() + 2); }
std::string Reference::node_output(int node) const {
    for (const std::string& output : graph_->proto.node(node).output())
        if (!output.empty()) return output;
    return "";
}
bool Reference::has_value(const std::string& name) const { return graph_->producer.contains(name) || graph_->initialisers.contains(name); }

Values Reference::run_mode(const std::map<std::string, Tensor>& inputs, Mode mode, const LayerRules& rules,
                           const LayerRule& otherwise) const {
    Values values = graph_->initialisers;
    std::vector<std::string> problems;
    for (const InputInfo& info : inputs_) {
        const auto given = inputs.find(info.name);
        try {
            if (given == inputs.end())
                throw Error(ErrorKind::bad_input, fmt::format("input '{}': missing; the model takes {} of shape {}", info.name,
                                                              name_of(info.dtype), shape_text(info.shape)));
            check_input(info, given->second);
            values[info.name] = to_value(given->second);
        } catch (const Error& error) {
            problems.push_back(fmt::format("{}: {}", name_, error.what()));
        }
    }
    for (const auto& given : inputs) {
        const bool taken = std::any_of(inputs_.begin(), inputs_.end(), [&](const InputInfo& info) { return info.name == given.first; });
        if (!taken) problems.push_back(fmt::format("{}: input '{}': the model has no such input", name_, given.first));
    }
    if (!problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(problems, "\n")));
    for (int i = 0; i < node_count(); ++i) {
        const auto rule = rules.find(node_output(i));
        const LayerRule& used = rule == rules.end() ? otherwise : rule->second;
        graph_->evaluate(i, values, {mode, matrix_rule(used.precision), used.k_slab, used.x_scale, used.w_scale});
    }
    return values;
}

Values Reference::run(const std::map<std::string, Tensor>& inputs) const { return run_mode(inputs, Mode::exact, {}, {"fp32", 0}); }

Values Reference::emulate(const std::map<std::string, Tensor>& inputs, const LayerRules& rules,
                          const LayerRule& otherwise) const {
    return run_mode(inputs, Mode::emulate, rules, otherwise);
}

Value Reference::evaluate(const std::string& output, const std::map<std::string, Tensor>& feeds, const LayerRule& rule, Mode mode) const {
    const Numerics numerics{mode, matrix_rule(rule.precision), rule.k_slab, rule.x_scale, rule.w_scale};
    ASSAY_CHECK(numerics.bounds(), "a layer is evaluated in a bound mode");
    Values values;
    for (const auto& [name, tensor] : feeds)
        if (name != output) values[name] = to_value(tensor);
    // Depth first from the output, without recursion: a chain of nodes may be as long as the graph.
    std::vector<std::string> stack{output};
    while (!stack.empty()) {
        const std::string name = stack.back();
        if (values.contains(name)) {
            stack.pop_back();
            continue;
        }
        if (const auto constant = graph_->initialisers.find(name); constant != graph_->initialisers.end()) {
            values[name] = constant->second;
            continue;
        }
        const auto producer = graph_->producer.find(name);
        if (producer == graph_->producer.end())
            throw Error(ErrorKind::bad_input, fmt::format("{}: '{}' needs '{}', which the layer was not fed", name_, output, name));
        bool ready = true;
        for (const auto& input : graph_->node(producer->second).input())
            if (!input.empty() && !values.contains(input)) {
                stack.push_back(input);
                ready = false;
            }
        if (ready) graph_->evaluate(producer->second, values, numerics);
    }
    return std::move(values.at(output));
}

}  // namespace assay::golden
