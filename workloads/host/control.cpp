// If, Loop, Scan, and whole graphs.
#include "workloads/host/control.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"
#include "workloads/host/functions.hpp"

namespace assay::workloads::hostops {
namespace {

/// Deeper nesting than any exporter writes; each level costs the host's stack.
constexpr int kMaxDepth = 40;

[[noreturn]] void bad(const std::string& text) { throw Error(ErrorKind::bad_input, text); }

class Nesting {
public:
    explicit Nesting(RunContext& context) : context_(context) {
        if (++context_.depth > kMaxDepth) {
            --context_.depth;
            bad(fmt::format("graphs nest deeper than {}; repair the model", kMaxDepth));
        }
    }
    ~Nesting() { --context_.depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

private:
    RunContext& context_;
};

void charge(RunContext& context) {
    if (--context.nodes_left < 0) bad("the model runs more than 4,194,304 nodes and iterations on the host; give it a smaller trip count");
}

std::string plain_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::vector<Held> run_function(const onnx::FunctionProto& function, const onnx::NodeProto& node, const std::vector<Held>& inputs,
                               RunContext& context);

std::vector<Held> run_node(const onnx::NodeProto& node, Scope& scope) {
    RunContext& context = scope.context;
    charge(context);
    std::vector<Held> held;
    std::vector<const Tensor*> inputs;
    for (const auto& name : node.input()) {
        held.push_back(name.empty() ? nullptr : scope.held(name));
        if (!name.empty() && !held.back()) bad(fmt::format("input '{}' is defined by nothing; repair the model", name));
        inputs.push_back(held.back().get());
    }
    if (const auto it = context.functions.find({plain_domain(node.domain()), node.op_type()}); it != context.functions.end())
        return run_function(*it->second, node, held, context);
    std::vector<Held> out;
    for (Tensor& t : evaluate_in(node, context.opset, inputs, &scope)) out.push_back(std::make_shared<const Tensor>(std::move(t)));
    return out;
}

template <class Nodes>
void run_nodes(const Nodes& nodes, Scope& scope, const std::vector<std::string>& kept) {
    // A value is dropped after its last reader: a graph's memory is its widest cut, not its sum.
    std::map<std::string, int> last;
    std::vector<std::vector<std::string>> dead(static_cast<std::size_t>(nodes.size()));
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
        const auto& node = nodes[static_cast<std::size_t>(i)];
        for (const auto& name : node.output()) last[name] = i;
        for (const auto& name : node.input())
            if (const auto it = last.find(name); it != last.end()) it->second = i;
        for (const auto& name : captured_names(node))
            if (const auto it = last.find(name); it != last.end()) it->second = i;
    }
    for (const auto& name : kept) last.erase(name);
    for (const auto& [name, i] : last) dead[static_cast<std::size_t>(i)].push_back(name);
    for (std::size_t i = 0; i < static_cast<std::size_t>(nodes.size()); ++i) {
        const auto& node = nodes[i];
        try {
            std::vector<Held> results = run_node(node, scope);
            for (int o = 0; o < node.output_size(); ++o)
                if (!node.output(o).empty()) scope.set(node.output(o), std::move(results[static_cast<std::size_t>(o)]));
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::bad_input) throw;
            bad(fmt::format("node '{}' ({}): {}", node.name().empty() ? fmt::format("{}_{}", node.op_type(), i) : node.name(), node.op_type(),
                            error.what()));
        }
        for (const auto& name : dead[i]) scope.forget(name);
    }
}

/// Protobuf's repeated field with the interface that run_nodes shares with std::vector.
struct ProtoNodes {
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& field;
    std::size_t size() const { return static_cast<std::size_t>(field.size()); }
    const onnx::NodeProto& operator[](std::size_t i) const { return field[static_cast<int>(i)]; }
};

std::vector<Held> run_function(const onnx::FunctionProto& function, const onnx::NodeProto& node, const std::vector<Held>& inputs,
                               RunContext& context) {
    const Nesting nesting(context);
    Scope scope(context, nullptr);  // a function sees nothing of its caller
    for (int i = 0; i < function.input_size() && i < static_cast<int>(inputs.size()); ++i)
        if (inputs[static_cast<std::size_t>(i)]) scope.set(function.input(i), inputs[static_cast<std::size_t>(i)]);
    auto body = function_body(function, node);
    for (auto& inner : body)  // a formal input that the caller left out is an absent input inside
        for (auto& name : *inner.mutable_input())
            for (int i = 0; i < function.input_size(); ++i)
                if (name == function.input(i) && (i >= static_cast<int>(inputs.size()) || !inputs[static_cast<std::size_t>(i)])) name.clear();
    const std::vector<std::string> outputs(function.output().begin(), function.output().end());
    run_nodes(body, scope, outputs);
    std::vector<Held> out(static_cast<std::size_t>(std::max(node.output_size(), function.output_size())));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        out[i] = scope.held(outputs[i]);
        if (!out[i]) bad(fmt::format("function output '{}' is defined by nothing; repair the model", outputs[i]));
    }
    return out;
}

