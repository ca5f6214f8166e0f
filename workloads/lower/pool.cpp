// Pooling: a reduction over the window with the channels across the lanes, then division and what follows.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "simkernel/exec/decode.hpp"
#include "workloads/lower/epilogue.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/lower/vector_job.hpp"
#include "workloads/passes/window.hpp"
#include "workloads/schedule/dma.hpp"
#include "workloads/schedule/shares.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Reduce;
using simkernel::Uop;

struct PoolPlan {
    Window w;
    std::int64_t batch = 1, channels = 1;
    bool maximum = false;
    bool integer = false;                        ///< maximum of integers, without leaving them
    bool varying = false;                        ///< windows at the border hold fewer elements, and are divided by their own count
    std::int64_t norm = 0;                       ///< Lp pooling: p, 1 or 2
    std::array<std::int64_t, 2> counted_end{0, 0};  ///< padding past the end whose elements count, when padding counts at all
    bool padding_counts = false;
    std::int64_t rows = 1, cols = 1, depth = 1;  ///< output tile
    std::int64_t in_rows() const { return (rows - 1) * w.stride[0] + w.reach(0); }
    std::int64_t in_cols() const { return (cols - 1) * w.stride[1] + w.reach(1); }
};

/// Strides of [N, C, spatial…] as n, h, w, c; a 1-D tensor has h = 1.
std::array<std::int64_t, 4> nhwc_strides(const Operand& t) {
    if (t.shape.size() == 3) return {t.strides[0], 0, t.strides[2], t.strides[1]};
    return {t.strides[0], t.strides[2], t.strides[3], t.strides[1]};
}

class PoolEmitter {
public:
    PoolEmitter(Lowering& l, NodeId id, PoolPlan plan, Operand x, Operand out, Epilogue tail)
        : l_(l), id_(id), p_(plan), x_(std::move(x)), out_(std::move(out)), tail_(std::move(tail)) {
        in_size_ = static_cast<std::int64_t>(simkernel::size_of(l.type_of(x_)));
        out_size_ = static_cast<std::int64_t>(simkernel::size_of(l.type_of(out_)));
        if (p_.integer) {
            gather_.result = Expr::stream(0);
        } else {
            gather_.result = x_.quantization ? emit_dequantize(gather_, Expr::stream(0), *x_.quantization) : Expr::stream(0);
            const Expr::Ref v = gather_.result;
            if (p_.norm == 1) {
                const Expr::Ref negative = gather_.op(Uop::sub_f32, Expr::imm(0.0f), v);
                gather_.op(Uop::max_f32, v, negative);
            }
            if (p_.norm == 2) gather_.op(Uop::mul_f32, v, v);
            Expr::Ref y = Expr::stream(0);
            if (p_.norm == 2) y = finish_.op(Uop::sqrt_f32, y);
            if (!p_.maximum && p_.norm == 0) {
                const auto count = static_cast<float>(p_.w.kernel[0] * p_.w.kernel[1]);
                y = finish_.op(Uop::div_f32, y, p_.varying ? Expr::stream(1) : Expr::imm(count));
            }
            finish_.result = emit_epilogue(finish_, tail_, y);
        }
        direct_ = finish_.ops().empty();
        choose_tile();
        choose_cores();
    }

    void run() {
        if (p_.varying) place_counts();
        if (cores_ > 1) l_.emitter.begin_disjoint_stores();
        for (std::int64_t core = 0; core < cores_; ++core) {
            l_.emitter.set_core(static_cast<std::uint32_t>(core));
            place();
            run_share(share_of(tile_count(), core, cores_));
        }
        l_.emitter.end_disjoint_stores();
        l_.emitter.set_core(0);
    }

    std::int64_t cores() const { return cores_; }

private:
    void run_share(const Share& share) {
        std::int64_t step = 0, unit = 0;
        for (std::int64_t n = 0; n < p_.batch; ++n)
            for (std::int64_t c = 0; c < p_.channels; c += p_.depth)
                for (std::int64_t y = 0; y < p_.w.out[0]; y += p_.rows)
                    for (std::int64_t x = 0; x < p_.w.out[1]; x += p_.cols) {
                        if (!share.has(unit++)) continue;
                        if (chunk_ < p_.w.kernel[0])
                            step = window_in_parts(n, c, step);
                        else
                            tile(n, c, y, x, step++);
                    }
    }

