// Resize between neighbours (linear and cubic), one or two axes. A tile is some output rows: the input rows that they need are loaded, each
// output row is a weighted sum of whole input rows, and its columns are weighted sums of the row's columns, all in the scratchpad.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "simkernel/exec/decode.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/move_plan.hpp"
#include "workloads/passes/taps.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;

struct Axis {
    std::int64_t in = 1, out = 1;
    std::int64_t from = 0, to = 0;  ///< strides in elements of input and output
};

std::int32_t i32(std::int64_t v) { return static_cast<std::int32_t>(v); }

class InterpolationEmitter {
public:
    InterpolationEmitter(Lowering& l, NodeId id, Operand x, Operand out, Epilogue tail, Taps rows, std::optional<Taps> cols)
        : l_(l), id_(id), x_(std::move(x)), out_(std::move(out)), tail_(std::move(tail)), row_taps_(std::move(rows)), col_taps_(std::move(cols)) {
        in_size_ = static_cast<std::int64_t>(simkernel::size_of(l.type_of(x_)));
        out_size_ = static_cast<std::int64_t>(simkernel::size_of(l.type_of(out_)));
        finishes_ = !tail_.activations.empty() || tail_.quantization;
        if (finishes_) finish_.result = emit_epilogue(finish_, tail_, Expr::stream(0));
    }

    /// Which dimensions are what: `row` and, if given, `col` are resized, the others are copied.
    void arrange(std::size_t row, std::optional<std::size_t> col) {
        std::int64_t nearest = INT64_MAX;  // an axis within both resized ones is the inner one
        const auto take = [&](std::size_t d) {
            nearest = std::min(nearest, std::abs(x_.strides[d]));
            return Axis{x_.shape[d], out_.shape[d], x_.strides[d], out_.strides[d]};
        };
        row_ = take(row);
        if (col) col_ = take(*col);
        std::vector<Axis> inner, outer;
        for (const std::size_t d : memory_order(x_.shape, x_.strides).dims) {
            if (row == d || col == d || x_.shape[d] == 1) continue;
            const Axis axis{x_.shape[d], x_.shape[d], x_.strides[d], out_.strides[d]};
            auto& list = std::abs(axis.from) < nearest && axis.from != 0 ? inner : outer;
            if (!list.empty() && list.back().from == axis.from * axis.in && list.back().to == axis.to * axis.in)
                list.back() = {list.back().in * axis.in, list.back().in * axis.in, axis.from, axis.to};
            else
                list.push_back(axis);
        }
        const auto longest = [](std::vector<Axis>& list) {
            if (list.empty()) return Axis{};
            const auto it = std::max_element(list.begin(), list.end(), [](const Axis& a, const Axis& b) { return a.in < b.in; });
            const Axis axis = *it;
            list.erase(it);
            return axis;
        };
        lane_ = longest(inner);
        plane_ = longest(outer);
        loops_ = std::move(outer);
        loops_.insert(loops_.end(), inner.begin(), inner.end());
    }

    void run() {
        choose_tile();
        place();
        Shape extents;
        for (const Axis& axis : loops_) extents.push_back(axis.in);
        Shape at(extents.size(), 0);
        std::int64_t step = 0;
        do {
            std::int64_t from = 0, to = 0;
            for (std::size_t d = 0; d < at.size(); ++d) {
                from += at[d] * loops_[d].from;
                to += at[d] * loops_[d].to;
            }
            for (std::int64_t p = 0; p < plane_.in; p += planes_)
                for (std::int64_t c = 0; c < lane_.in; c += lanes_)
                    for (std::int64_t y = 0; y < row_.out; y += rows_)
                        tile({std::min(planes_, plane_.in - p), std::min(lanes_, lane_.in - c), y, std::min(rows_, row_.out - y)},
                             from + p * plane_.from + c * lane_.from, to + p * plane_.to + c * lane_.to, step++);
        } while (next_index(at, extents));
    }

private:
    struct Tile {
        std::int64_t planes, lanes, y, rows;
    };

    /// Input rows [first, last] that output rows [y, y + rows) read.
    std::pair<std::int64_t, std::int64_t> source_rows(std::int64_t y, std::int64_t rows) const {
        std::int64_t first = INT64_MAX, last = 0;
        for (const auto& index : row_taps_.index)
            for (std::int64_t i = y; i < y + rows; ++i) {
                first = std::min(first, index[static_cast<std::size_t>(i)]);
                last = std::max(last, index[static_cast<std::size_t>(i)]);
            }
        return {first, last};
    }