const onnx::GraphProto& subgraph(const Call& c, const char* name) {
    const auto* a = c.attribute(name);
    if (!a || !a->has_g()) c.fail(fmt::format("attribute '{}' is missing; repair the model", name));
    return a->g();
}

/// Calls f with the scope that the node's subgraphs see around them.
template <class F>
Results within(const Call& c, F&& f) {
    if (c.scope) return f(*c.scope);
    RunContext context;
    context.opset = c.opset;
    Scope scope(context, nullptr);
    const auto names = captured_names(c.node);
    if (c.captured().size() < names.size())
        c.fail(fmt::format("reads {} outer values, {} were given", names.size(), c.captured().size()));
    for (std::size_t i = 0; i < names.size(); ++i)
        if (c.captured()[i]) scope.set(names[i], borrowed(*c.captured()[i]));
    return f(scope);
}

std::vector<Held> run_subgraph(const onnx::GraphProto& graph, const Scope& outer, std::vector<Held> inputs) {
    const Nesting nesting(outer.context);
    charge(outer.context);
    Scope scope(outer.context, &outer);
    for (int i = 0; i < graph.input_size() && i < static_cast<int>(inputs.size()); ++i)
        scope.set(graph.input(i).name(), std::move(inputs[static_cast<std::size_t>(i)]));
    return run_graph(graph, scope);
}

bool truth(const Call& c, const Tensor& t, const char* what) {
    if (t.count() != 1) c.fail(fmt::format("{} is {}, one element is expected; repair the model", what, to_string(t.shape)));
    return t.integer(0) != 0;
}

Results if_(const Call& c) {
    return within(c, [&](const Scope& scope) {
        const auto& branch = subgraph(c, truth(c, c.in(0), "the condition") ? "then_branch" : "else_branch");
        Results out;
        for (const Held& t : run_subgraph(branch, scope, {})) out.push_back(*t);
        if (out.size() != c.output_count())
            c.fail(fmt::format("a branch gives {} values for {} outputs; repair the model", out.size(), c.output_count()));
        return out;
    });
}

/// Iterations' results stacked along a new axis; with none, the shape that the body declares (unknown extents 0).
Tensor stacked(const Call& c, const std::vector<Held>& parts, std::size_t axis, bool reversed, const onnx::ValueInfoProto& declared) {
    if (parts.empty()) {
        const auto& type = declared.type().tensor_type();
        Shape shape;
        for (const auto& d : type.shape().dim()) shape.push_back(std::max<std::int64_t>(0, d.dim_value()));
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(std::min(axis, shape.size())), 0);
        return c.make(type.elem_type() ? dtype_from_onnx(type.elem_type(), "scan output") : DType::f32, shape);
    }
    const Tensor& first = *parts[0];
    Shape shape = first.shape;
    if (axis > shape.size()) c.fail(fmt::format("scan output axis {} is out of range; repair the model", axis));
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(parts.size()));
    Tensor out = c.make(first.dtype, shape);
    const std::int64_t outer = extent(first.shape, 0, axis), inner = extent(first.shape, axis, first.shape.size());
    const auto count = static_cast<std::int64_t>(parts.size());
    for (std::int64_t i = 0; i < count; ++i) {
        const Tensor& part = *parts[static_cast<std::size_t>(reversed ? count - 1 - i : i)];
        if (part.shape != first.shape || part.dtype != first.dtype)
            c.fail(fmt::format("scan output is {} in one iteration and {} in another; repair the model", to_string(first.shape),
                               to_string(part.shape)));
        for (std::int64_t o = 0; o < outer; ++o) copy_elements(part, o * inner, out, (o * count + i) * inner, inner);
    }
    return out;
}

/// Scan outputs are checked as they grow, so that a loop cannot fill the memory before the last iteration says so.
void collect(const Call& c, std::vector<Held>& into, Held part, std::int64_t& held) {
    held += std::max<std::int64_t>(1, part->count());
    if (held > kMaxElements) c.fail(fmt::format("scan outputs of more than {} elements; repair the model", kMaxElements));
    into.push_back(std::move(part));
}

