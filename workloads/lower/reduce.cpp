// Reductions over any dimensions: sums, means, extremes and norms. Dimensions are taken in the order of memory; a tile holds as much as fits,
// and what is cut of a reduced dimension is combined piece by piece.
#include <fmt/core.h>

#include <algorithm>

#include "simkernel/exec/decode.hpp"
#include "workloads/lower/chain.hpp"
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

constexpr std::size_t kVectorDims = 5;

struct Dim {
    std::int64_t extent = 1, from = 0, to = 0;  ///< strides (elements) in the input and the output; `to` is 0 when reduced
    bool reduced = false;
};

/// What is done to each element, how two are combined, and what is done to the result.
struct Recipe {
    Reduce op = Reduce::none;
    Uop combine = Uop::add_f32;
    Expr element, finish;
};

std::vector<bool> reduced_dims(const Graph& graph, NodeId id, std::size_t rank) {
    const Node& node = graph.node(id);
    std::vector<std::int64_t> axes = node.integers("axes");
    if (node.input(1) != kNoValue) {
        if (!graph.is_constant(node.input(1))) throw NodeError(id, "axes are computed at run time, which is not supported; make them a constant");
        axes.clear();
        const Tensor& t = *graph.value(node.input(1)).constant;
        for (std::int64_t i = 0; i < t.count(); ++i) axes.push_back(t.integer(i));
    }
    std::vector<bool> reduced(rank, axes.empty() && node.integer("noop_with_empty_axes", 0) == 0);
    for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>(normal_axis(id, axis, rank))] = true;
    return reduced;
}

/// Finishing may read nothing but scalars.
class ScalarReader final : public ChainReader {
public:
    explicit ScalarReader(const Graph& graph) : graph_(graph) {}
    Lane read(ValueId value) override { return lane_of_constant(*graph_.value(value).constant, 0); }
    Expr::Ref channel(NodeId id, const std::vector<float>&, const char*) override {
        throw NodeError(id, "BatchNormalization right after a reduction is not supported");  // grow_chain is not given one: its rank is 1
    }

private:
    const Graph& graph_;
};

Recipe recipe_of(const Lowering& l, NodeId id, const Operand& x, std::int64_t count) {
    const Node& node = l.graph.node(id);
    const std::string& op = node.op;
    const DType type = l.graph.value(node.inputs[0]).dtype;
    Recipe r;
    Lane lane = x.quantization ? Lane{Lane::Kind::real, emit_dequantize(r.element, Expr::stream(0), *x.quantization)}
                               : lane_of_stored(r.element, Expr::stream(0), type);
    const bool real = lane.kind == Lane::Kind::real;
    const bool extreme = op == "ReduceMax" || op == "ReduceMin";
    if (!real && !extreme && !(op == "ReduceSum" && type == DType::i32))
        throw NodeError(id, fmt::format("{} of {} is not supported; use float32", op, name_of(type)));
    Expr::Ref v = lane.ref;
    if (op == "ReduceL1") v = emit_abs(r.element, v);
    if (op == "ReduceL2" || op == "ReduceSumSquare") v = r.element.op(Uop::mul_f32, v, v);
    r.element.result = v;
    if (extreme) {
        const bool most = op == "ReduceMax";
        r.op = real ? (most ? Reduce::max_f32 : Reduce::min_f32) : most ? Reduce::max_i32 : Reduce::min_i32;
        r.combine = real ? (most ? Uop::max_f32 : Uop::min_f32) : most ? Uop::max_i32 : Uop::min_i32;
    } else {
        r.op = real ? Reduce::add_f32 : Reduce::add_i32;
        r.combine = real ? Uop::add_f32 : Uop::add_i32;
    }
    Expr::Ref y = Expr::stream(0);
    if (op == "ReduceMean") y = r.finish.op(Uop::div_f32, y, Expr::imm(static_cast<float>(count)));
    if (op == "ReduceL2") y = r.finish.op(Uop::sqrt_f32, y);
    if (op == "ReduceLogSum") y = emit_log(r.finish, y);
    r.finish.result = y;
    return r;
}

/// A new tensor whose dimensions lie in the order of the input's.
std::vector<int> output_perm(const std::vector<std::size_t>& order, const std::vector<bool>& reduced, bool keep) {
    std::vector<int> position(reduced.size(), -1);
    int next = 0;
    for (std::size_t d = 0; d < reduced.size(); ++d)
        if (keep || !reduced[d]) position[d] = next++;
    std::vector<int> perm;
    for (const std::size_t d : order)
        if (position[d] >= 0) perm.push_back(position[d]);
    return perm;
}

