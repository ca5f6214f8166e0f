#pragma once
// State shared by the lowerings of one compilation: where every tensor lies, which nodes are done, and the program under construction.
#include <map>
#include <set>

#include "simkernel/program.hpp"
#include "workloads/compile.hpp"
#include "workloads/graph/graph.hpp"
#include "workloads/lower/operand.hpp"
#include "workloads/schedule/emitter.hpp"

namespace assay::workloads {

/// Element type on the device of a host type. Throws NodeError for one that the chip does not hold.
simkernel::Dtype device_type(NodeId id, DType type);
bool device_holds(DType type);  ///< device_type would not throw

class Lowering {
public:
    Lowering(const Graph& graph, const CompileOptions& options);

    const Graph& graph;
    const CompileOptions& options;
    const simkernel::ChipConfig& chip;
    simkernel::Program program;
    Emitter emitter;

    /// Places a graph input on the device, or in host memory when the chip does not hold its type.
    void place_input(ValueId id);
    /// The value lives in host memory (an input, or made by the host step with index `step`).
    void place_on_host(ValueId id, std::optional<std::size_t> step);
    bool on_host(ValueId value) const { return host_values_.contains(value); }
    /// The view of integers that a load reads as its index list: int32 on the device, int64 of the model narrowed on its way there.
    Operand index_operand(NodeId id, ValueId value);
    /// What index_operand gave is a list of int32 on the device; other types are no indices.
    bool holds_indices(const Operand& operand) const;
    /// The slot of a tensor that has one, by its value's name; null otherwise.
    const simkernel::TensorSlot* slot(ValueId value) const;

    /// State to return to when a lowering throws half-way: tensors, views and descriptors since then are forgotten.
    struct Mark {
        std::size_t tensors = 0, layers = 0, views = 0;
    };
    Mark mark() const { return {program.tensors.size(), program.layers.size(), view_log_.size()}; }
    void rollback(const Mark& mark);
    /// Gives a computed value its place in HBM and returns the view of it.
    const Operand& materialize(NodeId id, ValueId value, std::vector<int> perm);

    /// The view of a value; constants are placed in the constant image when asked for. Throws NodeError if `id` cannot read it.
    Operand operand(NodeId id, ValueId value);
    bool has_view(ValueId value) const { return has_view_[static_cast<std::size_t>(value)]; }
    void set_view(ValueId value, Operand view);
    /// The value has bytes of its own on the device, and is not read out of another tensor.
    bool view_is_tensor(ValueId value) const;
    /// Places a constant element for element (uint8 shifted by -128), once.
    void place_constant(NodeId id, ValueId value);

    std::uint64_t addr_of(const Operand& operand, std::int64_t element = 0) const;
    simkernel::Dtype type_of(const Operand& operand) const;

    /// Adds bytes to the constant image; `slot` says what they are (addr and bytes are filled in).
    simkernel::DeviceAddr add_constant(std::vector<std::byte> bytes, simkernel::ConstantSlot slot);

    /// One layer: emits between begin and end. `nodes` is sorted and made unique; view nodes of the operands are part of it.
    void begin_layer();
    void end_layer(simkernel::Layer layer, NodeId main, std::vector<NodeId> nodes, const std::vector<Operand>& inputs, ValueId output);
    /// The same for several outputs.
    void end_layer(simkernel::Layer layer, NodeId main, std::vector<NodeId> nodes, const std::vector<Operand>& inputs,
                   const std::vector<ValueId>& outputs);

    /// Everything up to topological position `position` has been lowered: the memory of intermediates that nobody reads later may be used
    /// again, unless probes ask for them. Their slots leave the program, since their bytes will not be theirs at the end.
    void release_dead(std::int64_t position);

    /// Scratchpad base for a layer that needs `bytes`: layers alternate between the two ends, so that a small layer's first loads need not
    /// wait for the layer before.
    std::uint32_t scratchpad_base(std::uint64_t bytes) const;

    std::set<NodeId> done;  ///< nodes that run in a layer already emitted

private:
    struct Extent {
        std::uint64_t addr, bytes;
    };
    std::uint64_t allocate(std::uint64_t bytes);  ///< released memory first
    std::uint64_t allocate_fresh(std::uint64_t bytes);
    bool kept(ValueId value) const;
    Operand upload(NodeId id, ValueId value, bool narrow);
    std::uint64_t next_ = 0;  ///< first byte that was never allocated
    std::vector<Operand> views_;
    std::vector<bool> has_view_;
    std::vector<ValueId> view_log_;                               ///< values in the order in which they got views
    std::map<ValueId, std::optional<std::size_t>> host_values_;  ///< in host memory: the step that made it, none for an input
    std::map<ValueId, std::uint64_t> addr_;  ///< device tensors and placed constants
    std::vector<std::int64_t> last_use_;  ///< by value: topological position of its last reader, through views
    std::vector<Extent> free_;            ///< by address
    std::map<ValueId, Extent> releasable_;
};

/// "Conv+Relu+QuantizeLinear": the operators of the nodes without the views.
std::string joined_ops(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace assay::workloads
