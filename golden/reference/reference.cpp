#include "golden/reference/reference.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/graph.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden {
namespace {

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

/// Which rule each step's products go by.
struct Rules {
    Mode mode;
    const LayerRules& by_name;
    const LayerRule& otherwise;
    const onnx::GraphProto& graph;

    const LayerRule& of(const Step& step) const {
        if (const auto own = by_name.find(step.name()); own != by_name.end()) return own->second;
        for (const std::string& output : graph.node(step.outer).output()) {
            if (output.empty()) continue;
            const auto around = by_name.find(output);
            return around != by_name.end() ? around->second : otherwise;
        }
        return otherwise;
    }
    static Numerics numerics(const Step& step, const void* context) {
        const auto& rules = *static_cast<const Rules*>(context);
        const LayerRule& rule = rules.of(step);
        return {rules.mode, matrix_rule(rule.precision), rule.k_slab, rule.x_scale, rule.w_scale, rule.x_zero};
    }
};

}  // namespace

Reference::Reference(std::shared_ptr<const onnx::ModelProto> model, std::string name, const std::map<std::string, Tensor>& inputs)
    : model_(std::move(model)), name_(std::move(name)) {
    Flattened flat = flatten(*model_, name_, inputs);
    std::vector<std::string> problems = std::move(flat.problems);
    graph_ = std::make_unique<Graph>(std::move(flat.graph));
    decisive_ = std::move(flat.decisive);
    outputs_ = std::move(flat.outputs);
    warnings_ = std::move(flat.warnings);
    std::set<std::string> constants;
    for (const auto& tensor : model_->graph().initializer()) constants.insert(tensor.name());
    for (const auto& info : model_->graph().input()) {
        if (constants.contains(info.name())) continue;  // an initialiser that is listed as an input too
        if (!info.type().has_tensor_type()) {
            problems.push_back(fmt::format("{}: input '{}' is not a tensor", name_, info.name()));
            continue;
        }
        try {
            inputs_.push_back({info.name(),
                               dtype_from_onnx(info.type().tensor_type().elem_type(), fmt::format("{}: input '{}'", name_, info.name())),
                               declared_shape(info)});
        } catch (const Error& error) {
            problems.push_back(error.what());
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::bad_input, fmt::format("{}", fmt::join(problems, "\n")));
}

Reference::~Reference() = default;
Reference::Reference(Reference&&) noexcept = default;

int Reference::node_count() const { return model_->graph().node_size(); }

std::string Reference::node_label(int node) const {
    const auto& proto = model_->graph().node(node);
    for (const Step& step : graph_->steps)
        if (step.outer == node && step.proto.get() == &proto) return step.label.substr(name_.size() + 2);
    return fmt::format("node '{}' ({})", proto.name().empty() ? fmt::format("#{}", node) : proto.name(), proto.op_type());  // taken apart
}

std::vector<std::string> Reference::node_inputs(int node) const {
    std::vector<std::string> names;
    for (const std::string& input : model_->graph().node(node).input())
        if (!input.empty()) names.push_back(input);
    return names;
}

std::string Reference::node_output(int node) const {
    for (const std::string& output : model_->graph().node(node).output())
        if (!output.empty()) return output;
    return "";
}

bool Reference::has_value(const std::string& name) const { return graph_->producer.contains(name) || graph_->constants.contains(name); }

int Reference::node_of(const std::string& value) const {
    const auto producer = graph_->producer.find(value);
    return producer == graph_->producer.end() ? -1 : graph_->steps[static_cast<std::size_t>(producer->second)].outer;
}

void Reference::feed(const std::map<std::string, Tensor>& inputs, Values& values) const {
    std::vector<std::string> problems;
    for (const InputInfo& info : inputs_) {
        const auto given = inputs.find(info.name);
        try {
            if (given == inputs.end())
                throw Error(ErrorKind::bad_input, fmt::format("input '{}': missing; the model takes {} of shape {}", info.name,
                                                              name_of(info.dtype), shape_text(info.shape)));
            check_input(info, given->second);
            const auto decided = decisive_.find(info.name);
            if (decided != decisive_.end() && (given->second.shape != decided->second.shape ||
                                               (!is_float(info.dtype) && given->second.bytes != decided->second.bytes)))
                throw Error(ErrorKind::bad_input,
                            fmt::format("input '{}': another value or shape than that which decided the model's control flow; make another "
                                        "reference for it",
                                        info.name));
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
}

Values Reference::run_mode(const std::map<std::string, Tensor>& inputs, Mode mode, const LayerRules& rules,
                           const LayerRule& otherwise) const {
    Env env(*graph_);
    feed(inputs, env.own);
    const Rules by{mode, rules, otherwise, model_->graph()};
    for (const Step& step : graph_->steps) golden::evaluate(step, env, {Rules::numerics, &by});
    return std::move(env.own);
}

Values Reference::run(const std::map<std::string, Tensor>& inputs) const {
    Values values = run_mode(inputs, Mode::exact, {}, {"fp32", 0});
    for (const auto& [name, value] : graph_->constants) values.emplace(name, value);
    return values;
}

Values Reference::emulate(const std::map<std::string, Tensor>& inputs, const LayerRules& rules, const LayerRule& otherwise) const {
    Values values = run_mode(inputs, Mode::emulate, rules, otherwise);
    for (const std::string& output : outputs_)
        if (const auto constant = graph_->constants.find(output); constant != graph_->constants.end()) values.insert(*constant);
    return values;
}

Value Reference::evaluate(const std::string& output, const std::map<std::string, Tensor>& feeds, const LayerRule& rule, Mode mode,
                          const Values* exact) const {
    const Rules by{mode, {}, rule, model_->graph()};
    ASSAY_CHECK((Numerics{mode, MatrixRule::fp32, 0}.bounds()), "a layer is evaluated in a bound mode");
    Env env(*graph_);
    for (const auto& [name, tensor] : feeds)
        if (name != output) env.own[name] = to_value(tensor);
    // Depth first from the output, without recursion: a chain of nodes may be as long as the graph.
    std::vector<std::string> stack{output};
    while (!stack.empty()) {
        const std::string name = stack.back();
        if (env.find(name)) {
            stack.pop_back();
            continue;
        }
        const auto producer = graph_->producer.find(name);
        if (producer == graph_->producer.end())
            throw Error(ErrorKind::bad_input, fmt::format("{}: '{}' needs '{}', which the layer was not fed", name_, output, name));
        const Step& step = graph_->steps[static_cast<std::size_t>(producer->second)];
        if (exact && (step.proto->op_type() == "Shape" || step.proto->op_type() == "Size"))
            if (const auto known = exact->find(name); known != exact->end()) {
                env.own[name] = known->second;
                continue;
            }
        bool ready = true;
        for (const auto* names : {&step.inputs, &step.captured})
            for (const std::string& input : *names)
                if (!input.empty() && !env.find(input)) {
                    stack.push_back(input);
                    ready = false;
                }
        if (ready) golden::evaluate(step, env, {Rules::numerics, &by});
    }
    if (const auto made = env.own.find(output); made != env.own.end()) return std::move(made->second);
    return *env.find(output);  // a constant
}

}  // namespace assay::golden