/// Neighbours of one kind that lie one behind the other become one dimension; extents of 1 go.
std::vector<Dim> merged(const std::vector<Dim>& dims) {
    std::vector<Dim> out;
    for (const Dim& d : dims) {
        if (d.extent == 1) continue;
        if (!out.empty() && out.back().reduced == d.reduced && out.back().from == d.from * d.extent && out.back().to == d.to * d.extent) {
            out.back() = {out.back().extent * d.extent, d.from, d.to, d.reduced};
            continue;
        }
        out.push_back(d);
    }
    if (out.empty()) out.push_back({1, 1, 0, true});
    return out;
}

class ReduceEmitter {
public:
    ReduceEmitter(Lowering& l, NodeId id, const Operand& x, const Operand& out, std::vector<Dim> dims, const Recipe& recipe)
        : l_(l), x_(x), out_operand_(out), dims_(std::move(dims)), op_(recipe.op), in_type_(l.type_of(x)), out_type_(l.type_of(out)) {
        element_ = plan_expr(recipe.element);
        finish_ = plan_expr(recipe.finish);
        Expr combine;
        combine.op(recipe.combine, Expr::stream(0), Expr::stream(1));
        combine_ = plan_expr(combine);
        word_ = op_ == Reduce::add_f32 || op_ == Reduce::max_f32 || op_ == Reduce::min_f32 ? Dtype::f32 : Dtype::i32;
        choose_tile(id);
        choose_cores();
    }

    void run() {
        if (cores_ > 1) l_.emitter.begin_disjoint_stores();
        for (std::int64_t core = 0; core < cores_; ++core) {
            l_.emitter.set_core(static_cast<std::uint32_t>(core));
            place();
            step_ = 0;
            run_share(share_of(groups(), core, cores_));
        }
        l_.emitter.end_disjoint_stores();
        l_.emitter.set_core(0);
    }

    std::int64_t tile_elements() const { return elements(tile_, false); }
    std::int64_t cores() const { return cores_; }

private:
    /// Tiles of results: each is reduced whole on one core.
    void run_share(const Share& share) {
        std::vector<std::int64_t> at(dims_.size(), 0);
        std::int64_t group = 0;
        do {
            if (!share.has(group++)) continue;
            bool first = true;
            do {
                reduce_piece(at, first);
                first = false;
                if (!next(at, true)) break;
                ++step_;
            } while (true);
            finish(at);
            ++step_;
        } while (next(at, false));
    }

    std::int64_t groups() const {
        std::int64_t n = 1;
        for (std::size_t d = 0; d < dims_.size(); ++d)
            if (!dims_[d].reduced) n *= (dims_[d].extent + tile_[d] - 1) / tile_[d];
        return n;
    }

    /// Makes tiles smaller along what is kept, never along what is reduced: bits depend on that.
    void choose_cores() {
        std::int64_t all = 1, kept = 1;
        for (const Dim& d : dims_) {
            all *= d.extent;
            if (!d.reduced) kept *= d.extent;
        }
        const double operations = static_cast<double>(element_.segments.size() + 1) * 2.0;
        cores_ = cores_for(l_.chip, l_.options.cores, kept, static_cast<double>(all) * operations / static_cast<double>(l_.chip.vpu_lanes));
        while (groups() < cores_) {
            std::size_t largest = dims_.size();
            for (std::size_t d = dims_.size(); d-- > 0;)
                if (!dims_[d].reduced && tile_[d] > 1 && (largest == dims_.size() || tile_[d] >= tile_[largest])) largest = d;
            if (largest == dims_.size()) break;
            tile_[largest] = (tile_[largest] + 1) / 2;
        }
        cores_ = std::min(cores_, groups());
    }

    /// Moves on among the tiles along the reduced or the kept dimensions; false (and back at the start) after the last.
    bool next(std::vector<std::int64_t>& at, bool reduced) const {
        for (std::size_t d = dims_.size(); d-- > 0;) {
            if (dims_[d].reduced != reduced) continue;
            if ((at[d] += tile_[d]) < dims_[d].extent) return true;
            at[d] = 0;
        }
        return false;
    }

    std::int64_t elements(const std::vector<std::int64_t>& tile, bool kept) const {
        std::int64_t n = 1;
        for (std::size_t d = 0; d < tile.size(); ++d)
            if (!kept || !dims_[d].reduced) n *= tile[d];
        return n;
    }

    std::uint64_t bytes(const std::vector<std::int64_t>& tile) const {
        const auto all = static_cast<std::uint64_t>(elements(tile, false)), kept = static_cast<std::uint64_t>(elements(tile, true));
        return 2 * align_up(all * simkernel::size_of(in_type_)) + temp_bytes(element_, all) + 2 * align_up(4 * kept) +
               temp_bytes(finish_, kept) + 2 * align_up(kept * simkernel::size_of(out_type_));
    }

