// From a model to steps: names are resolved, functions and decided control flow are taken apart.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/folder.hpp"
#include "golden/reference/graph.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/stack.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden {
namespace {

constexpr std::int64_t kMaxFlatIterations = 4096;
constexpr std::size_t kMaxSteps = std::size_t{1} << 20;
constexpr int kMaxDepth = 64;         ///< functions that call themselves would never end
constexpr int kFunctionDefaults = 11;  ///< FunctionProto.attribute_proto (IR version 9), which an older schema keeps unparsed

using Attributes = std::map<std::string, onnx::AttributeProto>;
using Opsets = std::map<std::string, int>;

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

template <class Imports>
Opsets opsets_of(const Imports& imports) {
    Opsets out;
    for (const auto& import : imports) out[domain_of(import.domain())] = static_cast<int>(import.version());
    return out;
}

Shape declared_shape(const onnx::ValueInfoProto& info) {
    Shape shape;
    for (const auto& dim : info.type().tensor_type().shape().dim()) shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    return shape;
}

/// Names of one graph or function body, and what its nodes are read under.
struct Scope {
    Graph& graph;        ///< steps go here
    const Scope* around;  ///< null: names end here
    std::string prefix;
    Opsets opsets;
    const Attributes* bound = nullptr;  ///< of a function call: what ref_attr_name refers to
    int outer = -1, depth = 0;
    bool flatten = true;
    std::map<std::string, std::string> names{};  ///< of this graph: to the names of values
};

/// Attributes that refer to those of the call get its values, or vanish when it gives none.
void bind(onnx::NodeProto& node, const Attributes& bound) {
    onnx::NodeProto plain = node;
    plain.clear_attribute();
    for (auto& attribute : *node.mutable_attribute()) {
        if (!attribute.ref_attr_name().empty()) {
            const auto value = bound.find(attribute.ref_attr_name());
            if (value == bound.end()) continue;
            *plain.add_attribute() = value->second;
            plain.mutable_attribute(plain.attribute_size() - 1)->set_name(attribute.name());
            continue;
        }
        auto* kept = plain.add_attribute();
        kept->Swap(&attribute);
        if (kept->has_g())
            for (auto& inner : *kept->mutable_g()->mutable_node()) bind(inner, bound);
    }
    node.Swap(&plain);
}

class Flattener {
public:
    Flattener(const onnx::ModelProto& model, const std::string& name, const std::map<std::string, Tensor>& inputs)
        : model_(model), name_(name), given_(inputs), folder_(out_.graph) {
        out_.graph.model = name;
        for (const auto& function : model.functions()) functions_[{domain_of(function.domain()), function.name()}] = &function;
    }

    Flattened run() {
        Scope scope{out_.graph, nullptr, "", opsets_of(model_.opset_import())};
        constants(model_.graph(), scope);
        for (const auto& info : model_.graph().input()) {
            if (scope.names.contains(info.name())) continue;  // an initialiser that is listed as an input too
            scope.names[info.name()] = info.name();
            add_input(info);
        }
        nodes(model_.graph().node(), scope);
        for (const auto& info : model_.graph().output()) {
            const std::string value = look_up(info.name(), scope);
            if (value.empty()) problem(fmt::format("{}: output '{}' is not made by any node", name_, info.name()));
            out_.outputs.push_back(info.name());
        }
        return std::move(out_);
    }

private:
    void problem(std::string text) { out_.problems.push_back(std::move(text)); }

    void add_input(const onnx::ValueInfoProto& info) {
        if (!info.type().has_tensor_type()) return;  // Reference tells
        if (const auto given = given_.find(info.name()); given != given_.end()) {
            folder_.add_input(info.name(), to_value(given->second), !is_float(given->second.dtype));
            return;
        }
        try {
            const Shape shape = declared_shape(info);
            if (!info.type().tensor_type().has_shape() || std::any_of(shape.begin(), shape.end(), [](std::int64_t d) { return d < 0; })) return;
            folder_.add_input(info.name(), Value(dtype_from_onnx(info.type().tensor_type().elem_type(), info.name()), shape), false);
        } catch (const Error&) {  // a type or size that Reference tells of
        }
    }