Results loop(const Call& c) {
    return within(c, [&](const Scope& scope) {
        const auto& body = subgraph(c, "body");
        const std::size_t carried = c.input_count() > 2 ? c.input_count() - 2 : 0;
        const std::int64_t trips = c.has(0) ? c.integer(0) : std::numeric_limits<std::int64_t>::max();
        bool go = !c.has(1) || truth(c, c.in(1), "the condition");
        if (static_cast<std::size_t>(body.input_size()) != carried + 2 || static_cast<std::size_t>(body.output_size()) < carried + 1)
            c.fail(fmt::format("the body takes {} values and gives {}, with {} carried; repair the model", body.input_size(), body.output_size(),
                               carried));
        std::vector<Held> values;
        for (std::size_t i = 0; i < carried; ++i) values.push_back(borrowed(c.in(i + 2)));
        std::vector<std::vector<Held>> scans(static_cast<std::size_t>(body.output_size()) - carried - 1);
        std::int64_t held = 0;
        for (std::int64_t i = 0; go && i < trips; ++i) {
            std::vector<Held> inputs{std::make_shared<const Tensor>(make_tensor<std::int64_t>(DType::i64, {}, std::vector{i})),
                                     std::make_shared<const Tensor>(make_tensor<std::uint8_t>(DType::boolean, {}, std::vector<std::uint8_t>{1}))};
            inputs.insert(inputs.end(), values.begin(), values.end());
            std::vector<Held> results = run_subgraph(body, scope, std::move(inputs));
            go = truth(c, *results[0], "the body's condition");
            for (std::size_t k = 0; k < carried; ++k) values[k] = std::move(results[k + 1]);
            for (std::size_t k = 0; k < scans.size(); ++k) collect(c, scans[k], std::move(results[k + 1 + carried]), held);
        }
        Results out;
        for (const Held& v : values) out.push_back(*v);
        for (std::size_t k = 0; k < scans.size(); ++k)
            out.push_back(stacked(c, scans[k], 0, false, body.output(static_cast<int>(k + 1 + carried))));
        return out;
    });
}

/// Element i of a tensor along an axis, without that axis.
Held slice_at(const Call& c, const Tensor& t, std::size_t axis, std::int64_t i) {
    Shape shape = t.shape;
    const std::int64_t count = shape[axis], outer = extent(shape, 0, axis), inner = extent(shape, axis + 1, shape.size());
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    auto out = std::make_shared<Tensor>(c.make(t.dtype, shape));
    for (std::int64_t o = 0; o < outer; ++o) copy_elements(t, (o * count + i) * inner, *out, o * inner, inner);
    return out;
}

/// Scan over `scans` starting from `states`, both without batch. Axes and directions as Scan-9 has them; absent ones are 0.
std::vector<Held> scan_core(const Call& c, const Scope& scope, std::vector<Held> states, const std::vector<Held>& scans, std::int64_t limit) {
    const auto& body = subgraph(c, "body");
    const std::size_t n = states.size(), m = scans.size();
    const std::size_t outs = static_cast<std::size_t>(body.output_size());
    if (static_cast<std::size_t>(body.input_size()) != n + m || outs < n)
        c.fail(fmt::format("the body takes {} values and gives {}, with {} states and {} scans; repair the model", body.input_size(), outs, n, m));
    const auto axes = c.integers("scan_input_axes"), directions = c.integers(c.opset < 9 ? "directions" : "scan_input_directions");
    const auto out_axes = c.integers("scan_output_axes"), out_directions = c.integers("scan_output_directions");
    const auto at = [](const std::vector<std::int64_t>& list, std::size_t i) { return i < list.size() ? list[i] : 0; };
    std::int64_t length = -1;
    std::vector<std::size_t> axis(m);
    for (std::size_t k = 0; k < m; ++k) {
        axis[k] = c.axis(at(axes, k), scans[k]->shape.size());
        const std::int64_t own = scans[k]->shape[axis[k]];
        if (length >= 0 && own != length) c.fail(fmt::format("scan inputs of {} and {} steps; repair the model", length, own));
        length = own;
    }
    if (limit >= 0) length = std::min(length, limit);
    std::vector<std::vector<Held>> collected(outs - n);
    std::int64_t held = 0;
    for (std::int64_t i = 0; i < length; ++i) {
        std::vector<Held> inputs = states;
        for (std::size_t k = 0; k < m; ++k) inputs.push_back(slice_at(c, *scans[k], axis[k], at(directions, k) ? length - 1 - i : i));
        std::vector<Held> results = run_subgraph(body, scope, std::move(inputs));
        for (std::size_t k = 0; k < n; ++k) states[k] = std::move(results[k]);
        for (std::size_t k = 0; k < outs - n; ++k) collect(c, collected[k], std::move(results[n + k]), held);
    }
    for (std::size_t k = 0; k < outs - n; ++k) {
        std::int64_t out_axis = at(out_axes, k);
        if (out_axis < 0 && !collected[k].empty()) out_axis += static_cast<std::int64_t>(collected[k][0]->shape.size()) + 1;
        if (out_axis < 0) c.fail("scan_output_axes is out of range; repair the model");
        states.push_back(std::make_shared<const Tensor>(stacked(c, collected[k], static_cast<std::size_t>(out_axis), at(out_directions, k) != 0,
                                                                body.output(static_cast<int>(n + k)))));
    }
    return states;
}