    void choose_tile(NodeId id) {
        const auto budget = static_cast<std::uint64_t>(l_.chip.spm_bytes) / 2;
        tile_.assign(dims_.size(), 1);
        if (bytes(tile_) > budget) throw NodeError(id, "one element does not fit the scratchpad; use a larger chip");
        for (std::size_t d = tile_.size(); d-- > 0 && tile_.size() - d <= kVectorDims;) {
            std::int64_t low = 1, high = dims_[d].extent;
            while (low < high) {
                const std::int64_t middle = low + (high - low + 1) / 2;
                tile_[d] = middle;
                (bytes(tile_) <= budget ? low : high) = bytes(tile_) <= budget ? middle : middle - 1;
            }
            tile_[d] = low;
            if (low < dims_[d].extent) break;
        }
    }

    void place() {
        std::uint32_t at = l_.scratchpad_base(bytes(tile_));
        const auto take = [&](std::uint64_t size) {
            const std::uint32_t addr = at;
            at += static_cast<std::uint32_t>(size);
            return addr;
        };
        const auto all = static_cast<std::uint64_t>(elements(tile_, false)), kept = static_cast<std::uint64_t>(elements(tile_, true));
        const std::uint64_t in = align_up(all * simkernel::size_of(in_type_)), out = align_up(kept * simkernel::size_of(out_type_));
        in_ = Ring(take(2 * in), static_cast<std::uint32_t>(in), 2);
        out_ = Ring(take(2 * out), static_cast<std::uint32_t>(out), 2);
        running_ = take(align_up(4 * kept));
        piece_ = take(align_up(4 * kept));
        element_temp_ = take(temp_bytes(element_, all));
        finish_temp_ = take(temp_bytes(finish_, kept));
    }

    std::vector<std::int64_t> extent_at(const std::vector<std::int64_t>& at) const {
        std::vector<std::int64_t> extent(at.size());
        for (std::size_t d = 0; d < at.size(); ++d) extent[d] = std::min(tile_[d], dims_[d].extent - at[d]);
        return extent;
    }

    void reduce_piece(const std::vector<std::int64_t>& at, bool first) {
        const auto extent = extent_at(at);
        const auto size = static_cast<std::int64_t>(simkernel::size_of(in_type_));
        std::int64_t offset = 0;
        std::vector<std::int64_t> local(at.size(), 0), kept(at.size(), 0);
        std::int64_t packed = 1, packed_kept = 1;
        std::vector<DmaDim> transfer;
        for (std::size_t d = at.size(); d-- > 0;) {
            offset += at[d] * dims_[d].from;
            local[d] = packed;
            packed *= extent[d];
            if (!dims_[d].reduced) {
                kept[d] = packed_kept;
                packed_kept *= extent[d];
            }
            transfer.push_back({extent[d], dims_[d].from * size, local[d] * size});
        }
        l_.emitter.at(Stage::load, step_, in_.advance());
        emit_load(l_.emitter, l_.addr_of(x_, offset), in_.addr(), static_cast<std::uint32_t>(size), transfer);
        in_.use(step_);
        // Dimension 0 is the innermost of memory; then the reduced ones, then those that are kept.
        const std::size_t inner = at.size() - 1;
        std::vector<std::size_t> order{inner};
        Reduction reduction;
        reduction.lanes = dims_[inner].reduced;
        for (const bool reduced : {true, false})
            for (std::size_t d = inner; d-- > 0;)
                if (dims_[d].reduced == reduced && extent[d] > 1) {
                    order.push_back(d);
                    reduction.dims += reduced ? 1 : 0;
                }
        if (reduction.lanes || reduction.dims > 0) reduction.op = op_;
        VectorShape shape;
        VectorOperand source{in_.addr(), in_type_, {}}, result{first ? running_ : piece_, word_, {}};
        for (std::size_t i = 0; i < order.size(); ++i) {
            const std::size_t d = order[i];
            shape.count[i] = static_cast<std::uint32_t>(extent[d]);
            source.stride[i] = static_cast<std::int32_t>(local[d] * size);
            result.stride[i] = static_cast<std::int32_t>(kept[d] * 4);
        }
        l_.emitter.at(Stage::compute, step_);
        emit_plan(l_.emitter, element_, shape, {source}, result, element_temp_, reduction);
        if (first) return;
        const VectorOperand running = flat(running_, word_), piece = flat(piece_, word_);
        emit_plan(l_.emitter, combine_, line(packed_kept), {running, piece}, running, 0);
    }

    static VectorOperand flat(std::uint32_t addr, Dtype type) {
        return {addr, type, {static_cast<std::int32_t>(simkernel::size_of(type)), 0, 0, 0, 0}};
    }
    static VectorShape line(std::int64_t count) {
        VectorShape shape;
        shape.count[0] = static_cast<std::uint32_t>(count);
        return shape;
    }