    /// The value that a name means here; "" when there is none. Names of graphs around are noted where a body takes them in.
    std::string look_up(const std::string& name, const Scope& from) { return find_name(name, from).value_or(""); }
    /// As look_up, but an input that a function's caller left out is "", and a name that nothing makes nullopt.
    std::optional<std::string> find_name(const std::string& name, const Scope& from) {
        std::vector<Graph*> crossed;
        for (const Scope* scope = &from; scope; scope = scope->around) {
            if (const auto it = scope->names.find(name); it != scope->names.end()) {
                if (it->second.empty()) return "";
                for (Graph* graph : crossed)
                    if (std::find(graph->captured.begin(), graph->captured.end(), it->second) == graph->captured.end())
                        graph->captured.push_back(it->second);
                return it->second;
            }
            if (scope->around && &scope->around->graph != &scope->graph) crossed.push_back(&scope->graph);
        }
        return std::nullopt;
    }

    static bool taken(const Graph& graph, const std::string& value) { return graph.producer.contains(value) || graph.constants.contains(value); }

    void constants(const onnx::GraphProto& proto, Scope& scope) {
        for (const auto& tensor : proto.initializer()) {
            try {
                Value value = to_value(tensor_from_proto(tensor, fmt::format("{}: tensor '{}'", name_, scope.prefix + tensor.name())));
                std::int64_t bad = 0;
                for (const double v : value.f) bad += !std::isfinite(v);
                if (bad) out_.warnings.push_back(fmt::format("{}: tensor '{}' holds {} non-finite values", name_, scope.prefix + tensor.name(), bad));
                scope.graph.constants[scope.prefix + tensor.name()] = std::move(value);
            } catch (const Error& error) {
                problem(error.what());
            }
            scope.names[tensor.name()] = scope.prefix + tensor.name();
        }
        if (proto.sparse_initializer_size()) problem(fmt::format("{}: sparse initializers are not supported", name_));
    }

    template <class Nodes>
    void nodes(const Nodes& list, Scope& scope) {
        for (int i = 0; i < list.size(); ++i) {
            if (scope.depth == 0) scope.outer = i;
            node(list.Get(i), i, scope);
        }
    }

    void node(const onnx::NodeProto& given, int index, Scope& scope) {
        auto proto = std::shared_ptr<const onnx::NodeProto>(std::shared_ptr<void>(), &given);  // the model outlives the graph
        if (scope.bound) {
            auto copy = std::make_shared<onnx::NodeProto>(given);
            bind(*copy, *scope.bound);
            proto = copy;
            out_.graph.owned.push_back(copy);
        }
        const std::string domain = domain_of(proto->domain());
        const std::string local = proto->name().empty() ? fmt::format("{}_{}", proto->op_type(), index) : proto->name();
        const auto function = functions_.find({domain, proto->op_type()});
        const auto opset = scope.opsets.find(domain);
        Step step;
        step.proto = proto;
        step.outer = scope.outer;
        if (domain.empty()) step.op = find_operator(proto->op_type(), opset == scope.opsets.end() ? 0 : opset->second);
        const bool control = domain.empty() && (proto->op_type() == "If" || proto->op_type() == "Loop" || proto->op_type() == "Scan");
        const int version = step.op.kernel || control ? step.op.version : opset == scope.opsets.end() ? 0 : opset->second;
        if (!step.op.kernel) step.op.version = version;
        // Unnamed nodes at the top are told by their number.
        const std::string shown = proto->name().empty() && scope.depth == 0 ? fmt::format("#{}", index) : scope.prefix + local;
        step.label = fmt::format("{}: node '{}' ({}{}-{})", name_, shown, domain.empty() ? "" : domain + ".", proto->op_type(), version);
        bool complete = true;
        for (const std::string& input : proto->input()) {
            const std::optional<std::string> value = input.empty() ? std::string() : find_name(input, scope);
            step.inputs.push_back(value.value_or(""));
            if (!value) {
                problem(fmt::format("{}: input '{}' is not made by any earlier node", step.label, input));
                complete = false;
            }
        }
        if (function != functions_.end()) {
            if (complete) call(*function->second, step, scope.prefix + local, scope);
        } else if (control) {
            if (complete) this->control(step, scope.prefix + local, scope);
        } else if (!step.op.kernel) {
            problem(fmt::format("{}: the operator is not supported", step.label));
        }
        // Last, so that a body cannot read the output of the node around it.
        const bool apart = function != functions_.end() || (control && step.bodies.empty() && complete);
        for (const std::string& output : proto->output()) {
            step.outputs.push_back(output.empty() ? "" : scope.prefix + output);
            if (output.empty()) continue;
            if (!scope.names.emplace(output, scope.prefix + output).second || (!apart && taken(scope.graph, scope.prefix + output)))
                problem(fmt::format("{}: output '{}' is made twice", step.label, output));
        }
        if (!apart) add(scope.graph, std::move(step));
    }