    std::int64_t tile_count() const {
        const auto tiles = [](std::int64_t all, std::int64_t one) { return (all + one - 1) / one; };
        return p_.batch * tiles(p_.channels, p_.depth) * tiles(p_.w.out[0], p_.rows) * tiles(p_.w.out[1], p_.cols);
    }

    /// Windows are dealt out to cores, each whole on one of them; tiles become smaller where they are fewer.
    void choose_cores() {
        const std::int64_t lanes = l_.chip.vpu_lanes, blocks = (p_.channels + lanes - 1) / lanes;
        const std::int64_t windows = p_.batch * p_.w.out[0] * p_.w.out[1];
        const double cycles = static_cast<double>(windows * blocks * p_.w.kernel[0] * p_.w.kernel[1]) * static_cast<double>(gather_.ops().size() + 1);
        cores_ = cores_for(l_.chip, l_.options.cores, windows * blocks, cycles);
        while (tile_count() < cores_) {
            std::int64_t& part = p_.rows > 1 ? p_.rows : p_.depth > lanes ? p_.depth : p_.cols;
            if (part == 1) break;
            part = (part + 1) / 2;
        }
        cores_ = std::min(cores_, tile_count());
    }

    std::uint64_t bytes(const PoolPlan& p) const {
        const auto pixels = static_cast<std::uint64_t>(p.rows * p.cols);
        const auto depth = static_cast<std::uint64_t>(p.depth);
        const std::int64_t in_rows = chunk_ < p.w.kernel[0] ? chunk_ : p.in_rows();
        std::uint64_t total = 2 * align_up(static_cast<std::uint64_t>(in_rows * p.in_cols() * in_size_) * depth) +
                              (chunk_ < p.w.kernel[0] ? align_up(4 * depth) : 0) +
                              2 * align_up(pixels * depth * static_cast<std::uint64_t>(out_size_));
        if (!direct_) total += 2 * align_up(pixels * depth * 4);
        if (p.varying) total += 2 * align_up(pixels * 4);
        return total;
    }

    void choose_tile() {
        p_.rows = p_.w.out[0];
        p_.cols = p_.w.out[1];
        p_.depth = p_.channels;
        const auto fits = [&](std::uint64_t budget) { return bytes(p_) <= budget; };
        const auto half = static_cast<std::uint64_t>(l_.chip.spm_bytes) / 2;
        const auto lanes = l_.chip.vpu_lanes;
        chunk_ = p_.w.kernel[0];
        while (!fits(half) && p_.rows > 1) p_.rows = (p_.rows + 1) / 2;
        // One window over the whole input, as a global pooling has: its rows go in parts, whose partial results are carried on.
        const bool one = p_.w.out[0] * p_.w.out[1] == 1 && p_.w.dilation[0] == 1 && p_.w.in == p_.w.kernel;
        while (one && !fits(half) && p_.depth > 4 * lanes) p_.depth = (p_.depth + 1) / 2;
        while (one && !fits(half) && chunk_ > 1) chunk_ = (chunk_ + 1) / 2;
        while (!fits(half) && p_.depth > lanes) p_.depth = std::max(lanes, (p_.depth + 1) / 2);
        while (!fits(half) && p_.cols > 1) p_.cols = (p_.cols + 1) / 2;
        while (!fits(2 * half) && p_.depth > 1) p_.depth = (p_.depth + 1) / 2;
        if (!fits(2 * half))
            throw NodeError(id_, fmt::format("a window of {}x{} needs {} scratchpad bytes, the chip has {}; use a larger chip",
                                             p_.w.kernel[0], p_.w.kernel[1], bytes(p_), l_.chip.spm_bytes));
    }

    /// The buffers of one core, unused yet.
    void place() {
        std::uint32_t at = l_.scratchpad_base(bytes(p_));
        const auto take = [&](std::int64_t size) {
            const std::uint32_t addr = at;
            at += 2 * static_cast<std::uint32_t>(align_up(static_cast<std::uint64_t>(size)));
            return Ring(addr, (at - addr) / 2, 2);
        };
        in_ = take((chunk_ < p_.w.kernel[0] ? chunk_ : p_.in_rows()) * p_.in_cols() * p_.depth * in_size_);
        result_ = take(p_.rows * p_.cols * p_.depth * out_size_);
        if (!direct_) sums_ = take(p_.rows * p_.cols * p_.depth * 4);
        if (p_.varying) counts_ = take(p_.rows * p_.cols * 4);
        carried_ = at;
    }