    void finish(const std::vector<std::int64_t>& at) {
        const auto extent = extent_at(at);
        const auto size = static_cast<std::int64_t>(simkernel::size_of(out_type_));
        std::int64_t offset = 0, packed = 1;
        std::vector<DmaDim> transfer;
        for (std::size_t d = at.size(); d-- > 0;) {
            if (dims_[d].reduced) continue;
            offset += at[d] * dims_[d].to;
            transfer.push_back({extent[d], dims_[d].to * size, packed * size});
            packed *= extent[d];
        }
        if (transfer.empty()) transfer.push_back({1, size, size});
        out_.advance();
        l_.emitter.at(Stage::compute, step_);
        emit_plan(l_.emitter, finish_, line(packed), {flat(running_, word_)}, flat(out_.addr(), out_type_), finish_temp_);
        l_.emitter.at(Stage::store, step_);
        emit_store(l_.emitter, l_.addr_of(out_operand_, offset), out_.addr(), static_cast<std::uint32_t>(size), transfer);
    }

    Lowering& l_;
    const Operand& x_;
    const Operand& out_operand_;
    std::vector<Dim> dims_;
    Reduce op_;
    Dtype in_type_, out_type_, word_ = Dtype::f32;
    ExprPlan element_, finish_, combine_;
    std::vector<std::int64_t> tile_;
    Ring in_, out_;
    std::uint32_t running_ = 0, piece_ = 0, element_temp_ = 0, finish_temp_ = 0;
    std::int64_t step_ = 0;
    std::int64_t cores_ = 1;
};

}  // namespace

void lower_reduce(Lowering& l, NodeId id) {
    const Graph& graph = l.graph;
    const Node& node = graph.node(id);
    const Operand x = l.operand(id, node.inputs[0]);
    if (x.constant) l.place_constant(id, node.inputs[0]);
    const std::vector<bool> reduced = reduced_dims(graph, id, x.shape.size());
    const bool keep = node.integer("keepdims", 1) != 0;
    std::int64_t count = 1;
    for (std::size_t d = 0; d < reduced.size(); ++d)
        if (reduced[d]) count *= x.shape[d];
    Recipe recipe = recipe_of(l, id, x, count);
    const DType type = graph.value(node.outputs[0]).dtype;

    // What follows and reads nothing but scalars (a mean's + epsilon, square root) belongs to the layer.
    Chain chain{{}, node.outputs[0]};
    grow_chain(l, chain, [&](ValueId v) { return graph.is_constant(v) && graph.value(v).constant->count() == 1; }, 0);
    if (std::any_of(chain.nodes.begin(), chain.nodes.end(), [&](NodeId n) { return graph.node(n).op == "BatchNormalization"; }))
        chain = {{}, node.outputs[0]};
    Lane lane{type == DType::f32 ? Lane::Kind::real : type == DType::boolean ? Lane::Kind::flag : Lane::Kind::integer, recipe.finish.result};
    ScalarReader reader(graph);
    if (!chain.nodes.empty()) lane = emit_chain(recipe.finish, graph, chain.nodes, {{node.outputs[0], lane}}, reader);
    Epilogue tail = follow(l, chain.output);
    Expr::Ref y = lane.ref;
    if (!tail.nodes.empty())
        y = emit_epilogue(recipe.finish, tail, y);
    else
        y = stored_of_lane(recipe.finish, lane, graph.value(chain.output).dtype);
    recipe.finish.result = y;

    const Ordered order = memory_order(x.shape, x.strides);
    const Operand out = l.materialize(id, tail.output, output_perm(order.dims, reduced, keep));
    std::vector<std::int64_t> to(x.shape.size(), 0);
    for (std::size_t d = 0, o = 0; d < to.size(); ++d) {
        if (!reduced[d]) to[d] = out.strides[keep ? d : o];
        if (!reduced[d]) ++o;
    }
    std::vector<Dim> dims;
    for (const std::size_t d : order.dims) dims.push_back({x.shape[d], x.strides[d], to[d], reduced[d]});
    dims = merged(dims);
    l.begin_layer();
    ReduceEmitter emitter(l, id, x, out, dims, recipe);
    emitter.run();
    simkernel::Layer layer;
    layer.precision = tail.quantization ? "int8" : "fp32";
    layer.mapping = fmt::format("{} groups of {} on {} lanes, {} elements a tile{}", element_count(x.shape) / std::max<std::int64_t>(count, 1), count,
                                l.chip.vpu_lanes, emitter.tile_elements(), on_cores(emitter.cores()));
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), chain.nodes.begin(), chain.nodes.end());
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), {x}, tail.output);
}

}  // namespace assay::workloads
