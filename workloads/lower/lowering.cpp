#include "workloads/lower/lowering.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "simkernel/exec/decode.hpp"
#include "support/error.hpp"
#include "workloads/lower/cost.hpp"

namespace assay::workloads {
namespace {

constexpr std::uint64_t kHbmAlign =
    256;  // a burst of the narrowest preset that divides the interleave: tensors start on a channel boundary

/// A graph input is laid out for its first reader that cares: channels last when that is a convolution or a pooling.
bool wants_channels_last(const Graph& graph, ValueId value, int depth) {
    static const std::set<std::string> spatial{"Conv",          "QLinearConv",       "MaxPool", "AveragePool", "GlobalAveragePool",
                                               "GlobalMaxPool", "BatchNormalization"};
    static const std::set<std::string> same{
        "QuantizeLinear", "DequantizeLinear", "Identity", "Add", "Sub", "Mul", "Div", "Relu", "Clip", "Pad"};
    for (const NodeId reader : graph.consumers(value)) {
        const Node& node = graph.node(reader);
        if (spatial.contains(node.op)) return true;
        if (depth > 0 && same.contains(node.op) && wants_channels_last(graph, node.outputs[0], depth - 1)) return true;
    }
    return false;
}

/// Operators whose result may be a view of their input.
bool may_be_view(const std::string& op) {
    static const std::set<std::string> views{"Reshape",          "Flatten",        "Squeeze", "Unsqueeze", "Identity", "Dropout", "Transpose",
                                             "DequantizeLinear", "QuantizeLinear", "Slice",   "Split",     "Expand",   "Tile",    "Gather",
                                             "Pad",              "Resize",         "Upsample"};
    return views.contains(op);
}

/// By value: the topological position of the last node that reads it or a view of it.
std::vector<std::int64_t> last_uses(const Graph& graph) {
    const std::vector<NodeId> order = graph.topological_order();
    std::vector<std::int64_t> last(static_cast<std::size_t>(graph.value_count()), -1);
    for (std::size_t i = order.size(); i-- > 0;) {
        const Node& node = graph.node(order[i]);
        std::int64_t at = static_cast<std::int64_t>(i);
        if (may_be_view(node.op))
            for (const ValueId output : node.outputs)
                if (output != kNoValue) at = std::max(at, last[static_cast<std::size_t>(output)]);
        for (const ValueId input : node.inputs)
            if (input != kNoValue) last[static_cast<std::size_t>(input)] = std::max(last[static_cast<std::size_t>(input)], at);
    }
    return last;
}

std::vector<int> identity(std::size_t rank) {
    std::vector<int> perm(rank);
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<int>(i);
    return perm;
}

}  // namespace

bool device_holds(DType type) {
    return type == DType::f32 || type == DType::i8 || type == DType::u8 || type == DType::i32 || type == DType::boolean;
}

simkernel::Dtype device_type(NodeId id, DType type) {
    switch (type) {
        case DType::f32:
            return simkernel::Dtype::f32;
        case DType::i8:
        case DType::u8:
        case DType::boolean:  // 0 or 1
            return simkernel::Dtype::i8;
        case DType::i32:
            return simkernel::Dtype::i32;
        default:
            throw NodeError(
                id, fmt::format("a tensor of type {} at run time is not supported; use float32, int8, uint8 or int32", name_of(type)));
    }
}

Lowering::Lowering(const Graph& g, const CompileOptions& o)
    : graph(g),
      options(o),
      chip(o.chip),
      next_((o.reserved_bytes + kHbmAlign - 1) / kHbmAlign * kHbmAlign),
      views_(static_cast<std::size_t>(g.value_count())),
      has_view_(static_cast<std::size_t>(g.value_count()), false),
      last_use_(o.probes_all ? std::vector<std::int64_t>{} : last_uses(g)) {}

bool Lowering::kept(ValueId value) const {
    const Value& v = graph.value(value);
    return options.probes_all || v.is_input || v.is_output ||
           std::find(options.probes.begin(), options.probes.end(), v.name) != options.probes.end();
}

void Lowering::release_dead(std::int64_t position) {
    for (auto it = releasable_.begin(); it != releasable_.end();) {
        if (last_use_[static_cast<std::size_t>(it->first)] > position) {
            ++it;
            continue;
        }
        // Kept by address and merged with its neighbours, so that a large tensor can take the room of several small ones.
        auto at =
            std::lower_bound(free_.begin(), free_.end(), it->second, [](const Extent& a, const Extent& b) { return a.addr < b.addr; });
        at = free_.insert(at, it->second);
        if (std::next(at) != free_.end() && at->addr + at->bytes == std::next(at)->addr) {
            at->bytes += std::next(at)->bytes;
            free_.erase(std::next(at));
        }
        if (at != free_.begin() && std::prev(at)->addr + std::prev(at)->bytes == at->addr) {
            std::prev(at)->bytes += at->bytes;
            free_.erase(at);
        }
        const std::string& name = graph.value(it->first).name;
        std::erase_if(program.tensors, [&](const simkernel::TensorSlot& slot) { return slot.name == name; });
        it = releasable_.erase(it);
    }
}

std::uint64_t Lowering::allocate(std::uint64_t bytes) {
    const std::uint64_t size = (bytes + kHbmAlign - 1) / kHbmAlign * kHbmAlign;
    for (auto it = free_.begin(); it != free_.end(); ++it)
        if (it->bytes >= size) {
            const std::uint64_t addr = it->addr;
            it->addr += size;
            it->bytes -= size;
            if (it->bytes == 0) free_.erase(it);
            return addr;
        }
    return allocate_fresh(bytes);
}

std::uint64_t Lowering::allocate_fresh(std::uint64_t bytes) {
    const std::uint64_t addr = next_;
    next_ += (bytes + kHbmAlign - 1) / kHbmAlign * kHbmAlign;
    program.hbm_bytes = addr + bytes;
    if (next_ > static_cast<std::uint64_t>(chip.hbm_bytes))
        throw Error(ErrorKind::bad_input,
                    fmt::format("{}: tensors and constants need more than hbm.bytes = {}; use a larger chip or a smaller batch", graph.file,
                                chip.hbm_bytes));
    return addr;
}

void Lowering::place_on_host(ValueId id, std::optional<std::size_t> step) {
    const Value& v = graph.value(id);
    simkernel::TensorSlot slot;
    slot.name = v.name;
    slot.dtype = v.dtype;
    if (!v.dynamic) slot.shape = v.shape;
    slot.on_host = true;
    slot.internal = v.internal;
    slot.role = v.is_input ? simkernel::Role::input : v.is_output ? simkernel::Role::output : simkernel::Role::intermediate;
    if (step) program.host_steps[*step].outputs.push_back(slot);
    program.tensors.push_back(std::move(slot));
    host_values_[id] = step;
}

Operand Lowering::upload(NodeId id, ValueId value, bool narrow) {
    const Value& v = graph.value(value);
    if (v.dynamic) throw NodeError(id, fmt::format("the shape of '{}' is known at run time only", v.name));
    const simkernel::Dtype type = narrow ? simkernel::Dtype::i32 : device_type(id, v.dtype);
    const auto it = std::find_if(program.tensors.begin(), program.tensors.end(), [&](const auto& slot) { return slot.name == v.name; });
    ASSAY_CHECK(it != program.tensors.end() && it->on_host, "a value in host memory has a slot that says so");
    if (element_count(v.shape) == 0) throw NodeError(id, fmt::format("'{}' has no elements", v.name));
    simkernel::TensorSlot& slot = *it;
    slot.on_host = false;
    slot.narrow = narrow;
    slot.offset_128 = v.dtype == DType::u8;
    slot.perm = identity(v.shape.size());
    slot.bytes = static_cast<std::uint64_t>(element_count(v.shape)) * simkernel::size_of(type);
    slot.addr = {allocate_fresh(slot.bytes)};  // written between earlier layers: memory that no tensor had before
    addr_[value] = slot.addr.value;
    if (const auto step = host_values_.at(value))
        for (simkernel::TensorSlot& out : program.host_steps[*step].outputs)
            if (out.name == v.name) out = slot;
    Operand view;
    view.device = value;
    view.shape = v.shape;
    view.strides = row_major_strides(v.shape);
    set_view(value, view);
    return view;
}

Operand Lowering::index_operand(NodeId id, ValueId value) {
    if (has_view(value) || !on_host(value)) return operand(id, value);
    return upload(id, value, graph.value(value).dtype == DType::i64);
}

bool Lowering::holds_indices(const Operand& operand) const {
    const DType type = graph.value(operand.device).dtype;
    return type == DType::i32 || type == DType::i64;  // int64 is on the device only narrowed
}

const simkernel::TensorSlot* Lowering::slot(ValueId value) const {
    const std::string& name = graph.value(value).name;
    for (auto it = program.tensors.rbegin(); it != program.tensors.rend(); ++it)
        if (it->name == name) return &*it;
    return nullptr;
}

void Lowering::rollback(const Mark& mark) {
    emitter.abort_layer();
    // A layer that was finished meanwhile (a view made a tensor) is right by itself and stays, and so do the tensors before it.
    if (program.layers.size() != mark.layers) return;
    for (std::size_t i = mark.views; i < view_log_.size(); ++i) {
        const ValueId value = view_log_[i];
        if (on_host(value) || graph.is_constant(value)) continue;
        has_view_[static_cast<std::size_t>(value)] = false;
        releasable_.erase(value);
        addr_.erase(value);
    }
    std::erase_if(view_log_, [&](ValueId value) { return !has_view(value); });
    program.tensors.resize(mark.tensors);
}

void Lowering::place_input(ValueId id) {
    const Value& v = graph.value(id);
    if (v.dynamic || element_count(v.shape) == 0 || !device_holds(v.dtype)) return place_on_host(id, std::nullopt);
    const std::size_t rank = graph.value(id).shape.size();
    std::vector<int> perm = identity(rank);
    if (const auto placed = options.placements.find(v.name); placed != options.placements.end() && placed->second.perm.size() == rank)
        perm = placed->second.perm;
    else if ((rank == 3 || rank == 4) && wants_channels_last(graph, id, 6)) std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
    materialize(-1, id, perm);
    program.tensors.back().role = simkernel::Role::input;
}

const Operand& Lowering::materialize(NodeId id, ValueId value, std::vector<int> perm) {
    const Value& v = graph.value(value);
    const simkernel::Dtype type = device_type(id, v.dtype);
    simkernel::TensorSlot slot;
    slot.name = v.name;
    slot.dtype = v.dtype;
    slot.shape = v.shape;
    slot.perm = std::move(perm);
    slot.offset_128 = v.dtype == DType::u8;
    slot.internal = v.internal;
    slot.bytes = static_cast<std::uint64_t>(element_count(v.shape)) * simkernel::size_of(type);
    const auto placed = options.placements.find(v.name);
    slot.addr = {placed == options.placements.end() ? allocate(slot.bytes) : placed->second.addr};
    slot.role = v.is_output ? simkernel::Role::output : simkernel::Role::intermediate;
    addr_[value] = slot.addr.value;
    Operand view;
    view.device = value;
    view.shape = v.shape;
    view.strides.assign(v.shape.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = slot.perm.size(); i-- > 0;) {
        const auto dim = static_cast<std::size_t>(slot.perm[i]);
        view.strides[dim] = stride;
        stride *= v.shape[dim];
    }
    if (!kept(value)) releasable_[value] = {slot.addr.value, (slot.bytes + kHbmAlign - 1) / kHbmAlign * kHbmAlign};
    program.tensors.push_back(std::move(slot));
    set_view(value, std::move(view));
    return views_[static_cast<std::size_t>(value)];
}

void Lowering::set_view(ValueId value, Operand view) {
    views_[static_cast<std::size_t>(value)] = std::move(view);
    if (!has_view(value)) view_log_.push_back(value);
    has_view_[static_cast<std::size_t>(value)] = true;
}

bool Lowering::view_is_tensor(ValueId value) const {
    const Operand& view = views_[static_cast<std::size_t>(value)];
    return view.device == value && view.path.empty() && !view.constant;
}

Operand Lowering::operand(NodeId id, ValueId value) {
    if (has_view(value)) return views_[static_cast<std::size_t>(value)];
    const Value& v = graph.value(value);
    if (on_host(value)) return upload(id, value, false);
    if (!v.constant)
        throw NodeError(id, fmt::format("input '{}' was not computed, because the node that makes it is not supported", v.name));
    (void)device_type(id, v.dtype);
    Operand view;
    view.device = value;
    view.constant = true;
    view.shape = v.shape;
    view.strides = row_major_strides(v.shape);
    set_view(value, view);
    return view;
}

void Lowering::place_constant(NodeId id, ValueId value) {
    if (addr_.contains(value)) return;
    const Value& v = graph.value(value);
    std::vector<std::byte> bytes = v.constant->bytes;
    if (v.dtype == DType::u8)
        for (std::byte& b : bytes) b ^= std::byte{0x80};  // value - 128 in two's complement
    if (v.dtype == DType::f32) {
        const std::span<const float> values = std::as_const(*v.constant).as<float>();
        const auto nan = std::find_if(values.begin(), values.end(), [](float x) { return std::isnan(x); });
        if (nan != values.end()) throw MalformedNode(id, fmt::format("constant '{}' holds NaN at element {}; repair the model", v.name, nan - values.begin()));
    }
    simkernel::ConstantSlot slot;
    slot.name = v.origin.empty() ? v.name : v.origin;
    slot.dtype = device_type(id, v.dtype);
    if (!v.origin.empty()) slot.elements = simkernel::ElementMap::dense(v.constant->count(), static_cast<std::int64_t>(simkernel::size_of(slot.dtype)));
    addr_[value] = add_constant(std::move(bytes), std::move(slot)).value;
}

std::uint64_t Lowering::addr_of(const Operand& operand, std::int64_t element) const {
    const auto it = addr_.find(operand.device);
    ASSAY_CHECK(it != addr_.end(), "an operand must have a place in HBM before it is addressed");
    return it->second + static_cast<std::uint64_t>(operand.offset + element) * simkernel::size_of(type_of(operand));
}

simkernel::Dtype Lowering::type_of(const Operand& operand) const { return device_type(-1, graph.value(operand.device).dtype); }

simkernel::DeviceAddr Lowering::add_constant(std::vector<std::byte> bytes, simkernel::ConstantSlot slot) {
    slot.addr = {allocate_fresh(bytes.size())};  // written before the job starts: never memory that a tensor had
    slot.bytes = bytes.size();
    program.constants.push_back({slot.addr, std::move(bytes)});
    program.constant_slots.push_back(slot);
    return slot.addr;
}

void Lowering::begin_layer() { emitter.begin_layer(static_cast<std::uint32_t>(program.layers.size())); }

void Lowering::end_layer(simkernel::Layer layer, NodeId main, std::vector<NodeId> nodes, const std::vector<Operand>& inputs,
                         ValueId output) {
    end_layer(std::move(layer), main, std::move(nodes), inputs, std::vector<ValueId>{output});
}

void Lowering::end_layer(simkernel::Layer layer, NodeId main, std::vector<NodeId> nodes, const std::vector<Operand>& inputs,
                         const std::vector<ValueId>& outputs) {
    layer.first_descriptor = emitter.size();
    layer.descriptor_count = emitter.end_layer();
    layer.name = graph.node(main).name;
    layer.op = joined_ops(graph, nodes);
    for (const ValueId output : outputs) layer.outputs.push_back(graph.value(output).name);
    for (const NodeId node : nodes) {
        done.insert(node);
        layer.operations += operations_of(graph, node);
    }
    for (const Operand& input : inputs) {
        nodes.insert(nodes.end(), input.path.begin(), input.path.end());
        const std::string& name = graph.value(input.device).name;
        if (!input.constant && std::find(layer.inputs.begin(), layer.inputs.end(), name) == layer.inputs.end())
            layer.inputs.push_back(name);
    }
    for (const NodeId node : nodes) layer.nodes.push_back(graph.node(node).index);
    std::sort(layer.nodes.begin(), layer.nodes.end());
    layer.nodes.erase(std::unique(layer.nodes.begin(), layer.nodes.end()), layer.nodes.end());
    program.layers.push_back(std::move(layer));
}

std::uint32_t Lowering::scratchpad_base(std::uint64_t bytes) const {
    const auto total = static_cast<std::uint64_t>(chip.spm_bytes);
    ASSAY_CHECK(bytes <= total, "a layer's plan must fit the scratchpad");
    return program.layers.size() % 2 == 0 ? 0 : static_cast<std::uint32_t>((total - bytes) / 64 * 64);
}

std::string joined_ops(const Graph& graph, const std::vector<NodeId>& nodes) {
    std::string text;
    for (const NodeId node : nodes) text += (text.empty() ? "" : "+") + graph.node(node).op;
    return text;
}

}  // namespace assay::workloads