    std::int64_t most_source_rows() const {
        std::int64_t most = 1;
        for (std::int64_t y = 0; y < row_.out; y += rows_) {
            const auto [first, last] = source_rows(y, std::min(rows_, row_.out - y));
            most = std::max(most, last - first + 1);
        }
        return most;
    }

    std::int64_t in_bytes() const { return planes_ * most_source_rows() * col_.in * lanes_ * in_size_; }
    std::int64_t between_bytes() const { return col_taps_ ? planes_ * rows_ * col_.in * lanes_ * 4 : 0; }
    std::int64_t sum_bytes() const { return planes_ * rows_ * col_.out * lanes_ * 4; }
    std::int64_t result_bytes() const { return finishes_ ? planes_ * rows_ * col_.out * lanes_ * out_size_ : 0; }
    std::int64_t weight_bytes() const { return col_taps_ ? static_cast<std::int64_t>(col_taps_->index.size()) * col_.out * 4 : 0; }
    std::int64_t temp_bytes() const { return row_taps_.index.size() > 2 ? planes_ * col_.in * lanes_ * 4 : 0; }
    std::uint64_t bytes() const {
        const auto up = [](std::int64_t n) { return align_up(static_cast<std::uint64_t>(n)); };
        return 2 * up(in_bytes()) + up(between_bytes()) + 2 * up(sum_bytes()) + 2 * up(result_bytes()) + up(weight_bytes()) + up(temp_bytes()) +
               up(finishes_ ? sum_bytes() : 0);
    }

    void choose_tile() {
        planes_ = plane_.in;
        lanes_ = lane_.in;
        rows_ = std::max<std::int64_t>(1, (row_.out + 3) / 4);  // some tiles, so that loads overlap stores
        const auto budget = static_cast<std::uint64_t>(l_.chip.spm_bytes) / 2;
        while (bytes() > budget) {
            std::int64_t& part = rows_ > 8 ? rows_ : planes_ > 1 ? planes_ : rows_ > 1 ? rows_ : lanes_;
            if (part == 1)
                throw NodeError(id_, fmt::format("one row needs {} scratchpad bytes, allowed: {}; use a larger chip", bytes(), budget));
            part = (part + 1) / 2;
        }
    }

    void place() {
        std::uint32_t at = l_.scratchpad_base(bytes());
        const auto take = [&](std::int64_t size) {
            const std::uint32_t addr = at;
            at += static_cast<std::uint32_t>(align_up(static_cast<std::uint64_t>(size)));
            return addr;
        };
        const auto ring = [&](std::int64_t size) {
            const auto each = static_cast<std::uint32_t>(align_up(static_cast<std::uint64_t>(size)));
            return Ring(take(2 * static_cast<std::int64_t>(each)), each, 2);
        };
        in_ = ring(in_bytes());
        sums_ = ring(sum_bytes());
        if (finishes_) result_ = ring(result_bytes());
        between_ = take(between_bytes());
        temp_ = take(temp_bytes());
        finish_temp_ = take(finishes_ ? sum_bytes() : 0);
        weights_ = take(weight_bytes());
        if (!col_taps_) return;
        std::vector<float> values;
        for (const auto& weight : col_taps_->weight)
            for (const double w : weight) values.push_back(static_cast<float>(w));
        std::vector<std::byte> image(values.size() * 4);
        std::memcpy(image.data(), values.data(), image.size());
        simkernel::ConstantSlot slot;
        slot.name = l_.graph.node(id_).name + "#weights";
        slot.dtype = Dtype::f32;
        const std::uint64_t addr = l_.add_constant(std::move(image), slot).value;
        l_.emitter.at(Stage::load, 0);
        emit_load(l_.emitter, addr, weights_, 4, {{static_cast<std::int64_t>(values.size()), 4, 4}});
        for (std::size_t k = 0; k < col_taps_->index.size(); ++k) {
            std::vector<std::int64_t> to(col_taps_->index[k].size());
            for (std::size_t j = 0; j < to.size(); ++j) to[j] = static_cast<std::int64_t>(j);
            col_pieces_.push_back(cut_into_pieces(col_taps_->index[k], to));
        }
    }

    Expr::Ref read(Expr& expr, std::uint32_t stream) const {
        return x_.quantization ? emit_dequantize(expr, Expr::stream(stream), *x_.quantization) : Expr::stream(stream);
    }

