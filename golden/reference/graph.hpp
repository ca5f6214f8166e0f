#pragma once
// The model as the reference runs it: one flat list of steps. Functions, and control flow whose course is known before it runs, are taken
// apart into steps whose values have names of their own; what is decided by data stays one step with bodies of steps.
//
// Names of inner values, where N is the node's name, or Op_index with its index among its graph's nodes when it has none:
//   If N: `N/then/v`, `N/else/v`; Loop or Scan N, iteration i: `N/body.i/v`; call N of a function: `N/fn/v`. They nest: `A/then/B/body.0/v`.
// A body's formal input or output v has its name too, besides the name of what is passed in or of the node's output.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "golden/reference/numerics.hpp"
#include "golden/reference/registry.hpp"
#include "golden/reference/value.hpp"

namespace onnx {
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace assay::golden {

struct Graph;

struct Step {
    std::shared_ptr<const onnx::NodeProto> proto;  ///< attributes; names of values are those below
    Operator op;                                   ///< kernel null: unknown operator, or control flow when there are bodies
    std::string label;                             ///< "model: node 'conv1' (Conv-11)"
    int outer = 0;                                 ///< index of the outermost node in the model's graph
    std::vector<std::string> inputs, outputs;      ///< "" where left out
    std::vector<std::shared_ptr<Graph>> bodies;    ///< If: then, else; Loop, Scan: one
    std::vector<std::string> captured;             ///< values of this graph or of those around it that the bodies read

    const std::string& name() const;  ///< first output that is named: the key of the step's LayerRule; "" if none
};

struct Graph {
    std::string model;  ///< how errors name the model
    std::vector<Step> steps;
    std::map<std::string, int> producer;        ///< step that makes a value
    Values constants;                           ///< initialisers and what flattening made of them
    std::vector<std::shared_ptr<const onnx::NodeProto>> owned;  ///< nodes of functions with a call's attributes, which steps point into
    std::vector<std::string> formals, results;  ///< of a body: its inputs and outputs
    std::vector<std::string> captured;          ///< of a body: what it reads from around it
    std::vector<Value> empty_results;           ///< of a body of a Loop or Scan: each result stacked over no iteration
};

/// Values at hand while steps run: those computed, the graph's constants, and those of the graphs around a body.
class Env {
public:
    explicit Env(const Graph& graph, const Env* around = nullptr) : graph_(graph), around_(around) {}
    const Value* find(const std::string& name) const;  ///< null: not known
    const Graph& graph() const { return graph_; }
    Values own;  ///< goes before constants of the same name

private:
    const Graph& graph_;
    const Env* around_;
};

/// Arithmetic of each step.
using NumericsOf = Numerics (*)(const Step& step, const void* context);
struct Arithmetic {
    NumericsOf of;
    const void* context;
    Numerics operator()(const Step& step) const { return of(step, context); }
};

/// Evaluates one step into env.own. Its inputs must be there. Throws Error(bad_input) naming the node.
void evaluate(const Step& step, Env& env, const Arithmetic& arithmetic);

/// If, Loop and Scan decided by the data at hand. Throws Error(bad_input), also past 2^17 iterations.
std::vector<Value> run_control(const Step& step, const Env& env, const Arithmetic& arithmetic);

struct Flattened {
    Graph graph;
    std::vector<std::string> outputs;        ///< of the model
    std::map<std::string, Tensor> decisive;  ///< inputs whose given values (integers) or shapes decided control flow
    std::vector<std::string> problems, warnings;
};

/// Reads the model's graph. `inputs` (may be empty): integer and bool values and all shapes may decide conditions and trip counts. At most
/// 4096 iterations and 2^20 steps are flattened, the rest stays control flow. Problems are collected, a line each.
Flattened flatten(const onnx::ModelProto& model, const std::string& name, const std::map<std::string, Tensor>& inputs);

}  // namespace assay::golden