    void place_counts() {
        std::vector<float> counts;
        const auto inside = [&](int d, std::int64_t o) {
            std::int64_t n = 0;
            const std::int64_t before = p_.padding_counts ? p_.w.pad_begin[d] : 0, after = p_.padding_counts ? p_.counted_end[static_cast<std::size_t>(d)] : 0;
            for (std::int64_t k = 0; k < p_.w.kernel[d]; ++k) {
                const std::int64_t i = o * p_.w.stride[d] + k * p_.w.dilation[d] - p_.w.pad_begin[d];
                n += i >= -before && i < p_.w.in[d] + after;
            }
            return n;
        };
        for (std::int64_t y = 0; y < p_.w.out[0]; ++y)
            for (std::int64_t x = 0; x < p_.w.out[1]; ++x) counts.push_back(static_cast<float>(inside(0, y) * inside(1, x)));
        std::vector<std::byte> image(counts.size() * 4);
        std::memcpy(image.data(), counts.data(), image.size());
        simkernel::ConstantSlot slot;
        slot.name = l_.graph.node(id_).name + "#counts";
        slot.dtype = Dtype::f32;
        counts_addr_ = l_.add_constant(std::move(image), slot).value;
    }

    void load_input(std::int64_t n, std::int64_t c, std::int64_t depth, std::int64_t y, std::int64_t x, const PoolPlan& t) {
        const auto s = nhwc_strides(x_);
        const std::int64_t y0 = y * t.w.stride[0] - t.w.pad_begin[0], x0 = x * t.w.stride[1] - t.w.pad_begin[1];
        const std::int64_t rows = t.in_rows(), cols = t.in_cols();
        const std::int64_t y1 = std::max<std::int64_t>(0, y0), y2 = std::min(t.w.in[0], y0 + rows);
        const std::int64_t x1 = std::max<std::int64_t>(0, x0), x2 = std::min(t.w.in[1], x0 + cols);
        const std::int64_t pixel = depth * in_size_;
        const auto size = static_cast<std::uint32_t>(in_size_);
        if (y1 != y0 || x1 != x0 || y2 != y0 + rows || x2 != x0 + cols) {
            // Padding: below everything for a maximum, what dequantises to zero for a sum.
            const std::int32_t zero = x_.quantization ? x_.quantization->zero_point : 0;
            const std::uint32_t pattern = p_.maximum      ? (in_size_ == 1 ? 0x80u : 0xFF80'0000u)
                                          : in_size_ == 1 ? static_cast<std::uint8_t>(zero)
                                                          : 0u;
            emit_fill(l_.emitter, in_.addr(), pattern, size, {{rows * cols * depth, 0, in_size_}});
        }
        if (y2 <= y1 || x2 <= x1) return;
        emit_load(l_.emitter, l_.addr_of(x_, n * s[0] + y1 * s[1] + x1 * s[2] + c * s[3]),
                  in_.addr() + static_cast<std::uint32_t>(((y1 - y0) * cols + (x1 - x0)) * pixel), size,
                  {{depth, s[3] * in_size_, in_size_}, {x2 - x1, s[2] * in_size_, pixel}, {y2 - y1, s[1] * in_size_, cols * pixel}});
    }

    Reduction reduction() const {
        Reduction r;
        r.op = p_.integer ? Reduce::max_i32 : p_.maximum ? Reduce::max_f32 : Reduce::add_f32;
        r.dims = 2;
        return r;
    }

    /// The one window of a channel block, `chunk_` rows at a time, in the order of one reduction: its bits do not depend on the parts.
    std::int64_t window_in_parts(std::int64_t n, std::int64_t c, std::int64_t step) {
        const auto s = nhwc_strides(x_), o = nhwc_strides(out_);
        const std::int64_t depth = std::min(p_.depth, p_.channels - c), pixel = depth * in_size_, cols = p_.w.in[1];
        const auto stride = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
        result_.advance();
        if (!direct_) sums_.advance();
        const VectorOperand out{result_.addr(), l_.type_of(out_), {stride(out_size_)}};
        const VectorOperand sums{direct_ ? 0 : sums_.addr(), Dtype::f32, {4}};
        for (std::int64_t row = 0; row < p_.w.in[0]; row += chunk_, ++step) {
            const std::int64_t rows = std::min(chunk_, p_.w.in[0] - row);
            l_.emitter.at(Stage::load, step, in_.advance());
            emit_load(l_.emitter, l_.addr_of(x_, n * s[0] + row * s[1] + c * s[3]), in_.addr(), static_cast<std::uint32_t>(in_size_),
                      {{depth, s[3] * in_size_, in_size_}, {cols, s[2] * in_size_, pixel}, {rows, s[1] * in_size_, cols * pixel}});
            in_.use(step);
            l_.emitter.at(Stage::compute, step);
            VectorShape shape;
            shape.count = {static_cast<std::uint32_t>(depth), static_cast<std::uint32_t>(cols), static_cast<std::uint32_t>(rows), 1, 1};
            Reduction r = reduction();
            if (row > 0) r.carry_in = carried_;
            r.carry_out = row + rows < p_.w.in[0];
            VectorOperand to = r.carry_out ? VectorOperand{carried_, direct_ ? l_.type_of(out_) : Dtype::f32, {}} : direct_ ? out : sums;
            emit_expr(l_.emitter, gather_, shape, {{in_.addr(), l_.type_of(x_), {stride(in_size_), stride(pixel), stride(cols * pixel)}}}, to, 0, r);
        }
        --step;
        if (!direct_) {
            VectorShape flat;
            flat.count[0] = static_cast<std::uint32_t>(depth);
            emit_expr(l_.emitter, finish_, flat, {sums}, out, sums_.addr());
        }
        l_.emitter.at(Stage::store, step);
        emit_store(l_.emitter, l_.addr_of(out_, n * o[0] + c * o[3]), result_.addr(), static_cast<std::uint32_t>(out_size_),
                   {{depth, o[3] * out_size_, out_size_}});
        return step + 1;
    }

    void tile(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x, std::int64_t step) {
        PoolPlan t = p_;
        t.rows = std::min(p_.rows, p_.w.out[0] - y);
        t.cols = std::min(p_.cols, p_.w.out[1] - x);
        const std::int64_t depth = std::min(p_.depth, p_.channels - c);
        l_.emitter.at(Stage::load, step, in_.advance());
        load_input(n, c, depth, y, x, t);
        in_.use(step);
        if (p_.varying) {
            l_.emitter.at(Stage::load, step, counts_.advance());
            emit_load(l_.emitter, counts_addr_ + static_cast<std::uint64_t>((y * p_.w.out[1] + x) * 4), counts_.addr(), 4,
                      {{t.cols, 4, 4}, {t.rows, p_.w.out[1] * 4, t.cols * 4}});
            counts_.use(step);
        }
        result_.advance();
        if (!direct_) sums_.advance();
        l_.emitter.at(Stage::compute, step);
        const auto i32 = [](std::int64_t v) { return static_cast<std::int32_t>(v); };
        const std::int64_t pixel = depth * in_size_, line = t.in_cols() * pixel;
        VectorShape shape;
        shape.count = {static_cast<std::uint32_t>(depth), static_cast<std::uint32_t>(t.w.kernel[1]),
                       static_cast<std::uint32_t>(t.w.kernel[0]), static_cast<std::uint32_t>(t.cols), static_cast<std::uint32_t>(t.rows)};
        VectorOperand in{in_.addr(),
                         l_.type_of(x_),
                         {i32(in_size_), i32(t.w.dilation[1] * pixel), i32(t.w.dilation[0] * line), i32(t.w.stride[1] * pixel),
                          i32(t.w.stride[0] * line)}};
        const auto packed = [&](std::uint32_t addr, Dtype type) {
            const auto size = static_cast<std::int64_t>(simkernel::size_of(type));
            return VectorOperand{addr, type, {i32(size), 0, 0, i32(depth * size), i32(t.cols * depth * size)}};
        };
        const VectorOperand out = packed(result_.addr(), l_.type_of(out_));
        if (direct_) {
            emit_expr(l_.emitter, gather_, shape, {in}, out, 0, reduction());
        } else {
            const VectorOperand sums = packed(sums_.addr(), Dtype::f32);
            emit_expr(l_.emitter, gather_, shape, {in}, sums, 0, reduction());
            VectorShape flat;
            flat.count = {shape.count[0], shape.count[3], shape.count[4], 1, 1};
            const auto squeeze = [](VectorOperand v) {
                v.stride = {v.stride[0], v.stride[3], v.stride[4], 0, 0};
                return v;
            };
            const VectorOperand counts{counts_.addr(), Dtype::f32, {0, 4, i32(t.cols * 4), 0, 0}};
            // The sums are read by the first descriptor only, so what lies between descriptors may replace them in place.
            emit_expr(l_.emitter, finish_, flat, {squeeze(sums), counts}, squeeze(out), sums_.addr());
        }
        l_.emitter.at(Stage::store, step);
        const auto s = nhwc_strides(out_);
        emit_store(l_.emitter, l_.addr_of(out_, n * s[0] + y * s[1] + x * s[2] + c * s[3]), result_.addr(),
                   static_cast<std::uint32_t>(out_size_),
                   {{depth, s[3] * out_size_, out_size_},
                    {t.cols, s[2] * out_size_, depth * out_size_},
                    {t.rows, s[1] * out_size_, t.cols * depth * out_size_}});
    }

    Lowering& l_;
    NodeId id_;
    PoolPlan p_;
    Operand x_, out_;
    Epilogue tail_;
    Expr gather_, finish_;
    std::int64_t in_size_ = 4, out_size_ = 4;
    bool direct_ = false;
    Ring in_, result_, sums_, counts_;
    std::uint64_t counts_addr_ = 0;
    std::int64_t chunk_ = 1;  ///< rows of the window at a time
    std::uint32_t carried_ = 0;
    std::int64_t cores_ = 1;
};

}  // namespace

