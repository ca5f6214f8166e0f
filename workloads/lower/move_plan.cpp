#include "workloads/lower/move_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "simkernel/exec/decode.hpp"
#include "workloads/passes/index_map.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

constexpr std::size_t kLongestPeriod = 16;  // interleaved progressions: a resize by p/q has period p
constexpr std::size_t kMostPieces = 4096;   // each takes a load and a store at least: past that the host is faster

using List = std::span<const std::int64_t>;

/// Length of the longest prefix that goes in equal steps.
std::size_t progression(List from, List to) {
    if (from.size() <= 2) return from.size();
    std::size_t n = 2;
    while (n < from.size() && from[n] - from[n - 1] == from[1] - from[0] && to[n] - to[n - 1] == to[1] - to[0]) ++n;
    return n;
}

/// Whole periods of length p that the list starts with, each the first one shifted by the same distance.
std::size_t periods(List from, List to, std::size_t p) {
    if (p >= from.size()) return from.empty() ? 0 : 1;
    const std::int64_t a = from[p] - from[0], b = to[p] - to[0];
    std::size_t n = p;
    while (n < from.size() && from[n] - from[n - p] == a && to[n] - to[n - p] == b) ++n;
    return n / p;
}

void cut(List from, List to, std::size_t longest_period, std::vector<Piece>& pieces) {
    while (!from.empty()) {
        // The way that carries most elements a piece.
        const std::size_t run = progression(from, to);
        std::size_t best_period = run, best_count = periods(from, to, run);
        std::vector<Piece> best{Piece{{}, {}, {}, from[0], to[0]}};
        if (run > 1) {
            best[0].extents = {static_cast<std::int64_t>(run)};
            best[0].from = {from[1] - from[0]};
            best[0].to = {to[1] - to[0]};
        }
        for (std::size_t p = 2; run < from.size() && p <= std::min(longest_period, from.size() / 2); ++p) {
            const std::size_t count = periods(from, to, p);
            if (p == run || count < 2 || p * count <= best_period * best_count / best.size()) continue;
            std::vector<Piece> inner;
            cut(from.first(p), to.first(p), p / 2, inner);
            if (p * count * best.size() <= best_period * best_count * inner.size()) continue;
            best_period = p;
            best_count = count;
            best = std::move(inner);
        }
        for (Piece& piece : best) {
            if (best_count > 1) {
                piece.extents.insert(piece.extents.begin(), static_cast<std::int64_t>(best_count));
                piece.from.insert(piece.from.begin(), from[best_period] - from[0]);
                piece.to.insert(piece.to.begin(), to[best_period] - to[0]);
            }
            pieces.push_back(std::move(piece));
        }
        from = from.subspan(best_period * best_count);
        to = to.subspan(best_period * best_count);
    }
}

}  // namespace

std::vector<Piece> cut_into_pieces(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
    std::vector<Piece> pieces;
    cut(from, to, kLongestPeriod, pieces);
    return pieces;
}

std::vector<Piece> combine(NodeId id, const std::vector<std::vector<Piece>>& parts) {
    std::vector<Piece> all{Piece{}};
    for (const auto& part : parts) {
        if (all.size() * part.size() > kMostPieces)
            throw NodeError(id, fmt::format("the indices make more than {} separate moves", kMostPieces));
        std::vector<Piece> next;
        for (const Piece& a : all)
            for (const Piece& b : part) {
                Piece c = a;
                c.extents.insert(c.extents.end(), b.extents.begin(), b.extents.end());
                c.from.insert(c.from.end(), b.from.begin(), b.from.end());
                c.to.insert(c.to.end(), b.to.begin(), b.to.end());
                c.from_offset += b.from_offset;
                c.to_offset += b.to_offset;
                next.push_back(std::move(c));
            }
        all = std::move(next);
    }
    return all;
}

Expr passthrough(const Operand& operand, const Epilogue& tail) {
    Expr expr;
    expr.result = Expr::stream(0);
    if (operand.quantization && tail.quantization == operand.quantization && tail.activations.empty()) return expr;
    if (!operand.quantization && tail.activations.empty() && !tail.quantization) return expr;
    Expr::Ref x = Expr::stream(0);
    if (operand.quantization) x = emit_dequantize(expr, x, *operand.quantization);
    expr.result = emit_epilogue(expr, tail, x);
    return expr;
}