    void tile(const Tile& t, std::int64_t from, std::int64_t to, std::int64_t step) {
        const auto [first, last] = source_rows(t.y, t.rows);
        const std::int64_t sources = last - first + 1, line = col_.in * t.lanes;
        l_.emitter.at(Stage::load, step, in_.advance());
        emit_load(l_.emitter, l_.addr_of(x_, from + first * row_.from), in_.addr(), static_cast<std::uint32_t>(in_size_),
                  {{t.lanes, lane_.from * in_size_, in_size_},
                   {col_.in, col_.from * in_size_, t.lanes * in_size_},
                   {sources, row_.from * in_size_, line * in_size_},
                   {t.planes, plane_.from * in_size_, sources * line * in_size_}});
        in_.use(step);
        sums_.advance();
        l_.emitter.at(Stage::compute, step);
        row_pass(t, first, sources);
        if (col_taps_) col_pass(t);
        std::uint32_t result = sums_.addr();
        const std::int64_t elements = t.planes * t.rows * col_.out * t.lanes;
        if (finishes_) {
            result_.advance();
            result = result_.addr();
            VectorShape shape;
            shape.count[0] = static_cast<std::uint32_t>(elements);
            emit_expr(l_.emitter, finish_, shape, {{sums_.addr(), Dtype::f32, {4}}}, {result, l_.type_of(out_), {i32(out_size_)}}, finish_temp_);
        }
        l_.emitter.at(Stage::store, step);
        emit_store(l_.emitter, l_.addr_of(out_, to + t.y * row_.to), result, static_cast<std::uint32_t>(out_size_),
                   {{t.lanes, lane_.to * out_size_, out_size_},
                    {col_.out, col_.to * out_size_, t.lanes * out_size_},
                    {t.rows, row_.to * out_size_, col_.out * t.lanes * out_size_},
                    {t.planes, plane_.to * out_size_, t.rows * col_.out * t.lanes * out_size_}});
    }

    /// Each output row: whole input rows by their weights, in every plane.
    void row_pass(const Tile& t, std::int64_t first, std::int64_t sources) {
        const std::int64_t line = col_.in * t.lanes;
        const std::uint32_t target = col_taps_ ? between_ : sums_.addr();
        for (std::int64_t r = 0; r < t.rows; ++r) {
            Expr expr;
            std::vector<VectorOperand> streams;
            Expr::Ref sum{};
            for (std::size_t k = 0; k < row_taps_.index.size(); ++k) {
                const auto y = static_cast<std::size_t>(t.y + r);
                const Expr::Ref weight = Expr::imm(static_cast<float>(row_taps_.weight[k][y]));
                streams.push_back({in_.addr() + static_cast<std::uint32_t>((row_taps_.index[k][y] - first) * line * in_size_), l_.type_of(x_),
                                   {i32(in_size_), i32(sources * line * in_size_)}});
                const Expr::Ref value = read(expr, static_cast<std::uint32_t>(k));
                sum = k == 0 ? expr.op(Uop::mul_f32, value, weight) : expr.op(Uop::fma_f32, value, weight, sum);
            }
            expr.result = sum;
            VectorShape shape;
            shape.count[0] = static_cast<std::uint32_t>(line);
            shape.count[1] = static_cast<std::uint32_t>(t.planes);
            emit_expr(l_.emitter, expr, shape, streams,
                      {target + static_cast<std::uint32_t>(r * line * 4), Dtype::f32, {4, i32(t.rows * line * 4)}}, temp_);
        }
    }

    struct Dim {
        std::int64_t extent, from, weight, to;  ///< strides in bytes
    };

