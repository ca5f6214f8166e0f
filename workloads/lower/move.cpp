// Layers that move data: Reshape and the like when no view does, Concat, index maps (Pad, Tile, nearest Resize, …), and graph outputs that
// are views.
#include <fmt/core.h>

#include <algorithm>

#include "workloads/lower/lower.hpp"
#include "workloads/lower/move_plan.hpp"
#include "workloads/passes/index_map.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

void concat(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Epilogue tail = follow(l, node.outputs[0]);
    std::vector<Operand> operands;
    std::optional<std::vector<int>> perm;
    for (const ValueId source : node.inputs) {
        operands.push_back(l.operand(id, source));
        if (!perm && !operands.back().constant) perm = perm_like(operands.back());
    }
    const Operand out = l.materialize(id, tail.output, perm.value_or(identity_perm(operands[0].shape.size())));
    const auto axis = static_cast<std::size_t>(normal_axis(id, node.integer("axis", 0), out.shape.size()));
    l.begin_layer();
    std::int64_t at = 0;
    JobSequence jobs(l);
    for (const Operand& operand : operands) {
        jobs.add(move_job(l, id, operand, tail, out, at * out.strides[axis], out.strides));
        at += operand.shape[axis];
    }
    end_move(l, id, tail, operands);
}

/// The value that stands where an index map reads nothing.
double fill_value(const Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    if (node.op == "Resize") return static_cast<double>(node.real("extrapolation_value", 0.0f));
    if (const ValueId v = node.input(2); v != kNoValue) {
        if (!l.graph.is_constant(v))
            throw NodeError(id, "the padding value is computed at run time, which is not supported; make it a constant");
        const Tensor& t = *l.graph.value(v).constant;
        return t.count() == 0 ? 0.0 : t.value(0);
    }
    return static_cast<double>(node.real("value", 0.0f));
}

/// Positions in the result, in elements from its start, of a map's indices.
std::vector<std::int64_t> places(const Shape& extents, const std::int64_t* strides) {
    std::vector<std::int64_t> to;
    Shape index(extents.size(), 0);
    for (std::int64_t i = 0, n = element_count(extents); i < n; ++i) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < extents.size(); ++d) at += index[d] * strides[d];
        to.push_back(at);
        next_index(index, extents);
    }
    return to;
}

struct MappedMove {
    Lowering& l;
    NodeId id;
    const std::vector<IndexMap>& maps;
    const Operand& x;
    const Operand& out;
    const Epilogue& tail;

    /// What a map moves, as pieces of element offsets.
    std::vector<Piece> pieces_of(const IndexMap& map, const std::int64_t* out_strides) const {
        const std::int64_t stride = map.source ? x.strides[*map.source] : 0;
        if (const auto strides = affine_strides(map)) {
            Piece piece{map.extents, {}, {out_strides, out_strides + map.extents.size()}, map.at(0) * stride, 0};
            for (const std::int64_t s : *strides) piece.from.push_back(s * stride);
            return {piece};
        }
        std::vector<std::int64_t> from, to;
        const auto where = places(map.extents, out_strides);
        for (std::int64_t i = 0; i < map.count(); ++i)
            if (map.at(i) != kFill) {
                from.push_back(map.at(i) * stride);
                to.push_back(where[static_cast<std::size_t>(i)]);
            }
        return cut_into_pieces(from, to);
    }

    /// Boxes of nothing but padding: for each map with gaps, the gap, by the other maps' full extent (those before without their own gaps).
    std::int64_t fill(std::int64_t step) const {
        Shape extents = out.shape;
        std::int64_t offset = 0;
        for (std::size_t m = 0; m < maps.size(); ++m) {
            const IndexMap& map = maps[m];
            if (std::find(map.list.begin(), map.list.end(), kFill) == map.list.end()) continue;
            const std::uint32_t pattern = element_bits(l, out, tail, fill_value(l, id));
            const auto gaps = [&](std::int64_t first, std::int64_t last) {
                if (first >= last) return;
                Shape box = extents;
                box[m] = last - first;
                step = emit_fill_box(l, out, offset + first * out.strides[m], box, out.strides, pattern, step);
            };
            const auto n = static_cast<std::int64_t>(map.list.size());
            std::int64_t begin = 0, end = n;
            while (begin < n && map.list[static_cast<std::size_t>(begin)] == kFill) ++begin;
            while (end > begin && map.list[static_cast<std::size_t>(end - 1)] == kFill) --end;
            gaps(0, begin);
            gaps(end, n);
            extents[m] = end - begin;
            offset += begin * out.strides[m];
            if (end == begin) return step;  // nothing but padding: all of it is written
        }
        return step;
    }

