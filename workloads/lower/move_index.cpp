// Gather and Scatter families: by constant indices as strided pieces, by indices of the run time as indexed transfers.
#include <fmt/core.h>

#include <numeric>

#include "workloads/lower/indexed_rows.hpp"
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

/// Few enough that a load and a store for each beat an indexed transfer, which reads a list first.
bool few_pieces(const std::vector<std::int64_t>& list) {
    if (list.size() <= 8) return true;
    if (static_cast<std::int64_t>(list.size()) > kLongestList) return false;
    std::vector<std::int64_t> to(list.size());
    std::iota(to.begin(), to.end(), 0);
    return cut_into_pieces(list, to).size() <= 8;
}

struct IndexList {
    std::uint64_t addr = 0;
    std::int64_t stride = 1;
    std::optional<Operand> operand;  ///< none for constants
};

/// The indices (input 1) as a list of int32 in HBM. `limit`: how many there are to choose from, checked here for constants.
IndexList index_list(Lowering& l, NodeId id, const std::optional<std::vector<std::int64_t>>& constants, std::int64_t limit) {
    if (constants) {
        std::vector<std::byte> bytes;
        for (const std::int64_t i : *constants) {
            const auto word = static_cast<std::int32_t>(wrapped(id, i, limit));
            const auto* first = reinterpret_cast<const std::byte*>(&word);
            bytes.insert(bytes.end(), first, first + 4);
        }
        simkernel::ConstantSlot slot;
        slot.name = l.graph.node(id).name + "#rows";
        slot.dtype = simkernel::Dtype::i32;
        return {l.add_constant(std::move(bytes), slot).value, 1, std::nullopt};
    }
    const Operand indices = l.index_operand(id, l.graph.node(id).inputs[1]);
    if (!l.holds_indices(indices)) throw NodeError(id, "its indices are no integers of 32 bits on the chip");
    const std::int64_t n = element_count(indices.shape);
    const auto flat = reshape_strides(indices.shape, indices.strides, {n});
    if (!flat) throw NodeError(id, "its indices lie in an order that one list does not follow");
    return {l.addr_of(indices), (*flat)[0], indices};
}

/// GatherElements and ScatterElements by indices of the run time: along the axis, for every position of the other dimensions, a list of its
/// own. `dense` has the shape of the indices.
void elements_by_lists(Lowering& l, NodeId id, const Operand& table, const Operand& dense, const Expr& expr, bool scatter, std::int64_t step,
                       Operand& indices) {
    constexpr std::int64_t kMostLists = 512;
    const Node& node = l.graph.node(id);
    const auto axis = static_cast<std::size_t>(normal_axis(id, node.integer("axis", 0), table.shape.size()));
    indices = l.index_operand(id, node.inputs[1]);
    if (!l.holds_indices(indices)) throw NodeError(id, "its indices are no integers of 32 bits on the chip");
    Shape others = dense.shape;
    others[axis] = 1;
    if (element_count(others) > kMostLists) throw NodeError(id, fmt::format("more than {} index lists", kMostLists));
    IndexedRows rows;
    rows.scatter = scatter;
    rows.rows = dense.shape[axis];
    rows.limit = table.shape[axis];
    rows.list_stride = indices.strides[axis];
    rows.table_type = l.type_of(table);
    rows.dense_type = l.type_of(dense);
    rows.table_row = table.strides[axis];
    rows.dense_row = dense.strides[axis];
    rows.expr = expr;
    Shape at(others.size(), 0);
    do {
        const auto offset = [&](const Operand& operand) {
            std::int64_t sum = 0;
            for (std::size_t d = 0; d < at.size(); ++d) sum += at[d] * operand.strides[d];
            return l.addr_of(operand, sum);
        };
        rows.list = offset(indices);
        rows.table = offset(table);
        rows.dense = offset(dense);
        step = emit_indexed_rows(l, id, rows, step);
    } while (next_index(at, others));
}

void gather_elements_at_run_time(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Operand x = l.operand(id, node.inputs[0]);
    if (x.constant) l.place_constant(id, x.device);
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand out = l.materialize(id, tail.output, identity_perm(l.graph.value(tail.output).shape.size()));
    Operand indices;
    l.begin_layer();
    elements_by_lists(l, id, x, out, passthrough(x, tail), false, 0, indices);
    end_move(l, id, tail, {x, indices});
}