void lower_pool(Lowering& l, NodeId id) {
    const Node& node = l.graph.node(id);
    const Operand x = l.operand(id, node.inputs[0]);
    const Epilogue tail = follow(l, node.outputs[0]);
    const std::vector<std::int64_t> spatial(x.shape.begin() + 2, x.shape.end());
    PoolPlan p;
    const bool global = node.op.starts_with("Global");
    p.w = global ? Window{} : window_of(l.graph, id, spatial, node.integers("kernel_shape"));
    if (global) {
        if (spatial.empty() || spatial.size() > 2)
            throw NodeError(id, fmt::format("{} spatial dimensions are not supported, allowed: 1 or 2", spatial.size()));
        for (std::size_t i = 0; i < spatial.size(); ++i) p.w.in[i + 2 - spatial.size()] = p.w.kernel[i + 2 - spatial.size()] = spatial[i];
    }
    p.batch = x.shape[0];
    p.channels = x.shape[1];
    p.maximum = node.op.ends_with("MaxPool");
    if (node.op.ends_with("LpPool")) {
        p.norm = node.integer("p", 2);
        if (p.norm != 1 && p.norm != 2) throw NodeError(id, fmt::format("p = {} has no instruction; use 1 or 2", p.norm));
    }
    const bool raw = l.type_of(x) != Dtype::f32 && !x.quantization;
    if (raw && (!p.maximum || l.type_of(x) != Dtype::i8))
        throw NodeError(id, fmt::format("pooling of {} is not supported; use float32 or dequantise first",
                                        name_of(l.graph.value(node.inputs[0]).dtype)));
    p.integer = p.maximum && (raw || (x.quantization && tail.quantization == x.quantization && tail.activations.empty()));
    const bool padded = p.w.pad_begin[0] || p.w.pad_begin[1] || p.w.pad_end[0] || p.w.pad_end[1];
    if (p.norm == 0 && !p.maximum && padded) {
        // With count_include_pad the given padding counts, and what ceil_mode adds past it does not.
        p.padding_counts = node.integer("count_include_pad", 0) != 0;
        p.varying = !p.padding_counts || p.w.ceil_extended;
        const auto pads = node.integers("pads");
        for (std::size_t i = 0; i < spatial.size() && pads.size() == 2 * spatial.size(); ++i)
            p.counted_end[i + 2 - spatial.size()] = pads[spatial.size() + i];
        if (!node.has("pads")) p.counted_end = p.w.ceil_extended ? std::array<std::int64_t, 2>{0, 0} : p.w.pad_end;
    }
    std::vector<int> perm{0, 2, 1};
    if (x.shape.size() == 4) perm = {0, 2, 3, 1};
    const Operand out = l.materialize(id, tail.output, perm);
    l.begin_layer();
    PoolEmitter(l, id, p, x, out, tail).run();
    simkernel::Layer layer;
    layer.precision = tail.quantization || p.integer ? "int8" : "fp32";
    layer.mapping = fmt::format("window {}x{}, {} channels on {} lanes", p.w.kernel[0], p.w.kernel[1], p.channels, l.chip.vpu_lanes);
    std::vector<NodeId> nodes{id};
    nodes.insert(nodes.end(), tail.nodes.begin(), tail.nodes.end());
    l.end_layer(std::move(layer), id, std::move(nodes), {x}, tail.output);
}

}  // namespace assay::workloads