    static void add(Graph& graph, Step step) {
        for (const std::string& output : step.outputs)
            if (!output.empty()) graph.producer[output] = static_cast<int>(graph.steps.size());
        graph.steps.push_back(std::move(step));
    }

    /// A step of our own making, told and counted as part of `of`.
    void add_own(Graph& graph, const Step& of, const char* op_type, Kernel kernel, int version, std::vector<std::string> inputs,
                 const std::string& output, std::int64_t axis = -1) {
        if (output.empty()) return;
        if (taken(graph, output)) problem(fmt::format("{}: value '{}' is made twice", of.label, output));
        auto proto = std::make_shared<onnx::NodeProto>();
        proto->set_op_type(op_type);
        if (axis >= 0) {
            auto* attribute = proto->add_attribute();
            attribute->set_name("axis");
            attribute->set_type(onnx::AttributeProto::INT);
            attribute->set_i(axis);
        }
        Step step;
        step.proto = proto;
        step.op = {kernel, version};
        step.label = of.label;
        step.outer = of.outer;
        step.inputs = std::move(inputs);
        step.outputs = {output};
        add(graph, std::move(step));
    }
    void alias(Graph& graph, const Step& of, const std::string& from, const std::string& to) {
        if (from != to) add_own(graph, of, "Identity", ops::identity, 1, {from}, to);
    }

    std::string output_name(const Step& step, int i, const Scope& scope) const {
        const std::string& output = i < step.proto->output_size() ? step.proto->output(i) : std::string();
        return output.empty() ? "" : scope.prefix + output;
    }

    void call(const onnx::FunctionProto& function, const Step& step, const std::string& path, Scope& scope) {
        if (scope.depth >= kMaxDepth || scope.graph.steps.size() > kMaxSteps)
            return problem(fmt::format("{}: functions nest deeper than {} or make more than {} steps", step.label, kMaxDepth, kMaxSteps));
        Attributes bound;
        const auto& unknown = function.GetReflection()->GetUnknownFields(function);
        for (int i = 0; i < unknown.field_count(); ++i) {
            const auto& field = unknown.field(i);
            onnx::AttributeProto attribute;
            if (field.number() == kFunctionDefaults && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
                attribute.ParseFromString(field.length_delimited()))
                bound[attribute.name()] = attribute;
        }
        for (const auto& attribute : step.proto->attribute()) bound[attribute.name()] = attribute;
        Scope inner{scope.graph, nullptr, path + "/fn/", opsets_of(function.opset_import()), &bound, scope.outer, scope.depth + 1, scope.flatten};
        if (static_cast<int>(step.inputs.size()) > function.input_size())
            return problem(fmt::format("{}: {} inputs, the function takes {}", step.label, step.inputs.size(), function.input_size()));
        for (int i = 0; i < function.input_size(); ++i) {
            const std::string& from = i < static_cast<int>(step.inputs.size()) ? step.inputs[static_cast<std::size_t>(i)] : std::string();
            inner.names[function.input(i)] = from.empty() ? "" : inner.prefix + function.input(i);
            if (!from.empty()) alias(scope.graph, step, from, inner.prefix + function.input(i));
        }
        nodes(function.node(), inner);
        for (int i = 0; i < step.proto->output_size(); ++i) {
            if (step.proto->output(i).empty()) continue;
            const std::string from = i < function.output_size() ? look_up(function.output(i), inner) : "";
            if (from.empty())
                problem(fmt::format("{}: the function '{}' does not make output {}", step.label, function.name(), i));
            else
                alias(scope.graph, step, from, output_name(step, i, scope));
        }
    }

