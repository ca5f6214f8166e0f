#pragma once
// What an operator sees of its node: typed attributes, inputs and the error that names the node. One object an evaluation.
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "golden/reference/numerics.hpp"
#include "golden/reference/value.hpp"

namespace onnx {
class AttributeProto;
class NodeProto;
}  // namespace onnx

namespace assay::golden {

class Node {
public:
    /// `version` is the operator's own version (Clip-11), `inputs` may hold null where an optional input is left out. All outlive this.
    Node(const onnx::NodeProto& proto, int version, std::vector<const Value*> inputs, const Numerics& numerics, std::string label);

    int version() const { return version_; }
    const Numerics& numerics() const { return numerics_; }
    bool bounds() const { return numerics_.bounds(); }
    std::size_t input_count() const { return inputs_.size(); }
    int output_count() const;

    bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i]; }
    const Value& in(std::size_t i) const;                     ///< fails when it is absent
    const Value& real(std::size_t i) const;                   ///< in(i), which must be a float tensor
    std::vector<std::int64_t> integers(std::size_t i) const;  ///< in(i), which must be int32 or int64
    double scalar(std::size_t i) const;                       ///< in(i), which must hold one element

    std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
    double real(std::string_view name, float otherwise) const;  ///< attributes are fp32, and so are their defaults: 0.2f, not 0.2
    std::string text(std::string_view name, std::string_view otherwise) const;
    std::optional<std::vector<std::int64_t>> integers(std::string_view name) const;
    std::optional<Value> tensor(std::string_view name) const;
    const onnx::AttributeProto* attribute(std::string_view name) const;  ///< null when absent
    /// An attribute that this reference understands only at one value.
    void require(std::string_view name, std::int64_t only) const;

    /// Axis in [-rank, rank) to [0, rank). Fails outside.
    std::int64_t axis(std::int64_t axis, std::int64_t rank) const;
    [[noreturn]] void fail(const std::string& what) const;  ///< Error(bad_input): "model: node 'name' (Op-version): what"
    /// Fails naming every attribute that no call above asked for: nothing of a model is silently ignored.
    void check_all_attributes_used() const;

private:
    const onnx::NodeProto& proto_;
    int version_;
    std::vector<const Value*> inputs_;
    const Numerics& numerics_;
    std::string label_;
    mutable std::set<std::string, std::less<>> used_;
};

}  // namespace assay::golden