/// ScatterElements, and ScatterND by rows of the first dimension: a copy of the data, then the updates over it by indexed stores.
void scatter_at_run_time(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Operand x = l.operand(id, node.inputs[0]), updates = l.operand(id, node.inputs[2]);
    if (x.quantization != updates.quantization) throw NodeError(id, "data and updates are quantised differently");
    if (x.quantization) throw NodeError(id, "scattering into quantised data by indices of the run time has no instruction");
    for (const Operand* operand : {&x, &updates})
        if (operand->constant) l.place_constant(id, operand->device);
    const Shape& shape = l.graph.value(node.inputs[1]).shape;
    Epilogue tail;
    tail.output = node.outputs[0];
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    Operand indices;
    l.begin_layer();
    const std::int64_t step = emit_job(l, move_job(l, id, x, tail, out, 0, out.strides));
    if (node.op != "ScatterND") {
        elements_by_lists(l, id, out, updates, {}, true, step, indices);
    } else {
        if (shape.back() != 1) throw NodeError(id, "index tuples computed at run time have no instruction");
        auto list = index_list(l, id, std::nullopt, out.shape[0]);
        indices = *list.operand;
        const std::size_t lead = shape.size() - 1;
        const auto rows_stride = reshape_strides({updates.shape.begin(), updates.shape.begin() + static_cast<std::ptrdiff_t>(lead)},
                                                 {updates.strides.begin(), updates.strides.begin() + static_cast<std::ptrdiff_t>(lead)},
                                                 {element_count(shape)});
        if (!rows_stride) throw NodeError(id, "its updates lie in an order that one list does not follow");
        IndexedRows rows;
        rows.scatter = true;
        rows.list = list.addr;
        rows.list_stride = list.stride;
        rows.rows = element_count(shape);
        rows.limit = out.shape[0];
        rows.table = l.addr_of(out);
        rows.dense = l.addr_of(updates);
        rows.table_type = rows.dense_type = l.type_of(out);
        rows.table_row = out.strides[0];
        rows.dense_row = (*rows_stride)[0];
        for (std::size_t d = 1; d < out.shape.size(); ++d) rows.box.push_back({out.shape[d], out.strides[d], updates.strides[lead + d - 1]});
        emit_indexed_rows(l, id, rows, step);
    }
    end_move(l, id, tail, {x, updates, indices});
}

}  // namespace

void lower_gather_list(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    if (node.op == "GatherElements" && !l.graph.is_constant(node.input(1))) return gather_elements_at_run_time(l, id);
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
    if (!l.graph.is_constant(node.input(1))) return scatter_at_run_time(l, id);
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

void lower_gather(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const auto constants = constant_integers(l.graph, id, 1);
    if (constants && few_pieces(*constants)) return lower_mapped(l, id);
    const Operand x = l.operand(id, node.inputs[0]);
    if (x.constant) l.place_constant(id, x.device);
    const auto axis = static_cast<std::size_t>(normal_axis(id, node.integer("axis", 0), x.shape.size()));
    const Shape& shape = l.graph.value(node.inputs[1]).shape;
    const auto [list, list_stride, operand] = index_list(l, id, constants, x.shape[axis]);

    std::vector<IndexMap> maps;
    for (std::size_t d = 0; d < x.shape.size(); ++d) maps.push_back({d, d == axis ? shape : Shape{x.shape[d]}, 0, 1, {}});
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand out = l.materialize(id, tail.output, perm_of_maps(maps, x));
    IndexedRows rows;
    rows.list = list;
    rows.list_stride = list_stride;
    rows.rows = element_count(shape);
    rows.limit = x.shape[axis];
    rows.table = l.addr_of(x);
    rows.dense = l.addr_of(out);
    rows.table_type = l.type_of(x);
    rows.dense_type = l.type_of(out);
    rows.table_row = x.strides[axis];
    rows.dense_row = shape.empty() ? 0 : out.strides[axis + shape.size() - 1];
    for (std::size_t d = 0; d < x.shape.size(); ++d)
        if (d != axis) rows.box.push_back({x.shape[d], x.strides[d], out.strides[d < axis ? d : d + shape.size() - 1]});
    rows.expr = passthrough(x, tail);
    l.begin_layer();
    emit_indexed_rows(l, id, rows);
    std::vector<Operand> inputs{x};
    if (operand) inputs.push_back(*operand);
    end_move(l, id, tail, inputs);
}

}  // namespace assay::workloads