    void control(Step& step, const std::string& path, Scope& scope) {
        const std::string& op = step.proto->op_type();
        std::vector<const onnx::GraphProto*> bodies;
        for (const char* name : {"then_branch", "else_branch", "body"})
            for (const auto& attribute : step.proto->attribute())
                if (attribute.name() == name && attribute.has_g()) bodies.push_back(&attribute.g());
        if (bodies.size() != (op == "If" ? 2u : 1u)) return problem(fmt::format("{}: its bodies are missing", step.label));
        if (scope.depth >= kMaxDepth) return problem(fmt::format("{}: control flow nests deeper than {}", step.label, kMaxDepth));
        if (scope.flatten) {
            if (op == "If" && flatten_if(step, bodies, path, scope)) return;
            if (op == "Loop" && flatten_loop(step, *bodies[0], path, scope)) return;
            if (op == "Scan" && step.op.version >= 9 && flatten_scan(step, *bodies[0], path, scope)) return;
        }
        for (std::size_t b = 0; b < bodies.size(); ++b) {
            auto body = std::make_shared<Graph>();
            body->model = name_;
            Scope inner{*body, &scope, path + (op != "If" ? "/body/" : b == 0 ? "/then/" : "/else/"), scope.opsets, nullptr,
                        scope.outer, scope.depth + 1, false};
            constants(*bodies[b], inner);
            for (const auto& info : bodies[b]->input()) {
                inner.names[info.name()] = inner.prefix + info.name();
                body->formals.push_back(inner.prefix + info.name());
            }
            nodes(bodies[b]->node(), inner);
            for (const auto& info : bodies[b]->output()) {
                body->results.push_back(look_up(info.name(), inner));
                if (body->results.back().empty()) problem(fmt::format("{}: its body does not make '{}'", step.label, info.name()));
                body->empty_results.push_back(empty_stack(info, step));
            }
            for (const std::string& name : body->captured)
                if (std::find(step.captured.begin(), step.captured.end(), name) == step.captured.end()) step.captured.push_back(name);
            step.bodies.push_back(std::move(body));
        }
    }

    /// A result of a loop's body stacked over no iteration; dimensions that are not declared are 0.
    Value empty_stack(const onnx::ValueInfoProto& info, const Step& step) {
        Shape shape{0};
        for (const std::int64_t dim : declared_shape(info)) shape.push_back(std::max<std::int64_t>(0, dim));
        const int type = info.type().tensor_type().elem_type();
        if (!type) return Value(DType::f32, shape);
        try {
            return Value(dtype_from_onnx(type, fmt::format("{}: value '{}'", step.label, info.name())), shape);
        } catch (const Error& error) {
            problem(error.what());
            return {};
        }
    }

    /// The value when it is known before the run; notes the inputs that it hangs on.
    const Value* decided(const std::string& name) {
        const Folder::Known* known = folder_.find(name);
        if (!known || !known->value_known) return nullptr;
        note(*known);
        return &known->value;
    }
    void note(const Folder::Known& known) {
        for (const std::string& input : known.inputs)
            if (const auto given = given_.find(input); given != given_.end()) out_.decisive[input] = given->second;
    }
    std::optional<std::int64_t> decided_integer(const std::string& name) {
        const Value* value = decided(name);
        if (!value || value->floating() || value->count() != 1) return std::nullopt;
        return value->n[0];
    }

    bool flatten_if(const Step& step, const std::vector<const onnx::GraphProto*>& bodies, const std::string& path, Scope& scope) {
        const auto condition = step.inputs.empty() ? std::nullopt : decided_integer(step.inputs[0]);
        if (!condition) return false;
        const onnx::GraphProto& body = *bodies[*condition ? 0 : 1];
        Scope inner{scope.graph, &scope, path + (*condition ? "/then/" : "/else/"), scope.opsets, nullptr, scope.outer, scope.depth + 1};
        constants(body, inner);
        nodes(body.node(), inner);
        for (int i = 0; i < step.proto->output_size(); ++i) {
            const std::string from = i < body.output_size() ? look_up(body.output(i).name(), inner) : "";
            if (from.empty())
                problem(fmt::format("{}: its body does not make output {}", step.label, i));
            else
                alias(scope.graph, step, from, output_name(step, i, scope));
        }
        return true;
    }

