#pragma once
// One evaluation of one node, as its kernel sees it: inputs, attributes, versions, and the makers of output tensors.
#include <onnx/onnx_pb.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/tensor.hpp"
#include "workloads/host/evaluate.hpp"

namespace assay::workloads::hostops {

class Scope;  // values by name around a subgraph (control.hpp)

class Call {
public:
    Call(const onnx::NodeProto& called, int version, std::span<const Tensor* const> inputs, const Scope* around)
        : node(called), opset(version), scope(around), inputs_(inputs) {}

    const onnx::NodeProto& node;
    const int opset;
    const Scope* const scope;  ///< null when the node was called alone

    const std::string& op() const { return node.op_type(); }
    std::size_t input_count() const { return static_cast<std::size_t>(node.input_size()); }
    std::size_t output_count() const { return static_cast<std::size_t>(node.output_size()); }
    bool has(std::size_t i) const { return find(i) != nullptr; }
    const Tensor* find(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
    const Tensor& in(std::size_t i) const;                      ///< throws when absent
    std::vector<std::int64_t> list(std::size_t i) const;        ///< input i as integers
    std::int64_t integer(std::size_t i) const;                  ///< input i, which holds one element
    double real(std::size_t i) const;
    bool wants(std::size_t i) const { return i < output_count() && !node.output(static_cast<int>(i)).empty(); }
    std::span<const Tensor* const> captured() const { return inputs_.subspan(std::min(inputs_.size(), input_count())); }

    const onnx::AttributeProto* attribute(const char* name) const;
    std::int64_t integer(const char* name, std::int64_t otherwise) const;
    float real(const char* name, float otherwise) const;
    std::string text(const char* name, const std::string& otherwise) const;
    std::vector<std::int64_t> integers(const char* name, std::vector<std::int64_t> otherwise = {}) const;
    std::vector<float> reals(const char* name) const;
    std::vector<std::string> texts(const char* name) const;
    std::optional<Tensor> tensor(const char* name) const;

    [[noreturn]] void fail(const std::string& message) const;
    /// fail() with "input i is 2x3: <what>".
    [[noreturn]] void bad_shape(std::size_t i, const std::string& what) const;
    void require(bool condition, const char* message) const {
        if (!condition) fail(message);
    }
    /// Refuses a computation of more than 2^40 steps: nothing a model contains may hang the host.
    void work(double steps) const;
    Tensor make(DType type, Shape shape) const;  ///< zeros; throws past kMaxElements
    std::size_t axis(std::int64_t axis, std::size_t rank) const;
    void same_types(std::size_t first, std::size_t last) const;  ///< inputs [first, last) present have one element type

private:
    std::span<const Tensor* const> inputs_;
};

using Results = std::vector<Tensor>;
using Kernel = Results (*)(const Call&);

inline Results one(Tensor t) {
    Results r;
    r.push_back(std::move(t));
    return r;
}

/// One operator: its kernel and the first opset that has it.
struct Operator {
    const char* name;
    Kernel kernel;
    int since = 1;
};

// Tables of the families, one a source file.
std::span<const Operator> unary_operators();
std::span<const Operator> binary_operators();
std::span<const Operator> cast_operators();
std::span<const Operator> quantize_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> sort_operators();
std::span<const Operator> normalize_operators();
std::span<const Operator> matrix_operators();
std::span<const Operator> einsum_operators();
std::span<const Operator> conv_operators();
std::span<const Operator> pool_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> grid_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> move_operators();
std::span<const Operator> gather_operators();
std::span<const Operator> detection_operators();
std::span<const Operator> signal_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> control_operators();

}  // namespace assay::workloads::hostops
