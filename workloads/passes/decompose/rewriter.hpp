#pragma once
// Builds the nodes that stand for one.
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/graph/graph.hpp"

namespace assay::workloads {

/// Thrown by a rewrite that does not fit the node: nothing was changed, the node stays.
struct NotTakenApart {};

class Rewriter {
public:
    using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>;
    using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

    Rewriter(Graph& graph, NodeId id);

    Graph& graph;
    const NodeId id;
    const Node original;  ///< as it was: the graph's may be gone already

    /// A node and its only value, internal unless `output` is one of the original's. Nothing is in the graph before commit(); shapes are not
    /// known before either, so rewrites work them out from the inputs.
    ValueId add(const std::string& op, const std::vector<ValueId>& inputs, const Attributes& attributes = {}, ValueId output = kNoValue);
    ValueId constant(Tensor tensor);
    ValueId scalar(float value);
    ValueId integers(const std::vector<std::int64_t>& values);

    ValueId reshape(ValueId x, const Shape& shape, ValueId output = kNoValue);
    ValueId transpose(ValueId x, const std::vector<std::int64_t>& perm, ValueId output = kNoValue);
    ValueId slice(ValueId x, std::int64_t axis, std::int64_t from, std::int64_t to);
    /// A reduction with keepdims=1, its axes as attribute or input as the model's opset has them.
    ValueId reduce(const std::string& op, ValueId x, const std::vector<std::int64_t>& axes, ValueId output = kNoValue);

    const Value& in(std::size_t i) const { return graph.value(original.inputs[i]); }
    bool has(std::size_t i) const { return original.input(i) != kNoValue; }
    /// The constant at input i as doubles; throws NotTakenApart for a value of the run time or a type that is no float32.
    std::vector<double> constant_input(std::size_t i) const;
    /// The output if the model reads it; kNoValue otherwise.
    ValueId output(std::size_t i) const;

    /// Puts the nodes into the graph in the original's place and infers their shapes. Call Graph::connect afterwards.
    void commit();

private:
    struct Pending {
        std::string op;
        std::vector<ValueId> inputs;
        Attributes attributes;
        ValueId output;
    };
    std::vector<Pending> pending_;
    int steps_ = 0;
    ValueId fresh();
};

Tensor float_tensor(const Shape& shape, const std::vector<double>& values);

}  // namespace assay::workloads
