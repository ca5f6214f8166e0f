#include "workloads/lower/host.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/host/evaluate.hpp"
#include "workloads/lower/cost.hpp"

namespace assay::workloads {
namespace {

/// The model of one step, grown backwards from what the node reads to tensors that somebody holds.
class StepBuilder {
public:
    StepBuilder(Lowering& lowering, NodeId main) : l_(lowering), main_(main) {
        model_.set_ir_version(10);
        auto* set = model_.add_opset_import();
        set->set_version(lowering.graph.opset);
        model_.mutable_graph()->set_name("host_step");
    }

    void add_node(NodeId id) {
        if (!added_.insert(id).second) return;
        const Node& node = l_.graph.node(id);
        for (const ValueId input : node.inputs)
            if (input != kNoValue) need(input);
        for (const ValueId capture : node.captures) need(capture);
        ASSAY_CHECK(node.proto != nullptr, "every node carries its protobuf");
        *model_.mutable_graph()->add_node() = *node.proto;
        nodes.push_back(id);
    }

    void add_constant(const Tensor& tensor, const std::string& name) {
        *model_.mutable_graph()->add_initializer() = proto_from_tensor(tensor, name + "#constant");
        auto* node = model_.mutable_graph()->add_node();
        node->set_op_type("Identity");
        node->add_input(name + "#constant");
        node->add_output(name);
    }

    void add_output(const std::string& name) { model_.mutable_graph()->add_output()->set_name(name); }
    std::string bytes() const { return model_.SerializeAsString(); }

    std::vector<simkernel::TensorSlot> inputs;
    std::vector<NodeId> nodes;

private:
    void need(ValueId value) {
        if (!seen_.insert(value).second) return;
        const Graph& g = l_.graph;
        const Value& v = g.value(value);
        if (v.constant) {
            *model_.mutable_graph()->add_initializer() = proto_from_tensor(*v.constant, v.name);
            return;
        }
        const bool tensor = l_.on_host(value) || (l_.has_view(value) && l_.view_is_tensor(value));
        if (!tensor) {
            const NodeId producer = v.producer;
            if (producer < 0 || !l_.has_view(value))
                throw NodeError(main_, fmt::format("input '{}' was not computed, because the node that makes it is not supported", v.name));
            return add_node(producer);  // a view: the host computes it from what the device holds
        }
        const simkernel::TensorSlot* slot = l_.slot(value);
        ASSAY_CHECK(slot != nullptr, "a tensor that is held has a slot");
        simkernel::TensorSlot mine = *slot;
        if (l_.on_host(value)) mine.on_host = true;
        model_.mutable_graph()->add_input()->set_name(v.name);
        inputs.push_back(std::move(mine));
    }

    Lowering& l_;
    NodeId main_;
    onnx::ModelProto model_;
    std::set<NodeId> added_;
    std::set<ValueId> seen_;
};

void record(Lowering& l, StepBuilder& builder, simkernel::Layer layer, const std::vector<ValueId>& outputs, const std::string& reason) {
    simkernel::HostStep step;
    step.layer = static_cast<std::uint32_t>(l.program.layers.size());
    step.before = l.emitter.size();
    step.reason = reason;
    for (const ValueId output : outputs) {
        builder.add_output(l.graph.value(output).name);
        layer.outputs.push_back(l.graph.value(output).name);
    }
    step.model = builder.bytes();
    for (const simkernel::TensorSlot& input : builder.inputs) layer.inputs.push_back(input.name);
    step.inputs = std::move(builder.inputs);
    layer.precision = "host";
    layer.mapping = "on the host: " + reason;
    layer.first_descriptor = l.emitter.size();
    l.program.host_steps.push_back(std::move(step));
    for (const ValueId output : outputs) l.place_on_host(output, l.program.host_steps.size() - 1);
    l.program.layers.push_back(std::move(layer));
}

}  // namespace

void lower_to_host(Lowering& l, NodeId id, const std::string& reason) {
    const Node& node = l.graph.node(id);
    if (!node.domain.empty() || !hostops::supports(node.op, l.graph.opset)) {
        const std::string why = node.domain.empty() ? hostops::unsupported_reason(node.op) : fmt::format("domain '{}' is not known", node.domain);
        throw NodeError(id, why.empty() ? reason : fmt::format("{}; the host cannot run it either: {}", reason, why));
    }
    StepBuilder builder(l, id);
    builder.add_node(id);
    simkernel::Layer layer;
    layer.name = node.name;
    layer.op = joined_ops(l.graph, builder.nodes);
    layer.macs = macs_of(l.graph, id);
    for (const NodeId n : builder.nodes) {
        layer.nodes.push_back(l.graph.node(n).index);
        layer.operations += operations_of(l.graph, n);
    }
    std::sort(layer.nodes.begin(), layer.nodes.end());
    layer.nodes.erase(std::unique(layer.nodes.begin(), layer.nodes.end()), layer.nodes.end());
    std::vector<ValueId> outputs;
    for (const ValueId output : node.outputs)
        if (output != kNoValue) outputs.push_back(output);
    record(l, builder, std::move(layer), outputs, reason);
    l.done.insert(id);
}

void lower_host_output(Lowering& l, ValueId value) {
    const Value& v = l.graph.value(value);
    if (!v.constant) return;  // an input of the model, which has its slot
    StepBuilder builder(l, v.producer);
    builder.add_constant(*v.constant, v.name);
    simkernel::Layer layer;
    layer.name = v.name;
    layer.op = v.producer >= 0 ? l.graph.node(v.producer).op : "Constant";
    if (v.producer >= 0) layer.nodes = {l.graph.node(v.producer).index};
    record(l, builder, std::move(layer), {value}, "does not depend on the inputs");
}

}  // namespace assay::workloads
