#pragma once
// The golden reference: executes an ONNX graph in fp64 (integers exactly), whole or one layer at a time with bounds on the chip's error.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "golden/reference/numerics.hpp"
#include "golden/reference/value.hpp"

namespace onnx {
class ModelProto;
}

namespace assay::golden {

struct Graph;

struct InputInfo {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;  ///< -1 where the model leaves a dimension open
};

/// How the chip computes one layer (simkernel::Layer says it in words).
struct LayerRule {
    std::string precision;    ///< "int8", "bf16", "bf16x3", "fp16", "fp8e4m3", "fp8e5m2", "w8a8", "w8", "w4", "fp32", "move"
    std::int64_t k_slab = 0;  ///< channels of a slab of K; 0: all
    double x_scale = 1, w_scale = 0;  ///< fp8, w8a8: as in Numerics
    int x_zero = 0;
};

/// Rules by the first output that a node names (Reference::node_output): names, not indices, so that values inside control flow have theirs.
using LayerRules = std::map<std::string, LayerRule>;

class Reference {
public:
    /// Checks the graph and every operator at once. Throws Error(bad_input), a line for each problem: "model: node 'name' (Op-version):
    /// ...". Integer and bool values and all shapes of `inputs` (may be empty) may decide control flow, which is then taken apart into nodes
    /// whose values have names (graph.hpp); run and emulate take no other values for those that did.
    explicit Reference(std::shared_ptr<const onnx::ModelProto> model, std::string name = "model",
                       const std::map<std::string, Tensor>& inputs = {});
    ~Reference();
    Reference(Reference&&) noexcept;

    const std::vector<InputInfo>& inputs() const { return inputs_; }
    const std::vector<std::string>& outputs() const { return outputs_; }
    int node_count() const;                  ///< of the model's graph; what is inside control flow and functions belongs to its outermost node
    std::string node_label(int node) const;  ///< "node 'conv1' (Conv-11)"
    /// The first output that node `node` names: the key of its LayerRule. Empty when it names none.
    std::string node_output(int node) const;
    std::vector<std::string> node_inputs(int node) const;  ///< names in order, without those left out
    /// Non-finite weights and the like: the run goes on, the user should know.
    const std::vector<std::string>& warnings() const { return warnings_; }

    /// Every value of the graph by name, initialisers among them. Inputs must be complete and fit (dimensions left open are bound by them). Error(bad_input) names
    /// what is missing or does not fit. Thread: any; const but for the constants' cache.
    Values run(const std::map<std::string, Tensor>& inputs) const;

    /// The whole network in the chip's arithmetic, by golden's own emulation: fp32 after each operation, matrix products by the rule of
    /// their node, or of the outermost node around it (`otherwise` for nodes without one). The yardstick of global error.
    Values emulate(const std::map<std::string, Tensor>& inputs, const LayerRules& rules, const LayerRule& otherwise) const;

    /// One value from the tensors that the device fed into its layer: the nodes between `feeds` and `output` are evaluated, constants are
    /// the model's. The result carries err (and unrounded, unrounded_err when quantised). Mode is one of the bound modes.
    /// Throws Error(bad_input) when `output` is no value of the graph or depends on an input that is not fed.
    /// `exact`, if not null, holds values of a run (run()): results of Shape and Size are taken from it, which need no data.
    Value evaluate(const std::string& output, const std::map<std::string, Tensor>& feeds, const LayerRule& rule,
                   Mode mode = Mode::bound, const Values* exact = nullptr) const;

    bool has_value(const std::string& name) const;
    /// Index of the outermost node that makes a value; -1 for inputs, initialisers and unknown names.
    int node_of(const std::string& value) const;

private:
    void feed(const std::map<std::string, Tensor>& inputs, Values& values) const;
    Values run_mode(const std::map<std::string, Tensor>& inputs, Mode mode, const LayerRules& rules,
                    const LayerRule& otherwise) const;
    std::shared_ptr<const onnx::ModelProto> model_;
    std::string name_;
    std::unique_ptr<Graph> graph_;
    std::map<std::string, Tensor> decisive_;
    std::vector<InputInfo> inputs_;
    std::vector<std::string> outputs_, warnings_;
};

}  // namespace assay::golden