    /// What to undo when a loop turns out to be decided by data.
    struct Mark {
        std::size_t steps, problems, warnings;
        std::set<std::string> constants, decisive;
    };
    Mark mark(const Graph& graph) const {
        Mark m{graph.steps.size(), out_.problems.size(), out_.warnings.size(), {}, {}};
        for (const auto& [name, value] : graph.constants) m.constants.insert(name);
        for (const auto& [name, tensor] : out_.decisive) m.decisive.insert(name);
        return m;
    }
    bool undo(Graph& graph, const Mark& m) {
        while (graph.steps.size() > m.steps) {
            for (const std::string& output : graph.steps.back().outputs) graph.producer.erase(output);
            graph.steps.pop_back();
        }
        std::erase_if(graph.constants, [&](const auto& entry) { return !m.constants.contains(entry.first); });
        std::erase_if(out_.decisive, [&](const auto& entry) { return !m.decisive.contains(entry.first); });
        out_.problems.resize(m.problems);
        out_.warnings.resize(m.warnings);
        return false;
    }

    /// Adds one iteration; false: a body's result has no value.
    bool iterate(const Step& step, const onnx::GraphProto& body, Scope& inner, std::vector<std::string>& results) {
        nodes(body.node(), inner);
        results.clear();
        for (const auto& info : body.output()) {
            results.push_back(look_up(info.name(), inner));
            if (results.back().empty()) {
                problem(fmt::format("{}: its body does not make '{}'", step.label, info.name()));
                return false;
            }
        }
        return true;
    }

    void constant(Graph& graph, const std::string& name, DType type, std::int64_t v, const onnx::ValueInfoProto* like) {
        Value value(type, like && like->type().tensor_type().shape().dim_size() == 1 ? Shape{1} : Shape{});
        value.n[0] = v;
        graph.constants[name] = std::move(value);
    }

    void finish(const Step& step, const onnx::GraphProto& body, const std::vector<std::string>& states,
                const std::vector<std::vector<std::string>>& scans, const std::vector<std::int64_t>& axes, int first, Scope& scope) {
        for (std::size_t i = 0; i < states.size(); ++i) alias(scope.graph, step, states[i], output_name(step, static_cast<int>(i), scope));
        for (std::size_t k = 0; k < scans.size(); ++k) {
            const std::string output = output_name(step, static_cast<int>(states.size() + k), scope);
            if (output.empty()) continue;
            if (scans[k].empty())
                scope.graph.constants[output] = empty_stack(body.output(first + static_cast<int>(states.size() + k)), step);
            else
                add_own(scope.graph, step, "Concat", [](const Node& node) { return ops::stack_inputs(node); }, 1, scans[k], output, axes[k]);
        }
    }

    bool flatten_loop(const Step& step, const onnx::GraphProto& body, const std::string& path, Scope& scope) {
        const auto& in = step.inputs;
        if (in.size() < 2) return false;
        std::int64_t trips = kMaxFlatIterations + 1;
        bool go = true;
        if (!in[0].empty()) {
            const auto known = decided_integer(in[0]);
            if (!known) return false;
            trips = *known;
        }
        if (!in[1].empty()) {
            const auto known = decided_integer(in[1]);
            if (!known) return false;
            go = *known != 0;
        }
        std::vector<std::string> states(in.begin() + 2, in.end());
        const int carried = static_cast<int>(states.size());
        if (body.input_size() != carried + 2 || body.output_size() < carried + 1) return false;  // told when it runs
        if (in[0].empty() && in[1].empty() && body.output_size() == 0) return false;
        const Mark before = mark(scope.graph);
        std::vector<std::vector<std::string>> scans(static_cast<std::size_t>(body.output_size() - carried - 1));
        std::vector<std::string> results;
        for (std::int64_t i = 0; go && i < trips; ++i) {
            if (i >= kMaxFlatIterations || scope.graph.steps.size() > kMaxSteps) return undo(scope.graph, before);
            Scope inner{scope.graph, &scope, fmt::format("{}/body.{}/", path, i), scope.opsets, nullptr, scope.outer, scope.depth + 1};
            constants(body, inner);
            const auto formal = [&](int k) { return inner.names[body.input(k).name()] = inner.prefix + body.input(k).name(); };
            constant(scope.graph, formal(0), DType::i64, i, &body.input(0));
            constant(scope.graph, formal(1), DType::boolean, 1, &body.input(1));
            for (int k = 0; k < carried; ++k) alias(scope.graph, step, states[static_cast<std::size_t>(k)], formal(k + 2));
            if (!iterate(step, body, inner, results)) return true;
            const auto next = decided_integer(results[0]);
            if (!next) return undo(scope.graph, before);
            go = *next != 0;
            std::copy_n(results.begin() + 1, carried, states.begin());
            for (std::size_t k = 0; k < scans.size(); ++k) scans[k].push_back(results[static_cast<std::size_t>(carried) + 1 + k]);
        }
        finish(step, body, states, scans, std::vector<std::int64_t>(scans.size(), 0), 1, scope);
        return true;
    }