/// Scan-8 has a leading batch dimension everywhere and an optional input 0 with the length of each sequence; Scan-9 has neither.
Results scan(const Call& c) {
    return within(c, [&](const Scope& scope) {
        const std::size_t first = c.opset < 9 ? 1 : 0;
        const std::int64_t m = c.integer("num_scan_inputs", 0);
        if (m < 1 || m > static_cast<std::int64_t>(c.input_count() - first)) c.fail("num_scan_inputs does not fit the inputs; repair the model");
        const std::size_t split = c.input_count() - static_cast<std::size_t>(m);
        Results out;
        if (first == 0) {
            std::vector<Held> states, scans;
            for (std::size_t i = 0; i < c.input_count(); ++i) (i < split ? states : scans).push_back(borrowed(c.in(i)));
            for (const Held& t : scan_core(c, scope, std::move(states), scans, -1)) out.push_back(*t);
            return out;
        }
        if (c.in(split).shape.empty()) c.bad_shape(split, "a batch dimension is expected; repair the model");
        const std::int64_t batch = c.in(split).shape[0];
        std::vector<std::vector<Held>> results;
        for (std::int64_t b = 0; b < batch; ++b) {
            std::vector<Held> states, scans;
            for (std::size_t i = 1; i < c.input_count(); ++i) {
                if (c.in(i).shape.empty() || c.in(i).shape[0] != batch) c.bad_shape(i, "the batch differs; repair the model");
                (i < split ? states : scans).push_back(slice_at(c, c.in(i), 0, b));
            }
            if (c.has(0) && c.in(0).count() != batch) c.bad_shape(0, "a length for each sequence is expected; repair the model");
            const auto given = scan_core(c, scope, std::move(states), scans, c.has(0) ? c.in(0).integer(b) : -1);
            results.resize(given.size());
            for (std::size_t k = 0; k < given.size(); ++k) results[k].push_back(given[k]);
        }
        const auto& body = subgraph(c, "body");
        for (std::size_t k = 0; k < results.size(); ++k) out.push_back(stacked(c, results[k], 0, false, body.output(static_cast<int>(k))));
        return out;
    });
}

}  // namespace

Held borrowed(const Tensor& t) { return {&t, [](const Tensor*) {}}; }

Held Scope::held(const std::string& name) const {
    if (const auto it = values_.find(name); it != values_.end()) return it->second;
    return outer_ ? outer_->held(name) : nullptr;
}

std::vector<Held> run_graph(const onnx::GraphProto& graph, Scope& scope) {
    const auto given = [&](const std::string& name) {
        return std::any_of(graph.input().begin(), graph.input().end(), [&](const auto& i) { return i.name() == name; }) && scope.find(name);
    };
    for (const auto& init : graph.initializer())
        if (!given(init.name()))
            scope.set(init.name(), std::make_shared<const Tensor>(tensor_from_proto(init, "initialiser '" + init.name() + "'")));
    for (const auto& init : graph.sparse_initializer())
        scope.set(init.values().name(), std::make_shared<const Tensor>(dense_from_sparse(init, "initialiser '" + init.values().name() + "'")));
    std::vector<std::string> outputs;
    for (const auto& output : graph.output()) outputs.push_back(output.name());
    run_nodes(ProtoNodes{graph.node()}, scope, outputs);
    std::vector<Held> out;
    for (const auto& name : outputs) {
        out.push_back(scope.held(name));
        if (!out.back()) bad(fmt::format("output '{}' is defined by nothing; repair the model", name));
    }
    return out;
}

std::map<std::string, Tensor> evaluate_model(const onnx::ModelProto& model, const std::map<std::string, Tensor>& inputs) {
    RunContext context;
    for (const auto& set : model.opset_import())
        if (plain_domain(set.domain()).empty()) context.opset = static_cast<int>(set.version());
    for (const auto& function : model.functions()) context.functions[{plain_domain(function.domain()), function.name()}] = &function;
    Scope scope(context, nullptr);
    for (const auto& [name, tensor] : inputs) scope.set(name, borrowed(tensor));
    std::map<std::string, Tensor> out;
    const std::vector<Held> results = run_graph(model.graph(), scope);
    for (int i = 0; i < model.graph().output_size(); ++i) out[model.graph().output(i).name()] = *results[static_cast<std::size_t>(i)];
    return out;
}

std::span<const Operator> control_operators() {
    static constexpr Operator table[] = {{"If", if_}, {"Loop", loop}, {"Scan", scan, 8}};
    return table;
}

}  // namespace assay::workloads::hostops
