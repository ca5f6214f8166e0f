#pragma once
// The compiler's graph: ONNX nodes are the vertices of a Boost.Graph adjacency list, values (tensors) a table beside it. An edge carries
// the value that its source produces and its target reads, so fusion and ordering are graph questions.
#include <boost/graph/adjacency_list.hpp>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace onnx {
class NodeProto;
}

namespace assay::workloads {

using ValueId = int;
using NodeId = int;
inline constexpr ValueId kNoValue = -1;

struct Attribute {
    enum class Kind { integer, real, text, integers, reals, texts, tensor, other } kind = Kind::other;
    std::int64_t i = 0;
    float f = 0;
    std::string s;
    std::vector<std::int64_t> ints;
    std::vector<float> floats;
    std::vector<std::string> strings;
    std::shared_ptr<const Tensor> tensor;
};

/// What a DequantizeLinear of a constant read: the integers, kept so that an integer layer can use them.
struct QuantizedConstant {
    std::shared_ptr<const Tensor> integers;
    std::vector<float> scale;              ///< one, or one for each index along `axis`
    std::vector<std::int32_t> zero_point;  ///< as many
    std::int64_t axis = 0;
};

struct Value {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    bool known = false;                      ///< dtype and shape are valid
    bool dynamic = false;                    ///< known, but for a shape that depends on data: the value lives on the host only
    std::shared_ptr<const Tensor> constant;  ///< set when known at compile time
    /// Initialiser whose elements `constant` holds in the same row-major order ("" when derived): fault injection names it.
    std::string origin;
    std::shared_ptr<const QuantizedConstant> quantized;  ///< `constant` is this, dequantised
    bool is_input = false;
    bool is_output = false;
    bool internal = false;  ///< a step of a node that was taken apart: no value of the model
    NodeId producer = -1;
};

struct Node {
    int index = 0;     ///< position in graph.node
    std::string name;  ///< the model's, or "Op_index"
    std::string op;
    std::string domain;
    std::map<std::string, Attribute> attributes;
    std::vector<ValueId> inputs;  ///< kNoValue for an absent optional input
    std::vector<ValueId> outputs;
    std::vector<ValueId> captures;  ///< values of this graph that the node's subgraphs read
    std::shared_ptr<const onnx::NodeProto> proto;  ///< as in the model: what a host step executes
    bool folded = false;                           ///< its outputs are compile-time constants

    bool has(const std::string& key) const { return attributes.contains(key); }
    std::int64_t integer(const std::string& key, std::int64_t otherwise) const;
    float real(const std::string& key, float otherwise) const;
    std::string text(const std::string& key, const std::string& otherwise) const;
    std::vector<std::int64_t> integers(const std::string& key, std::vector<std::int64_t> otherwise = {}) const;
    ValueId input(std::size_t i) const { return i < inputs.size() ? inputs[i] : kNoValue; }
};

struct Edge {
    ValueId value = kNoValue;
};

/// Something a node asks for that the compiler cannot give. `what` reads "mode=\"cubic\" is not supported; use \"nearest\"".
struct NodeError : std::runtime_error {
    NodeError(NodeId id, const std::string& what) : std::runtime_error(what), node(id) {}
    NodeId node;
};

/// A node that breaks the operator's own rules: no place can run it.
struct MalformedNode : NodeError {
    using NodeError::NodeError;
};

class Graph {
public:
    using Adjacency = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Node, Edge>;

    std::string file;  ///< the model's file name, for messages
    int opset = 0;
    std::vector<ValueId> inputs, outputs;
    std::map<std::string, Tensor> input_values;  ///< small integer and bool inputs whose values the user gave
    /// Those of them that a condition, a trip count or a shape was decided by: what is compiled holds for these values only.
    std::map<std::string, Tensor> bound_inputs;

    ValueId value_id(const std::string& name);  ///< finds or makes the value of that name
    ValueId find(const std::string& name) const;
    NodeId add_node(Node node);
    void connect();  ///< makes the edges once all nodes are in; again after nodes were added or changed

    Node& node(NodeId id) { return adjacency_[static_cast<std::size_t>(id)]; }
    const Node& node(NodeId id) const { return adjacency_[static_cast<std::size_t>(id)]; }
    Value& value(ValueId id) { return values_[static_cast<std::size_t>(id)]; }
    const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
    int node_count() const { return static_cast<int>(boost::num_vertices(adjacency_)); }
    int value_count() const { return static_cast<int>(values_.size()); }

    /// Producers before consumers, ties by position in the file. Throws Error(bad_input) naming a node of a cycle.
    std::vector<NodeId> topological_order() const;
    /// Nodes that read the value (each once, ascending), without those that were folded.
    std::vector<NodeId> consumers(ValueId id) const;
    bool is_constant(ValueId id) const { return id != kNoValue && value(id).constant != nullptr; }

private:
    Adjacency adjacency_;
    std::vector<Value> values_;
    std::map<std::string, ValueId> by_name_;
    std::vector<std::vector<NodeId>> readers_;
};

}  // namespace assay::workloads