    static std::vector<std::int64_t> list(const Step& step, const char* name, std::size_t size) {
        for (const auto& a : step.proto->attribute())
            if (a.name() == name && a.ints_size() == static_cast<int>(size)) return {a.ints().begin(), a.ints().end()};
        return std::vector<std::int64_t>(size, 0);
    }

    bool flatten_scan(const Step& step, const onnx::GraphProto& body, const std::string& path, Scope& scope) {
        std::size_t m = 0;
        for (const auto& a : step.proto->attribute())
            if (a.name() == "num_scan_inputs") m = static_cast<std::size_t>(std::clamp<std::int64_t>(a.i(), 0, 1 << 20));
        if (m < 1 || m > step.inputs.size()) return false;  // told when it runs
        const std::size_t n = step.inputs.size() - m;
        if (static_cast<std::size_t>(body.input_size()) != n + m || static_cast<std::size_t>(body.output_size()) < n) return false;
        std::vector<std::int64_t> axes = list(step, "scan_input_axes", m), backwards = list(step, "scan_input_directions", m);
        std::int64_t length = -1;
        for (std::size_t k = 0; k < m; ++k) {
            const Folder::Known* known = folder_.find(step.inputs[n + k]);
            if (!known || !known->shape_known) return false;
            note(*known);
            const std::int64_t rank = known->value.rank();
            if (axes[k] < -rank || axes[k] >= rank) return false;
            if (axes[k] < 0) axes[k] += rank;
            const std::int64_t here = known->value.shape[static_cast<std::size_t>(axes[k])];
            if (length >= 0 && here != length) return false;
            length = here;
        }
        if (length > kMaxFlatIterations) return false;
        const std::size_t outputs = static_cast<std::size_t>(body.output_size()) - n;
        const auto out_axes = list(step, "scan_output_axes", outputs), out_backwards = list(step, "scan_output_directions", outputs);
        if (std::any_of(out_axes.begin(), out_axes.end(), [](std::int64_t a) { return a < 0; })) return false;  // needs the rank: run as it is
        const Mark before = mark(scope.graph);
        std::vector<std::string> states(step.inputs.begin(), step.inputs.begin() + static_cast<std::ptrdiff_t>(n)), results;
        std::vector<std::vector<std::string>> scans(outputs);
        for (std::int64_t i = 0; i < length; ++i) {
            if (scope.graph.steps.size() > kMaxSteps) return undo(scope.graph, before);
            Scope inner{scope.graph, &scope, fmt::format("{}/body.{}/", path, i), scope.opsets, nullptr, scope.outer, scope.depth + 1};
            constants(body, inner);
            const auto formal = [&](std::size_t k) {
                const std::string& name = body.input(static_cast<int>(k)).name();
                return inner.names[name] = inner.prefix + name;
            };
            for (std::size_t k = 0; k < n; ++k) alias(scope.graph, step, states[k], formal(k));
            for (std::size_t k = 0; k < m; ++k) {
                const std::string index = fmt::format("{}/index.{}", path, backwards[k] ? length - 1 - i : i);
                constant(scope.graph, index, DType::i64, backwards[k] ? length - 1 - i : i, nullptr);
                add_own(scope.graph, step, "Gather", ops::gather, 13, {step.inputs[n + k], index}, formal(n + k), axes[k]);
            }
            if (!iterate(step, body, inner, results)) return true;
            std::copy_n(results.begin(), n, states.begin());
            for (std::size_t k = 0; k < outputs; ++k) scans[k].push_back(results[n + k]);
        }
        for (std::size_t k = 0; k < outputs; ++k)
            if (out_backwards[k]) std::reverse(scans[k].begin(), scans[k].end());
        finish(step, body, states, scans, out_axes, 0, scope);
        return true;
    }

    const onnx::ModelProto& model_;
    const std::string& name_;
    const std::map<std::string, Tensor>& given_;
    Flattened out_;
    Folder folder_;
    std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
};

}  // namespace

Flattened flatten(const onnx::ModelProto& model, const std::string& name, const std::map<std::string, Tensor>& inputs) {
    return Flattener(model, name, inputs).run();
}

}  // namespace assay::golden
