#pragma once
// Builds an ONNX graph node by node: names in scopes, shapes of every value, weights as recipes, parameters and multiply-accumulates
// counted on the way. It knows no layers; net.hpp does.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/generate/fill.hpp"

namespace onnx {
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace assay::workloads::generate {

/// A value of the graph. Mean and variance are what the builder expects over the given inputs: layers scale their weights by them, so
/// that activations stay near 1 through any depth.
struct Value {
    std::string name;
    Shape shape;
    DType type = DType::f32;
    double mean = 0, variance = 1;

    std::int64_t dim(int i) const { return shape[i < 0 ? shape.size() + static_cast<std::size_t>(i) : static_cast<std::size_t>(i)]; }
    int rank() const { return static_cast<int>(shape.size()); }
    double second_moment() const { return mean * mean + variance; }
    Value with(double new_mean, double new_variance) const {
        Value v = *this;
        v.mean = new_mean;
        v.variance = new_variance;
        return v;
    }
};

using Ints = std::vector<std::int64_t>;
using Attribute = std::pair<std::string, std::variant<std::int64_t, float, std::string, Ints>>;
using Attributes = std::vector<Attribute>;

/// A finished model: the protobuf without its initializers, which are recipes, and its inputs' data, recipes too.
struct GeneratedModel {
    std::shared_ptr<onnx::ModelProto> proto;
    std::vector<TensorRecipe> weights, inputs;
    std::uint64_t seed = 0, parameters = 0, macs = 0;
    std::map<std::string, Value> expected;  ///< every float value by name, with the mean and variance that the builder expects of it
};

class GraphBuilder {
public:
    struct Options {
        int opset = 17;
        DType float_type = DType::f32;  ///< of weights and activations: f32, f16 or bf16
        std::uint64_t seed = 0;
    };
    GraphBuilder(const std::string& graph_name, const Options& options);
    ~GraphBuilder();

    int opset() const { return options_.opset; }
    DType float_type() const { return options_.float_type; }

    /// Prefixes the names of what is made while it lives: scope("layer1.0") gives "layer1.0.conv1".
    class Scope {
    public:
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() { builder_.prefix_.resize(length_); }

    private:
        friend class GraphBuilder;
        Scope(GraphBuilder& builder, const std::string& name);
        GraphBuilder& builder_;
        std::size_t length_;
    };
    [[nodiscard]] Scope scope(const std::string& name) { return {*this, name}; }

    /// A graph input with the recipe of its test data.
    Value input(const std::string& name, const Shape& shape, DType type, const Fill& fill);
    /// An initializer of the model's float type, counted as parameters.
    Value weight(const std::string& name, const Shape& shape, const Fill& fill);
    /// Constants: not parameters. Equal ones are made once for the graph.
    Value scalar(double value, DType type);
    Value scalar(double value) { return scalar(value, options_.float_type); }
    Value integers(const Ints& values);                     ///< rank 1
    Value integer_scalar(std::int64_t value);
    Value table(const std::string& name, const Shape& shape, DType type, const Fill& fill);  ///< a named constant

    /// A node with one output of the given shape, and of the first input's type if none is given. `name` must be new in its scope; "" makes one from the operator.
    Value node(const std::string& op, const std::string& name, const std::vector<Value>& inputs, const Shape& shape, const Attributes& attributes = {});
    Value node(const std::string& op, const std::string& name, const std::vector<Value>& inputs, const Shape& shape, DType type, const Attributes& attributes);
    /// A node with several outputs. An unnamed input (Value{}) or an output shape of {-1} is left out.
    std::vector<Value> nodes(const std::string& op, const std::string& name, const std::vector<Value>& inputs, const std::vector<Shape>& shapes,
                             const std::vector<DType>& types, const Attributes& attributes);

    void output(const Value& value, const std::string& name);  ///< names a value and makes it a graph output
    void count_macs(std::uint64_t macs) { macs_ += macs; }

    /// The model. The builder must not be used afterwards.
    GeneratedModel finish();

private:
    std::string fresh(const std::string& name);
    void expect(const Value& value);  ///< keeps what the last user of a value knows of its statistics

    Options options_;
    std::shared_ptr<onnx::ModelProto> model_;
    std::string prefix_;
    std::set<std::string> names_;
    std::map<std::string, int> counters_;
    std::map<std::string, Value> constants_;
    std::map<std::string, Value> values_;  ///< node outputs by name: value_info
    std::vector<std::string> order_;       ///< of values_
    std::map<std::string, std::string> renamed_;
    std::vector<Value> outputs_;
    std::vector<TensorRecipe> weights_, inputs_;
    std::uint64_t parameters_ = 0, macs_ = 0;
};

int onnx_type(DType type);  ///< TensorProto.DataType

}  // namespace assay::workloads::generate
