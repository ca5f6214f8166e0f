// Softmax: row maximum, exp(x - maximum), row sum, division.
#include <fmt/core.h>

#include <algorithm>

#include "simkernel/exec/decode.hpp"
#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/vector_job.hpp"
#include "workloads/passes/passes.hpp"
#include "workloads/schedule/dma.hpp"
#include "workloads/schedule/shares.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Reduce;
using simkernel::Uop;

/// The tensor as [outer…][row of `length`][inner]: Softmax-13 normalises one dimension, Softmax-1 all from the axis on.
struct Rows {
    std::size_t first = 0, last = 0;  ///< reduced dimensions [first, last)
    std::int64_t length = 1, inner = 1;
};

Rows rows_of(const Graph& graph, NodeId id, const Shape& shape) {
    const bool single = graph.opset >= 13;
    const auto axis = static_cast<std::size_t>(normal_axis(id, graph.node(id).integer("axis", single ? -1 : 1), shape.size()));
    Rows rows{axis, single ? axis + 1 : shape.size(), 1, 1};
    for (std::size_t d = axis; d < shape.size(); ++d) (d < rows.last ? rows.length : rows.inner) *= shape[d];
    return rows;
}

}  // namespace

void lower_softmax(Lowering& l, NodeId id) {
    const Operand x = l.operand(id, l.graph.node(id).inputs[0]);
    const Epilogue tail = follow(l, l.graph.node(id).outputs[0]);
    const Rows rows = rows_of(l.graph, id, x.shape);
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    const auto in_size = static_cast<std::int64_t>(simkernel::size_of(l.type_of(x))),
               out_size = static_cast<std::int64_t>(simkernel::size_of(l.type_of(out)));

    Expr maximum, exponent, sum, divide;
    const auto read = [&](Expr& e) { return x.quantization ? emit_dequantize(e, Expr::stream(0), *x.quantization) : Expr::stream(0); };
    maximum.result = read(maximum);
    emit_exp(exponent, exponent.op(Uop::sub_f32, read(exponent), Expr::stream(1)));
    sum.result = Expr::stream(0);
    emit_epilogue(divide, tail, divide.op(Uop::div_f32, Expr::stream(0), Expr::stream(1)));

    // The last outer dimension is cut into chunks; the others are looped over.
    Shape outer(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(rows.first));
    if (outer.empty()) outer.push_back(1);
    const std::int64_t row = rows.length * rows.inner, most = outer.back();
    const auto bytes = [&](std::int64_t chunk) {
        return 2 * align_up(chunk * row * in_size) + 2 * align_up(chunk * row * out_size) + 2 * align_up(chunk * row * 4) +
               2 * align_up(chunk * rows.inner * 4);
    };
    std::int64_t chunk = most;
    while (chunk > 1 && bytes(chunk) > static_cast<std::uint64_t>(l.chip.spm_bytes) / 2) chunk = (chunk + 1) / 2;
    if (bytes(chunk) > static_cast<std::uint64_t>(l.chip.spm_bytes))
        throw NodeError(id, fmt::format("a row of {} elements needs {} scratchpad bytes, the chip has {}; use a larger chip", row, bytes(1),
                                        l.chip.spm_bytes));
    // Rows are dealt out to cores: each is reduced on one of them.
    const std::int64_t passes = static_cast<std::int64_t>(maximum.ops().size() + exponent.ops().size() + divide.ops().size()) + 4;
    const std::int64_t all_rows = element_count(outer), loops = all_rows / most;
    std::int64_t cores = cores_for(l.chip, l.options.cores, all_rows, static_cast<double>(all_rows * row * passes) / static_cast<double>(l.chip.vpu_lanes));
    while (cores > 1 && chunk > 1 && loops * ((most + chunk - 1) / chunk) < cores) chunk = (chunk + 1) / 2;
    const std::int64_t units = loops * ((most + chunk - 1) / chunk);
    cores = std::min(cores, units);
    std::uint32_t at = l.scratchpad_base(bytes(chunk));
    const auto take = [&](std::int64_t size, std::uint32_t count) {
        const std::uint32_t addr = at;
        at += count * static_cast<std::uint32_t>(align_up(static_cast<std::uint64_t>(size)));
        return addr;
    };
    const Ring fresh_in(take(chunk * row * in_size, 2), static_cast<std::uint32_t>(align_up(chunk * row * in_size)), 2);
    const Ring fresh_result(take(chunk * row * out_size, 2), static_cast<std::uint32_t>(align_up(chunk * row * out_size)), 2);
    const std::uint32_t e = take(chunk * row * 4, 1), temp = take(chunk * row * 4, 1), m = take(chunk * rows.inner * 4, 1),
                        s = take(chunk * rows.inner * 4, 1);

    const auto dims = [&](const Operand& t, std::int64_t n, std::int64_t size) {
        std::vector<DmaDim> d;
        std::int64_t local = size;
        for (std::size_t i = x.shape.size(); i-- > rows.first;) {
            d.push_back({x.shape[i], t.strides[i] * size, local});
            local *= x.shape[i];
        }
        if (rows.first > 0) d.push_back({n, t.strides[rows.first - 1] * size, local});
        return d;
    };
    l.begin_layer();
    if (cores > 1) l.emitter.begin_disjoint_stores();
    Ring in, result;
    std::int64_t step = 0, unit = 0, core = -1;
    Shape index(outer.size(), 0);
    while (true) {
        if (core < 0 || !share_of(units, core, cores).has(unit)) {
            l.emitter.set_core(static_cast<std::uint32_t>(++core));
            in = fresh_in;
            result = fresh_result;
            step = 0;
        }
        ++unit;
        const std::int64_t n = std::min(chunk, most - index.back());
        std::int64_t from = 0, to = 0;
        for (std::size_t d = 0; d < rows.first; ++d) {
            from += index[d] * x.strides[d];
            to += index[d] * out.strides[d];
        }
        l.emitter.at(Stage::load, step, in.advance());
        emit_load(l.emitter, l.addr_of(x, from), in.addr(), static_cast<std::uint32_t>(in_size), dims(x, n, in_size));
        in.use(step);
        result.advance();
        l.emitter.at(Stage::compute, step);
        const bool lanes = rows.inner == 1;
        VectorShape shape;
        if (lanes)
            shape.count = {static_cast<std::uint32_t>(rows.length), static_cast<std::uint32_t>(n), 1, 1, 1};
        else
            shape.count = {static_cast<std::uint32_t>(rows.inner), static_cast<std::uint32_t>(rows.length), static_cast<std::uint32_t>(n),
                           1, 1};
        const auto full = [&](std::uint32_t addr, Dtype type) {
            const auto size = static_cast<std::int32_t>(simkernel::size_of(type));
            VectorOperand v{addr, type, {}};
            if (lanes)
                v.stride = {size, static_cast<std::int32_t>(row) * size, 0, 0, 0};
            else
                v.stride = {size, static_cast<std::int32_t>(rows.inner) * size, static_cast<std::int32_t>(row) * size, 0, 0};
            return v;
        };
        const auto reduced = [&](std::uint32_t addr) {
            VectorOperand v{addr, Dtype::f32, {}};
            if (lanes)
                v.stride = {0, 4, 0, 0, 0};
            else
                v.stride = {4, 0, static_cast<std::int32_t>(rows.inner) * 4, 0, 0};
            return v;
        };
        const std::uint32_t dims_reduced = lanes ? 0 : 1;
        const VectorOperand input = full(in.addr(), l.type_of(x));
        emit_expr(l.emitter, maximum, shape, {input}, reduced(m), temp, {Reduce::max_f32, lanes, dims_reduced});
        emit_expr(l.emitter, exponent, shape, {input, reduced(m)}, full(e, Dtype::f32), temp);
        emit_expr(l.emitter, sum, shape, {full(e, Dtype::f32)}, reduced(s), temp, {Reduce::add_f32, lanes, dims_reduced});
        emit_expr(l.emitter, divide, shape, {full(e, Dtype::f32), reduced(s)}, full(result.addr(), l.type_of(out)), temp);
        l.emitter.at(Stage::store, step);
        emit_store(l.emitter, l.addr_of(out, to), result.addr(), static_cast<std::uint32_t>(out_size), dims(out, n, out_size));
        ++step;
        index.back() += chunk;
        std::size_t d = index.size() - 1;
        if (index[d] < most) continue;
        index[d] = 0;
        while (d-- > 0) {
            if (++index[d] < outer[d]) break;
            index[d] = 0;
        }
        if (d == SIZE_MAX) break;
    }
    l.emitter.end_disjoint_stores();
    l.emitter.set_core(0);
    simkernel::Layer layer;
    layer.precision = tail.quantization ? "int8" : "fp32";
    layer.mapping = fmt::format("{} rows of {} on {} lanes{}", element_count(x.shape) / rows.length, rows.length, l.chip.vpu_lanes, on_cores(cores));
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), {x}, tail.output);
}

}  // namespace assay::workloads
