#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "support/error.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/onnx/op_versions.hpp"
#include "workloads/passes/flatten.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

/// The newest opset whose changes to the operators have been read: a schema that changed later may mean something else.
constexpr int kNewestOpset = 26;

/// Operators whose versions 27 and 28 only admit more types.
bool only_types_since(const std::string& op, int opset) {
    static const std::set<std::string> ops{"BitShift", "Cast", "Celu", "Compress", "DepthToSpace", "DequantizeLinear", "Einsum", "OneHot", "QuantizeLinear",
                                           "ReduceLogSum", "ReduceLogSumExp", "ReverseSequence", "Unique"};
    return opset <= 28 && ops.contains(op);
}
/// Nodes that flattening may add to a graph in all.
constexpr int kMostAdded = 1 << 16;

bool is_control(const std::string& op) { return op == "If" || op == "Loop" || op == "Scan"; }

bool inputs_known(const Graph& graph, const Node& node) {
    const auto known = [&](ValueId v) { return v == kNoValue || graph.value(v).known; };
    return std::all_of(node.inputs.begin(), node.inputs.end(), known) && std::all_of(node.captures.begin(), node.captures.end(), known);
}

bool foldable(const Graph& graph, const Node& node) {
    if (!node.domain.empty()) return false;
    if (node.op == "Shape" || node.op == "Size") return node.input(0) != kNoValue && !graph.value(node.inputs[0]).dynamic;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v == kNoValue || graph.is_constant(v); }) &&
           std::all_of(node.captures.begin(), node.captures.end(), [&](ValueId v) { return graph.is_constant(v); });
}

bool keeps_order(const std::string& op) {
    return op == "Reshape" || op == "Identity" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Dropout";
}

/// What fold_dequantize keeps the integers of; other types and blocks fold to plain floats.
bool keeps_integers(const Graph& graph, const Node& node) {
    if (node.op != "DequantizeLinear") return false;
    if (!graph.is_constant(node.input(0)) || !graph.is_constant(node.input(1))) return true;  // which says what is missing
    const DType x = graph.value(node.inputs[0]).dtype, scale = graph.value(node.inputs[1]).dtype;
    return (x == DType::i8 || x == DType::u8 || x == DType::i32) && scale == DType::f32 && node.integer("block_size", 0) == 0;
}

bool fold(Graph& graph, NodeId id) {
    std::vector<Tensor> results = fold_node(graph, id);
    if (results.empty()) return false;
    Node& node = graph.node(id);
    for (std::size_t i = 0; i < results.size() && i < node.outputs.size(); ++i) {
        if (node.outputs[i] == kNoValue) continue;
        Value& v = graph.value(node.outputs[i]);
        v.dtype = results[i].dtype;
        v.shape = results[i].shape;
        v.known = true;
        v.dynamic = false;
        v.constant = std::make_shared<const Tensor>(std::move(results[i]));
        if (node.op == "Constant")
            v.origin = v.name;
        else if (keeps_order(node.op) && i == 0)
            v.origin = graph.value(node.inputs[0]).origin;
    }
    node.folded = true;
    return true;
}

/// The graph inputs that a value is computed from, when all of them may be bound; empty when one may not.
std::vector<ValueId> bindable_sources(const Graph& graph, ValueId value) {
    std::vector<ValueId> open{value}, sources;
    std::set<ValueId> seen;
    while (!open.empty()) {
        const ValueId v = open.back();
        open.pop_back();
        if (v == kNoValue || graph.is_constant(v) || !seen.insert(v).second) continue;
        if (graph.value(v).is_input) {
            if (!graph.input_values.contains(graph.value(v).name)) return {};
            sources.push_back(v);
            continue;
        }
        if (graph.value(v).producer < 0) return {};
        const Node& node = graph.node(graph.value(v).producer);
        if (!node.domain.empty() || !hostops::supports(node.op, graph.opset)) return {};
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
        open.insert(open.end(), node.captures.begin(), node.captures.end());
    }
    return sources;
}

/// Makes constants of the inputs that decide the node's course or shapes; false when none does or may.
bool bind_deciding_inputs(Graph& graph, NodeId id) {
    if (graph.input_values.empty()) return false;
    bool bound = false;
    for (const ValueId value : deciding_inputs(graph, id))
        for (const ValueId source : bindable_sources(graph, value)) {
            Value& v = graph.value(source);
            v.constant = std::make_shared<const Tensor>(graph.input_values.at(v.name));
            graph.bound_inputs[v.name] = *v.constant;
            bound = true;
        }
    return bound;
}

/// Shapes and types by the rules that the lowerings rely on, else by the host's.
void infer(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const auto dynamic = [&](ValueId v) { return v != kNoValue && graph.value(v).dynamic; };
    if (is_control(node.op) || std::any_of(node.inputs.begin(), node.inputs.end(), dynamic) || !deciding_inputs(graph, id).empty())
        return infer_on_host(graph, id);
    infer_node(graph, id);  // which hands on what it has no rule for; what it refuses no lowering may see
}

class Walk {
public:
    Walk(Graph& graph, std::vector<NodeError>& errors) : graph_(graph), errors_(errors) {}

    void run() {
        while (pass()) {
        }
    }

private:
    /// Visits nodes in order; true when the graph or its constants changed and the walk must start again.
    bool pass() {
        for (const NodeId id : graph_.topological_order()) {
            done_.resize(static_cast<std::size_t>(graph_.node_count()), false);
            if (done_[static_cast<std::size_t>(id)] || !inputs_known(graph_, graph_.node(id))) continue;
            done_[static_cast<std::size_t>(id)] = true;
            try {
                if (visit(id)) return true;
            } catch (const NodeError& error) {
                errors_.push_back(error);
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::bad_input) throw;
                errors_.emplace_back(id, error.what());
            }
        }
        return false;
    }

    bool visit(NodeId id) {
        const Node& node = graph_.node(id);
        if (node.folded) return false;
        if (node.outputs.empty() || node.outputs[0] == kNoValue)
            if (node.outputs.size() < 2) throw NodeError(id, "the node has no output; repair the model");
        if (node.domain.empty() && graph_.opset > kNewestOpset && schema_version(node.op, graph_.opset) > kNewestOpset && hostops::supports(node.op, graph_.opset) &&
            !only_types_since(node.op, graph_.opset))
            throw NodeError(id, fmt::format("this version of the operator is newer than opset {}, the newest that is known; convert the model", kNewestOpset));
        if (foldable(graph_, node)) {
            if (keeps_integers(graph_, node)) {
                fold_dequantize(graph_, id);
                return false;
            }
            if (fold(graph_, id)) return false;
        }
        if (is_control(node.op) && node.domain.empty() && added_ < kMostAdded) {
            const int before = graph_.node_count();
            if (flatten_control(graph_, id)) {
                added_ += graph_.node_count() - before;
                graph_.connect();
                return true;
            }
        }
        if (node.domain.empty() && bind_deciding_inputs(graph_, id)) {
            for (NodeId n = 0; n < graph_.node_count(); ++n) done_[static_cast<std::size_t>(n)] = graph_.node(n).folded;
            errors_.clear();
            return true;
        }
        infer(graph_, id);
        return false;
    }

    Graph& graph_;
    std::vector<NodeError>& errors_;
    std::vector<bool> done_;
    int added_ = 0;
};

}  // namespace

void infer_and_fold(Graph& graph, std::vector<NodeError>& errors) { Walk(graph, errors).run(); }

}  // namespace assay::workloads