    void run() const {
        std::vector<std::vector<Piece>> parts;
        std::size_t at = 0;
        for (const IndexMap& map : maps) {
            parts.push_back(pieces_of(map, out.strides.data() + at));
            at += map.extents.size();
        }
        const auto pieces = combine(id, parts);
        JobSequence jobs(l, fill(0));
        for (const Piece& piece : pieces) jobs.add(piece_job(l, id, x, tail, out, piece));
    }
};

}  // namespace

std::vector<int> perm_of_maps(const std::vector<IndexMap>& maps, const Operand& x) {
    std::vector<std::vector<int>> dims(maps.size());
    int at = 0;
    for (std::size_t m = 0; m < maps.size(); ++m)
        for (std::size_t d = 0; d < maps[m].extents.size(); ++d) dims[m].push_back(at++);
    std::vector<int> perm;
    for (std::size_t m = 0; m < maps.size(); ++m)
        if (!maps[m].source) perm.insert(perm.end(), dims[m].begin(), dims[m].end());
    for (const std::size_t d : memory_order(x.shape, x.strides).dims)
        for (std::size_t m = 0; m < maps.size(); ++m)
            if (maps[m].source == d) perm.insert(perm.end(), dims[m].begin(), dims[m].end());
    return perm;
}

void lower_mapped(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (node.outputs[o] == kNoValue) continue;
        const auto maps = index_maps(l.graph, id, o);
        if (!maps) {
            if (node.op == "Resize" || node.op == "Upsample") return lower_interpolation(l, id);
            throw NodeError(id, "its parameters are computed at run time");
        }
        const bool gaps = std::any_of(maps->begin(), maps->end(), [](const IndexMap& map) {
            return std::find(map.list.begin(), map.list.end(), kFill) != map.list.end();
        });
        // What follows is computed for the data alone: padding is written as it will be.
        Epilogue tail = follow(l, node.outputs[o]);
        if (gaps && !tail.activations.empty()) {
            tail = {};
            tail.output = node.outputs[o];
        }
        const Operand x = l.operand(id, node.inputs[0]);
        const Operand out = l.materialize(id, tail.output, perm_of_maps(*maps, x));
        l.begin_layer();
        MappedMove{l, id, *maps, x, out, tail}.run();
        end_move(l, id, tail, {x});
    }
}

void lower_move(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    if (node.op == "Concat") return concat(l, id);
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand operand = l.operand(id, node.inputs[0]);
    const Operand out = l.materialize(id, tail.output, identity_perm(l.graph.value(tail.output).shape.size()));
    l.begin_layer();
    emit_job(l, move_job(l, id, operand, tail, out, 0, row_major_strides(operand.shape)));
    end_move(l, id, tail, {operand});
}

void lower_output_view(Lowering& l, ValueId value) {
    const NodeId id = l.graph.value(value).producer;
    Operand operand = l.operand(id, value);
    const NodeId main = operand.path.empty() ? id : operand.path.back();
    if (main < 0)
        throw NodeError(-1,
                        fmt::format("output '{}' is an input or a constant; a model must compute its outputs", l.graph.value(value).name));
    Epilogue tail;
    tail.output = value;
    const Operand out = l.materialize(main, value, perm_like(operand));
    l.begin_layer();
    emit_job(l, move_job(l, main, operand, tail, out, 0, out.strides));
    end_move(l, main, tail, {operand});
}

}  // namespace assay::workloads
