// Gather and Scatter families: by constant indices as strided pieces, by indices of the run time as indexed transfers.
#include <fmt/core.h>

#include "workloads/lower/lower.hpp"
#include "workloads/lower/move_plan.hpp"
#include "workloads/passes/index_map.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kLongestList = std::int64_t{1} << 20;

std::int64_t wrapped(NodeId id, std::int64_t index, std::int64_t extent) {
    if (index < -extent || index >= extent)
        throw MalformedNode(id, fmt::format("index {} is out of range for {} elements; repair the model", index, extent));
    return index < 0 ? index + extent : index;
}

/// Indices that are constants and few enough to be planned one by one.
std::vector<std::int64_t> planned_indices(const Lowering& l, NodeId id) {
    const auto indices = constant_integers(l.graph, id, 1);
    if (!indices) throw NodeError(id, "its indices are computed at run time");
    if (static_cast<std::int64_t>(indices->size()) > kLongestList)
        throw NodeError(id, fmt::format("{} constant indices, more than are planned one by one ({})", indices->size(), kLongestList));
    return *indices;
}

/// Element-wise indices along one axis (GatherElements, ScatterElements): by row-major position in `indices`, the offset in `data` that the
/// index names and the offset of the position in `other`.
struct Pairs {
    std::vector<std::int64_t> data, other;
};

Pairs element_pairs(NodeId id, const Shape& shape, const std::vector<std::int64_t>& indices, std::int64_t axis_attribute, const Operand& data,
                    const Operand& other) {
    const auto axis = static_cast<std::size_t>(normal_axis(id, axis_attribute, data.shape.size()));
    if (shape.size() != data.shape.size() || shape != other.shape)
        throw MalformedNode(id, fmt::format("indices {} do not fit {}; repair the model", to_string(shape), to_string(data.shape)));
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (d != axis && shape[d] > data.shape[d])
            throw MalformedNode(id, fmt::format("indices {} exceed {}; repair the model", to_string(shape), to_string(data.shape)));
    Pairs pairs;
    Shape index(shape.size(), 0);
    for (const std::int64_t i : indices) {
        std::int64_t at = 0, place = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            at += (d == axis ? wrapped(id, i, data.shape[d]) : index[d]) * data.strides[d];
            place += index[d] * other.strides[d];
        }
        pairs.data.push_back(at);
        pairs.other.push_back(place);
        next_index(index, shape);
    }
    return pairs;
}

/// Index tuples (GatherND, ScatterND): the same for whole slices; `slice` is the box that each tuple moves, from `other` to `data`.
Pairs tuple_pairs(NodeId id, const Shape& shape, const std::vector<std::int64_t>& indices, std::int64_t batch, const Operand& data,
                  const Operand& other, Piece& slice) {
    const auto depth = static_cast<std::size_t>(shape.back()), lead = shape.size() - 1, batches = static_cast<std::size_t>(batch);
    if (batches + depth > data.shape.size() || lead + data.shape.size() - batches - depth != other.shape.size())
        throw MalformedNode(id, fmt::format("indices {} do not fit {}; repair the model", to_string(shape), to_string(data.shape)));
    const Shape outer(shape.begin(), shape.end() - 1);
    Pairs pairs;
    Shape index(lead, 0);
    for (std::int64_t t = 0, n = element_count(outer); t < n; ++t) {
        std::int64_t at = 0, place = 0;
        for (std::size_t d = 0; d < lead; ++d) place += index[d] * other.strides[d];
        for (std::size_t d = 0; d < batches; ++d) at += index[d] * data.strides[d];
        for (std::size_t d = 0; d < depth; ++d)
            at += wrapped(id, indices[static_cast<std::size_t>(t) * depth + d], data.shape[batches + d]) * data.strides[batches + d];
        pairs.data.push_back(at);
        pairs.other.push_back(place);
        next_index(index, outer);
    }
    for (std::size_t d = batches + depth; d < data.shape.size(); ++d) {
        slice.extents.push_back(data.shape[d]);
        slice.from.push_back(other.strides[lead + d - batches - depth]);
        slice.to.push_back(data.strides[d]);
    }
    return pairs;
}

}  // namespace

void lower_gather_list(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const std::vector<std::int64_t> indices = planned_indices(l, id);
    const Shape& shape = l.graph.value(node.inputs[1]).shape;
    const Operand x = l.operand(id, node.inputs[0]);
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand out = l.materialize(id, tail.output, identity_perm(l.graph.value(tail.output).shape.size()));
    Piece slice;
    const Pairs pairs = node.op == "GatherElements" ? element_pairs(id, shape, indices, node.integer("axis", 0), x, out)
                                                    : tuple_pairs(id, shape, indices, node.integer("batch_dims", 0), x, out, slice);
    std::swap(slice.from, slice.to);  // a gather reads the data
    l.begin_layer();
    JobSequence jobs(l);
    for (const Piece& piece : combine(id, {cut_into_pieces(pairs.data, pairs.other), {slice}}))
        jobs.add(piece_job(l, id, x, tail, out, piece));
    end_move(l, id, tail, {x});
}

void lower_scatter_list(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    if (const std::string reduction = node.text("reduction", "none"); reduction != "none")
        throw NodeError(id, fmt::format("reduction=\"{}\" has no instruction", reduction));
    const std::vector<std::int64_t> indices = planned_indices(l, id);
    const Shape& shape = l.graph.value(node.inputs[1]).shape;
    const Operand x = l.operand(id, node.inputs[0]), updates = l.operand(id, node.inputs[2]);
    if (x.quantization != updates.quantization) throw NodeError(id, "data and updates are quantised differently");
    Epilogue tail;
    tail.output = node.outputs[0];
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    Piece slice;
    const Pairs pairs = node.op == "ScatterND" ? tuple_pairs(id, shape, indices, 0, out, updates, slice)
                                               : element_pairs(id, shape, indices, node.integer("axis", 0), out, updates);
    const auto pieces = combine(id, {cut_into_pieces(pairs.other, pairs.data), {slice}});
    l.begin_layer();
    // All of the data, then the updates over it: both are stores, which one engine keeps in order.
    JobSequence jobs(l);
    jobs.add(move_job(l, id, x, tail, out, 0, out.strides));
    for (const Piece& piece : pieces) jobs.add(piece_job(l, id, updates, tail, out, piece));
    end_move(l, id, tail, {x, updates});
}

void lower_gather(Lowering& l, NodeId id) { lower_mapped(l, id); }

}  // namespace assay::workloads