    void col_pass(const Tile& t) {
        const std::int64_t line = col_.in * t.lanes * 4, out_line = col_.out * t.lanes * 4;
        for (std::size_t k = 0; k < col_pieces_.size(); ++k) {
            Expr expr;
            const Expr::Ref value = Expr::stream(0);
            expr.result = k == 0 ? expr.op(Uop::mul_f32, value, Expr::stream(1)) : expr.op(Uop::fma_f32, value, Expr::stream(1), Expr::stream(2));
            for (const Piece& piece : col_pieces_[k]) {
                std::vector<Dim> dims{{t.lanes, 4, 0, 4}, {t.rows, line, 0, out_line}, {t.planes, t.rows * line, 0, t.rows * out_line}};
                for (std::size_t d = 0; d < piece.extents.size(); ++d)
                    dims.push_back({piece.extents[d], piece.from[d] * t.lanes * 4, piece.to[d] * 4, piece.to[d] * t.lanes * 4});
                std::erase_if(dims, [](const Dim& d) { return d.extent == 1; });
                std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.extent > b.extent; });  // the longest across the lanes
                weigh(expr, k > 0, dims, between_ + static_cast<std::uint32_t>(piece.from_offset * t.lanes * 4),
                      weights_ + static_cast<std::uint32_t>((static_cast<std::int64_t>(k) * col_.out + piece.to_offset) * 4),
                      sums_.addr() + static_cast<std::uint32_t>(piece.to_offset * t.lanes * 4));
            }
        }
    }

    void weigh(const Expr& expr, bool adds, std::vector<Dim> dims, std::uint32_t source, std::uint32_t weight, std::uint32_t to) {
        if (dims.size() > 5) {
            const Dim outer = dims.back();
            dims.pop_back();
            for (std::int64_t i = 0; i < outer.extent; ++i)
                weigh(expr, adds, dims, source + static_cast<std::uint32_t>(i * outer.from), weight + static_cast<std::uint32_t>(i * outer.weight),
                      to + static_cast<std::uint32_t>(i * outer.to));
            return;
        }
        VectorShape shape;
        VectorOperand in{source, Dtype::f32, {}}, w{weight, Dtype::f32, {}}, sum{to, Dtype::f32, {}};
        for (std::size_t d = 0; d < dims.size(); ++d) {
            shape.count[d] = static_cast<std::uint32_t>(dims[d].extent);
            in.stride[d] = i32(dims[d].from);
            w.stride[d] = i32(dims[d].weight);
            sum.stride[d] = i32(dims[d].to);
        }
        std::vector<VectorOperand> streams{in, w};
        if (adds) streams.push_back(sum);
        emit_expr(l_.emitter, expr, shape, streams, sum, 0);
    }

    Lowering& l_;
    NodeId id_;
    Operand x_, out_;
    Epilogue tail_;
    Taps row_taps_;
    std::optional<Taps> col_taps_;
    Expr finish_;
    bool finishes_ = false;
    std::int64_t in_size_ = 4, out_size_ = 4;
    Axis row_, col_, lane_, plane_;
    std::vector<Axis> loops_;
    std::int64_t planes_ = 1, lanes_ = 1, rows_ = 1;
    std::vector<std::vector<Piece>> col_pieces_;
    Ring in_, sums_, result_;
    std::uint32_t between_ = 0, temp_ = 0, finish_temp_ = 0, weights_ = 0;
};

}  // namespace

void lower_interpolation(Lowering& l, NodeId id) {
    const auto resize = resize_of(l.graph, id);
    if (!resize) throw NodeError(id, "its scales or sizes are computed at run time");
    const Operand x = l.operand(id, l.graph.node(id).inputs[0]);
    if (l.type_of(x) != Dtype::f32 && !x.quantization)
        throw NodeError(id, fmt::format("interpolating {} has no instruction; use float32", name_of(l.graph.value(l.graph.node(id).inputs[0]).dtype)));
    if (x.constant) l.place_constant(id, x.device);
    std::vector<std::size_t> axes;
    std::vector<Taps> taps;
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
        Taps t = taps_of(id, *resize, d);
        if (t.identity) continue;
        axes.push_back(d);
        taps.push_back(std::move(t));
    }
    if (axes.size() > 2) throw NodeError(id, fmt::format("{} axes are interpolated, allowed: 2", axes.size()));
    if (axes.empty()) return lower_move(l, id);
    // The axis that lies inner in memory has its columns weighed.
    if (axes.size() == 2 && std::abs(x.strides[axes[0]]) < std::abs(x.strides[axes[1]])) {
        std::swap(axes[0], axes[1]);
        std::swap(taps[0], taps[1]);
    }
    const Epilogue tail = follow(l, l.graph.node(id).outputs[0]);
    const Operand out = l.materialize(id, tail.output, perm_like(x));
    std::optional<Taps> cols;
    std::optional<std::size_t> col;
    if (axes.size() == 2) {
        cols = taps[1];
        col = axes[1];
    }
    l.begin_layer();
    InterpolationEmitter emitter(l, id, x, out, tail, taps[0], std::move(cols));
    emitter.arrange(axes[0], col);
    emitter.run();
    simkernel::Layer layer;
    layer.precision = tail.quantization ? "int8" : "fp32";
    layer.mapping = fmt::format("{} of {} neighbours by {}", l.graph.node(id).text("mode", "nearest"), taps[0].index.size(), axes.size() == 2 ? "rows, then columns" : "rows");
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), {x}, tail.output);
}

}  // namespace assay::workloads
