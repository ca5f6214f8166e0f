#pragma once
// Running graphs: values by name, scopes of subgraphs, model-local functions, and the bounds that keep any model from running for ever.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/host/call.hpp"

namespace assay::workloads::hostops {

using Held = std::shared_ptr<const Tensor>;

/// What all scopes of one evaluation share.
struct RunContext {
    int opset = 0;
    std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions;  ///< by domain ("" for ai.onnx) and name
    std::int64_t nodes_left = std::int64_t{1} << 22;  ///< node executions and loop iterations before the run is refused
    int depth = 0;                                    ///< nested graphs and functions
};

/// The values of one graph that is running; names it lacks are those of the graphs around it.
class Scope {
public:
    Scope(RunContext& run, const Scope* outer) : context(run), outer_(outer) {}
    RunContext& context;

    const Tensor* find(const std::string& name) const {
        if (const auto it = values_.find(name); it != values_.end()) return it->second.get();
        return outer_ ? outer_->find(name) : nullptr;
    }
    Held held(const std::string& name) const;  ///< null when absent
    void set(const std::string& name, Held value) { values_[name] = std::move(value); }
    void forget(const std::string& name) { values_.erase(name); }

private:
    const Scope* outer_;
    std::map<std::string, Held> values_;
};

/// Runs the graph in `scope`, which already holds its inputs; gives its outputs in order. Throws Error(bad_input) naming the inner node.
std::vector<Held> run_graph(const onnx::GraphProto& graph, Scope& scope);

/// A value that someone else keeps alive.
Held borrowed(const Tensor& t);

/// evaluate() inside a run: `scope` gives subgraphs their outer values; null when the node stands alone.
Results evaluate_in(const onnx::NodeProto& node, int opset, std::span<const Tensor* const> inputs, const Scope* scope);

}  // namespace assay::workloads::hostops
