// Movement in blocks: DepthToSpace, SpaceToDepth, ReverseSequence, and Trilu.
#include <fmt/core.h>

#include "workloads/lower/lower.hpp"
#include "workloads/lower/move_plan.hpp"
#include "workloads/passes/index_map.hpp"
#include "workloads/passes/passes.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kLongestList = std::int64_t{1} << 22;

}  // namespace

/// DepthToSpace-1…13 (mode DCR: channel = (row * b + column) * C + c; CRD: (c * b + row) * b + column) and SpaceToDepth-1…13 (DCR).
void lower_block(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Operand x = l.operand(id, node.inputs[0]);
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    const std::int64_t b = node.integer("blocksize", 1);
    const bool to_space = node.op == "DepthToSpace";
    const Operand &space = to_space ? out : x, &depth = to_space ? x : out;
    const std::int64_t channels = space.shape[1];
    const bool crd = to_space && node.text("mode", "DCR") == "CRD";
    const std::int64_t c = depth.strides[1];
    // Dimensions: image, channel, row of blocks, row in the block, column of blocks, column in the block.
    const std::vector<std::int64_t> in_space{space.strides[0],     space.strides[1],     space.strides[2] * b,
                                             space.strides[2],     space.strides[3] * b, space.strides[3]};
    const std::vector<std::int64_t> in_depth{depth.strides[0],
                                             crd ? c * b * b : c,
                                             depth.strides[2],
                                             crd ? c * b : c * b * channels,
                                             depth.strides[3],
                                             crd ? c : c * channels};
    const Shape extents{space.shape[0], channels, depth.shape[2], b, depth.shape[3], b};
    l.begin_layer();
    emit_job(l, piece_job(l, id, x, tail, out, {extents, to_space ? in_depth : in_space, to_space ? in_space : in_depth, 0, 0}));
    end_move(l, id, tail, {x});
}

/// ReverseSequence-10 with constant lengths: the first sequence_lens[b] steps of each batch entry backwards, the rest as they are.
void lower_reverse_sequence(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const auto lengths = constant_integers(l.graph, id, 1);
    if (!lengths) throw NodeError(id, "sequence_lens is computed at run time");
    const Operand x = l.operand(id, node.inputs[0]);
    const auto time = static_cast<std::size_t>(normal_axis(id, node.integer("time_axis", 0), x.shape.size()));
    const auto batch = static_cast<std::size_t>(normal_axis(id, node.integer("batch_axis", 1), x.shape.size()));
    if (time == batch || static_cast<std::int64_t>(lengths->size()) != x.shape[batch])
        throw MalformedNode(id, fmt::format("{} lengths along axis {} of {}; repair the model", lengths->size(), batch, to_string(x.shape)));
    const std::int64_t steps = x.shape[time];
    if (x.shape[batch] > kLongestList / steps) throw NodeError(id, "the sequences are too long to be planned step by step");
    const Epilogue tail = follow(l, node.outputs[0]);
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    std::vector<std::int64_t> from, to;
    for (std::int64_t b = 0; b < x.shape[batch]; ++b) {
        const std::int64_t length = (*lengths)[static_cast<std::size_t>(b)];
        if (length < 0 || length > steps) throw MalformedNode(id, fmt::format("a length of {} in {} steps; repair the model", length, steps));
        for (std::int64_t t = 0; t < steps; ++t) {
            from.push_back(b * x.strides[batch] + (t < length ? length - 1 - t : t) * x.strides[time]);
            to.push_back(b * out.strides[batch] + t * out.strides[time]);
        }
    }
    Piece rest;
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
        if (d == time || d == batch) continue;
        rest.extents.push_back(x.shape[d]);
        rest.from.push_back(x.strides[d]);
        rest.to.push_back(out.strides[d]);
    }
    l.begin_layer();
    JobSequence jobs(l);
    for (const Piece& piece : combine(id, {cut_into_pieces(from, to), {rest}})) jobs.add(piece_job(l, id, x, tail, out, piece));
    end_move(l, id, tail, {x});
}

/// Trilu-14 with a constant k: the elements on one side of a diagonal, zero elsewhere. Chosen by a mask in the vector unit, as raw words:
/// no value is rounded or made canonical.
void lower_trilu(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const auto k_input = constant_integers(l.graph, id, 1);
    if (!k_input) throw NodeError(id, "k is computed at run time");
    const Operand x = l.operand(id, node.inputs[0]);
    if (x.shape.size() < 2) throw MalformedNode(id, fmt::format("the input is {}, needs a matrix; repair the model", to_string(x.shape)));
    if (x.constant) l.place_constant(id, x.device);
    const std::int64_t k = k_input->empty() ? 0 : std::clamp<std::int64_t>(k_input->front(), -(std::int64_t{1} << 40), std::int64_t{1} << 40);
    const bool upper = node.integer("upper", 1) != 0;
    const std::int64_t rows = x.shape[x.shape.size() - 2], cols = x.shape.back();
    std::vector<std::byte> mask;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) mask.push_back(static_cast<std::byte>(upper ? c >= r + k : c <= r + k));
    simkernel::ConstantSlot slot;
    slot.name = node.name + "#mask";
    slot.dtype = simkernel::Dtype::i8;
    const std::uint64_t mask_addr = l.add_constant(std::move(mask), slot).value;

    Epilogue tail;
    tail.output = node.outputs[0];
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    const auto raw = [](simkernel::Dtype type) { return type == simkernel::Dtype::f32 ? simkernel::Dtype::i32 : type; };
    std::vector<std::int64_t> mask_strides(x.shape.size(), 0);
    mask_strides[x.shape.size() - 2] = rows == 1 ? 0 : cols;
    mask_strides.back() = cols == 1 ? 0 : 1;
    const Ordered order = memory_order(out.shape, out.strides);
    VectorJob job;
    job.extents = order.extents;
    job.inputs.push_back({mask_addr, simkernel::Dtype::i8, pick(mask_strides, order.dims)});
    job.inputs.push_back({l.addr_of(x), x.quantization ? l.type_of(x) : raw(l.type_of(x)), pick(x.strides, order.dims)});
    job.output = {l.addr_of(out), raw(l.type_of(out)), pick(out.strides, order.dims)};
    Expr::Ref value = Expr::stream(1);
    if (x.quantization) {
        value = emit_dequantize(job.expr, value, *x.quantization);
        job.output.type = l.type_of(out);
    }
    const bool shifted = l.graph.value(out.device).dtype == DType::u8;
    job.expr.result = job.expr.op(simkernel::Uop::select, Expr::stream(0), value, Expr::imm_i(shifted ? -128 : 0));
    l.begin_layer();
    emit_job(l, std::move(job));
    end_move(l, id, tail, {x});
}

}  // namespace assay::workloads