VectorJob piece_job(Lowering& l, NodeId id, const Operand& operand, const Epilogue& tail, const Operand& out, const Piece& piece) {
    if (operand.constant) l.place_constant(id, operand.device);
    const Ordered order = memory_order(piece.extents, piece.to);
    VectorJob job;
    job.extents = order.extents;
    job.inputs.push_back({l.addr_of(operand, piece.from_offset), l.type_of(operand), pick(piece.from, order.dims)});
    job.output = {l.addr_of(out, piece.to_offset), l.type_of(out), pick(piece.to, order.dims)};
    job.expr = passthrough(operand, tail);
    return job;
}

VectorJob move_job(Lowering& l, NodeId id, const Operand& operand, const Epilogue& tail, const Operand& out, std::int64_t out_offset,
                   const std::vector<std::int64_t>& out_strides) {
    return piece_job(l, id, operand, tail, out, {operand.shape, operand.strides, out_strides, 0, out_offset});
}

void end_move(Lowering& l, NodeId id, const Epilogue& tail, const std::vector<Operand>& operands) {
    simkernel::Layer layer;
    layer.precision = tail.activations.empty() && !tail.quantization ? "move" : tail.quantization ? "int8" : "fp32";
    layer.mapping = fmt::format("{} elements by DMA", element_count(l.graph.value(tail.output).shape));
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), operands, tail.output);
}

std::uint32_t element_bits(const Lowering& l, const Operand& out, const Epilogue& tail, double value) {
    if (tail.quantization) {
        // As emit_quantize computes it: fp32 division, half to even, saturation.
        const auto scaled = static_cast<double>(std::nearbyint(static_cast<float>(value) / tail.quantization->scale));
        return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::clamp(scaled + tail.quantization->zero_point, -128.0, 127.0)));
    }
    const DType type = l.graph.value(out.device).dtype;
    if (l.type_of(out) == simkernel::Dtype::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const auto integer = static_cast<std::int64_t>(std::clamp(value, -2147483648.0, 2147483647.0));
    if (simkernel::size_of(l.type_of(out)) == 1) return static_cast<std::uint8_t>(integer - (type == DType::u8 ? 128 : 0));
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(integer));
}

std::int64_t emit_fill_box(Lowering& l, const Operand& out, std::int64_t offset, const Shape& extents, std::vector<std::int64_t> strides,
                           std::uint32_t pattern, std::int64_t step) {
    const auto size = static_cast<std::int64_t>(simkernel::size_of(l.type_of(out)));
    const std::int64_t room = l.chip.spm_bytes / 4 / size;
    const Ordered order = memory_order(extents, strides);
    strides = pick(strides, order.dims);
    // Local memory holds one run of the pattern, and dimensions past it read that run again.
    std::vector<DmaDim> dims;
    std::int64_t run = 1;
    bool joined = true;
    for (std::size_t d = order.extents.size(); d-- > 0;) {
        if (order.extents[d] == 1) continue;
        joined = joined && strides[d] == run && run * order.extents[d] <= room;
        dims.push_back({order.extents[d], strides[d] * size, joined ? run * size : 0});
        if (joined) run *= order.extents[d];
    }
    if (dims.empty()) dims.push_back({1, size, size});
    // An innermost dimension longer than the room goes in chunks.
    const std::int64_t length = dims.front().extent, chunk = dims.front().ext_stride == size ? std::min(room, length) : length;
    if (chunk < length) run = chunk;
    const auto bytes = static_cast<std::uint32_t>(size);
    const std::uint32_t base = l.scratchpad_base(static_cast<std::uint64_t>(l.chip.spm_bytes / 2));
    l.emitter.at(Stage::load, step);
    emit_fill(l.emitter, base, pattern, bytes, {{run, 0, size}});
    l.emitter.at(Stage::store, step);
    for (std::int64_t at = 0; at < length; at += chunk) {
        if (chunk < length) dims.front() = {std::min(chunk, length - at), size, size};
        emit_store(l.emitter, l.addr_of(out, offset + at), base, bytes, dims);
    }
    return step + 2;
}

std::vector<int> identity_perm(std::size_t rank) {
    std::vector<int> perm(rank);
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<int>(i);
    return perm;
}

}  // namespace assay::workloads
