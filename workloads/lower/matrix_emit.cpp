#include "workloads/lower/matrix_emit.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "simkernel/exec/decode.hpp"
#include "simkernel/types.hpp"
#include "support/error.hpp"
#include "workloads/lower/matrix_weights.hpp"
#include "workloads/lower/narrow_weights.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;

/// An output tile: where it starts and how large it is.
struct Tile {
    std::int64_t n = 0, y = 0, x = 0, batch = 1, rows = 1, cols = 1;
    std::int64_t in_rows(const Window& w) const { return (rows - 1) * w.stride[0] + w.reach(0); }
    std::int64_t in_cols(const Window& w) const { return (cols - 1) * w.stride[1] + w.reach(1); }
    std::int64_t m() const { return batch * rows * cols; }
};

class MatrixEmitter {
public:
    MatrixEmitter(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan, const Drain& drain, bool several)
        : l_(l), several_(several), s_(spec), p_(plan), drain_(drain) {
        if (s_.weights) packed_ = pack_weights(l, s_, p_);
        place_params();
    }

    void run(std::uint32_t core, const MatrixPart& part) {
        l_.emitter.set_core(core);
        core_ = core;
        part_ = part;
        place_buffers();
        std::int64_t unit = 0;
        for (const Repeat& repeat : s_.repeats) {
            repeat_ = &repeat;
            const Window& w = s_.window;
            for (std::int64_t n = 0; n < s_.batch; n += p_.tile_batch)
                for (std::int64_t y = 0; y < w.out[0]; y += p_.tile_rows)
                    for (std::int64_t x = 0; x < w.out[1]; x += p_.tile_cols) {
                        if (!part_.tiles.has(unit++)) continue;
                        tile_ = {n,
                                 y,
                                 x,
                                 std::min(p_.tile_batch, s_.batch - n),
                                 std::min(p_.tile_rows, w.out[0] - y),
                                 std::min(p_.tile_cols, w.out[1] - x)};
                        emit_blocks();
                    }
        }
    }

private:
    /// Each core starts with another block, so that cores with the same blocks ask for different columns of memory: a block's lie in some of the
    /// HBM's channels.
    void emit_blocks() {
        const std::int64_t count = part_.blocks.count();
        for (std::int64_t i = 0; i < count; ++i) {
            first_ = i == 0;
            last_ = i + 1 == count;
            emit_block(static_cast<std::size_t>(part_.blocks.begin + (i + core_) % count));
        }
    }

    void place_params() {
        if (drain_.params.empty()) return;
        std::vector<std::byte> image;
        for (const Block& b : p_.blocks) {
            params_offset_.push_back(image.size());
            for (const auto& words : drain_.params) {
                const std::size_t at = image.size();
                image.resize(at + static_cast<std::size_t>(b.count) * 4);
                std::memcpy(&image[at], &words[static_cast<std::size_t>(b.first)], static_cast<std::size_t>(b.count) * 4);
            }
        }
        simkernel::ConstantSlot slot;
        slot.name = l_.graph.node(s_.main).name + "#params";
        slot.dtype = drain_.types[0];
        params_total_ = image.size();
        params_addr_ = l_.add_constant(std::move(image), slot).value;
    }

    /// The buffers of one core, unused yet.
    void place_buffers() {
        step_ = 0;
        image_key_ = weight_key_ = params_key_ = {};
        extras_.clear();
        std::uint32_t at = l_.scratchpad_base(p_.total_bytes());
        const auto ring = [&](std::uint64_t bytes, int count) {
            const Ring r(at, static_cast<std::uint32_t>(bytes), count);
            at += static_cast<std::uint32_t>(bytes) * static_cast<std::uint32_t>(count);
            return r;
        };
        stage_ = ring(p_.stage_bytes, 2);
        image_ = ring(p_.image_bytes, 2);
        weights_ = ring(p_.weight_bytes, p_.weight_buffers);
        weight_stage_ = ring(p_.weight_stage_bytes, p_.weight_buffers);
        params_ = ring(p_.params_bytes, p_.resident_params ? 1 : 2);
        out_ = ring(p_.out_bytes, 2);
        for (const std::uint64_t bytes : p_.extra_bytes) extras_.push_back(ring(bytes, 2));
        temp_ = at;
        acc_ = Ring(simkernel::kAccBit, static_cast<std::uint32_t>(p_.acc_bytes), 2);
    }

    // --- image -------------------------------------------------------------------------------------------------------------------

    /// Channels that the tile in the scratchpad holds for this block and slab: first and count.
    std::pair<std::int64_t, std::int64_t> slice(const Block& b, std::int64_t slab) const {
        if (p_.whole_depth) return {0, s_.channels};
        return {b.channel + slab * p_.slab, slab_depth(p_, b, slab)};
    }

    void ensure_image(const Block& b, std::int64_t slab) {
        const auto [first, depth] = slice(b, slab);
        const std::vector<std::int64_t> key{repeat_->x, tile_.n, tile_.y, tile_.x, first, depth};
        if (key != image_key_) {
            image_key_ = key;
            load_image(first, depth);
        }
        image_.use(step_);
    }

    void load_image(std::int64_t first, std::int64_t depth) {
        const Window& w = s_.window;
        const std::int64_t size = p_.source, pitch = depth * size, rows = tile_.in_rows(w), cols = tile_.in_cols(w), line = cols * pitch,
                           picture = rows * line;
        const bool staged = p_.stage_bytes > 0;
        const std::int64_t stage_last = staged ? stage_.advance() : kNeverUsed, image_last = image_.advance();
        const std::uint32_t to = staged ? stage_.addr() : image_.addr();
        l_.emitter.at(Stage::load, step_, staged ? stage_last : image_last);
        const std::int64_t y0 = tile_.y * w.stride[0] - w.pad_begin[0], x0 = tile_.x * w.stride[1] - w.pad_begin[1];
        const std::int64_t y1 = std::clamp<std::int64_t>(y0, 0, w.in[0]), y2 = std::clamp<std::int64_t>(y0 + rows, y1, w.in[0]);
        const std::int64_t x1 = std::clamp<std::int64_t>(x0, 0, w.in[1]), x2 = std::clamp<std::int64_t>(x0 + cols, x1, w.in[1]);
        const std::int64_t above = std::min(y1 - y0, rows), below = rows - above - (y2 - y1), left = std::min(x1 - x0, cols),
                           right = cols - left - (x2 - x1);
        const std::uint32_t zero = s_.x.quantization && size == 1 ? static_cast<std::uint8_t>(s_.x.quantization->zero_point) : 0u;
        // Padding reads as zero: four strips around what is loaded.
        const auto strip = [&](std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width) {
            if (height <= 0 || width <= 0) return;
            emit_fill(l_.emitter, to + static_cast<std::uint32_t>(row * line + col * pitch), zero, static_cast<std::uint32_t>(size),
                      {{width * depth, 0, size}, {height, 0, line}, {tile_.batch, 0, picture}});
        };
        strip(0, 0, above, cols);
        strip(rows - below, 0, below, cols);
        strip(above, 0, y2 - y1, left);
        strip(above, cols - right, y2 - y1, right);
        if (y2 > y1 && x2 > x1) {
            const auto& t = s_.x_strides;
            emit_load(l_.emitter, l_.addr_of(s_.x, repeat_->x + tile_.n * t[0] + y1 * t[1] + x1 * t[2] + first * t[3]),
                      to + static_cast<std::uint32_t>(above * line + left * pitch), static_cast<std::uint32_t>(size),
                      {{depth, t[3] * size, size},
                       {x2 - x1, t[2] * size, pitch},
                       {y2 - y1, t[1] * size, line},
                       {tile_.batch, t[0] * size, picture}});
        }
        if (!staged) return;
        stage_.use(step_);
        l_.emitter.at(Stage::convert, step_, image_last);
        convert(to, l_.type_of(s_.x), s_.x.quantization, image_.addr(), p_.plane_bytes, p_.planes, tile_.batch * rows * cols * depth, s_.format.x_scale);
    }

    /// fp32 (or integers to dequantise), divided by `scale`, to the array's float type, or integers to int8 less their zero point. Of several
    /// planes (bf16, int8) each is the nearest to what the planes before leave.
    void convert(std::uint32_t from, Dtype type, const std::optional<Quantization>& quantization, std::uint32_t to,
                 std::uint64_t plane_bytes, int planes, std::int64_t elements, double scale) {
        using simkernel::Uop;
        for (int plane = 0; plane < planes; ++plane) {
            Expr e;
            Expr::Ref x = Expr::stream(0);
            if (s_.integer && type == Dtype::f32)  // calibrated steps: NaN becomes 0 of the 8 bits
                x = emit_round(e, e.op(Uop::mul_f32, x, Expr::imm(1 / quantization->scale)), quantization->zero_point);
            else if (s_.integer)
                x = e.op(Uop::sub_i32, x, Expr::imm_i(quantization->zero_point));
            else if (quantization)
                x = emit_dequantize(e, x, *quantization);
            if (!s_.integer && scale != 1) x = e.op(Uop::mul_f32, x, Expr::imm(static_cast<float>(1 / scale)));
            for (int i = 0; i < plane; ++i) {
                if (s_.integer) {
                    const auto near = e.op(Uop::min_i32, e.op(Uop::max_i32, x, Expr::imm_i(-128)), Expr::imm_i(127));
                    x = e.op(Uop::sub_i32, x, near);
                } else {
                    const auto near = e.op(Uop::to_bf16, x);
                    x = e.op(Uop::sub_f32, x, near);
                }
            }
            e.result = x;
            VectorShape shape;
            shape.count[0] = static_cast<std::uint32_t>(elements);
            VectorOperand in{from, type, {static_cast<std::int32_t>(simkernel::size_of(type)), 0, 0, 0, 0}};
            VectorOperand out{to + static_cast<std::uint32_t>(plane_bytes * static_cast<std::uint64_t>(plane)),
                              s_.integer ? Dtype::i8 : s_.format.type,
                              {static_cast<std::int32_t>(p_.element), 0, 0, 0, 0}};
            emit_expr(l_.emitter, e, shape, {in}, out, 0);
        }
    }

    // --- weights -----------------------------------------------------------------------------------------------------------------

    std::int64_t area() const { return s_.window.kernel[0] * s_.window.kernel[1]; }

    /// Scratchpad address of row 0 of (block, slab, plane), or of the piece that starts at `first_k`.
    std::uint32_t ensure_weights(std::size_t b, std::int64_t slab, int plane, std::int64_t first_k, std::int64_t rows) {
        const Block& block = p_.blocks[b];
        if (s_.dynamic) return ensure_dynamic(b, slab, plane);
        const std::int64_t inside = packed_.offset(s_, p_, block, slab, plane), row = block.count * p_.element;
        std::vector<std::int64_t> key;
        std::int64_t from = 0, bytes = 0, result = 0;  // bytes on the array
        switch (p_.weight_mode) {
            case WeightMode::resident:
                key = {0};
                from = packed_.block_offset[first_block()];
                bytes = packed_.block_offset[last_block()] + packed_.block_bytes[last_block()] - from;
                result = packed_.block_offset[b] + inside - from;
                break;
            case WeightMode::block:
                key = {static_cast<std::int64_t>(b)};
                from = packed_.block_offset[b];
                bytes = packed_.block_bytes[b];
                result = inside;
                break;
            case WeightMode::piece:
                key = {static_cast<std::int64_t>(b), slab, plane, first_k};
                from = packed_.block_offset[b] + inside + first_k * row;
                bytes = rows * row;
                break;
        }
        if (key != weight_key_) {
            weight_key_ = key;
            if (s_.format.scaling == Scaling::weights_8) {
                load_w8(from / p_.element, bytes / p_.element);
            } else if (s_.format.scaling == Scaling::weights_4) {
                load_w4(b, slab * p_.slab + first_k, rows);
            } else {
                l_.emitter.at(Stage::load, step_, weights_.advance());
                load_weights(from, bytes);
            }
        }
        weights_.use(step_);
        return weights_.addr() + static_cast<std::uint32_t>(result);
    }

    /// Each core begins a bank of the HBM further into its weights: blocks often lie a multiple of all banks apart, and cores that read theirs side by
    /// side would close each other's rows with every burst.
    void load_weights(std::int64_t from, std::int64_t bytes) {
        const std::int64_t skip = core_ * l_.chip.hbm_channels * l_.chip.hbm_row_bytes;
        const auto piece = [&](std::int64_t at, std::int64_t length) {
            emit_load(l_.emitter, packed_.addr + static_cast<std::uint64_t>(from + at), weights_.addr() + static_cast<std::uint32_t>(at), 1, {{length, 1, 1}});
        };
        if (skip == 0 || bytes < 2 * skip) return piece(0, bytes);
        piece(skip, bytes - skip);
        piece(0, skip);
    }

    void load_bytes(std::int64_t from, std::uint32_t to, std::int64_t bytes) {
        emit_load(l_.emitter, packed_.addr + static_cast<std::uint64_t>(from), to, 1, {{bytes, 1, 1}});
    }

    void load_w8(std::int64_t first, std::int64_t elements) {
        l_.emitter.at(Stage::load, step_, weight_stage_.advance());
        load_bytes(first, weight_stage_.addr(), elements);
        weight_stage_.use(step_);
        l_.emitter.at(Stage::convert, step_, weights_.advance());
        widen_w8(l_.emitter, weight_stage_.addr(), weights_.addr(), elements);
    }

    /// What the weight mode wants: all blocks of this core, block `b`, or `rows` rows of it from `first`, which begins a group.
    void load_w4(std::size_t b, std::int64_t first, std::int64_t rows) {
        l_.emitter.at(Stage::load, step_, weight_stage_.advance());
        const std::uint32_t stage = weight_stage_.addr();
        const auto in = [](std::uint32_t base, std::int64_t bytes) { return base + static_cast<std::uint32_t>(bytes); };
        if (p_.weight_mode == WeightMode::piece) {
            const Block& block = p_.blocks[b];
            const std::int64_t from = packed_.narrow_offset[b], steps = nibble_bytes(rows, block.count);
            load_bytes(from + first / 2 * block.count, stage, (rows + 1) / 2 * block.count);
            load_bytes(from + nibble_bytes(block.depth, block.count) + first / kW4Group * block.count * 2, in(stage, steps),
                       (rows + kW4Group - 1) / kW4Group * block.count * 2);
            weight_stage_.use(step_);
            l_.emitter.at(Stage::convert, step_, weights_.advance());
            return widen_w4(l_.emitter, stage, in(stage, steps), weights_.addr(), rows, block.count);
        }
        const bool all = p_.weight_mode == WeightMode::resident;
        const std::size_t begin = all ? first_block() : b, end = (all ? last_block() : b) + 1;
        const std::int64_t from = packed_.narrow_offset[begin], array = packed_.block_offset[begin];
        const Block& last = p_.blocks[end - 1];
        load_bytes(from, stage, packed_.narrow_offset[end - 1] + nibble_bytes(last.depth, last.count) + step_bytes(last.depth, last.count) - from);
        weight_stage_.use(step_);
        l_.emitter.at(Stage::convert, step_, weights_.advance());
        for (std::size_t i = begin; i < end; ++i) {
            const Block& block = p_.blocks[i];
            const std::uint32_t at = in(stage, packed_.narrow_offset[i] - from);
            widen_w4(l_.emitter, at, in(at, nibble_bytes(block.depth, block.count)), in(weights_.addr(), packed_.block_offset[i] - array), block.depth,
                     block.count);
        }
    }

    std::uint32_t ensure_dynamic(std::size_t b, std::int64_t slab, int plane) {
        const Block& block = p_.blocks[b];
        const std::int64_t depth = slab_depth(p_, block, slab);
        const std::uint64_t plane_bytes = align_up(static_cast<std::uint64_t>(p_.depth_of(block) * block.count * p_.element));
        const std::vector<std::int64_t> key{repeat_->w, static_cast<std::int64_t>(b), slab};
        if (key != weight_key_) {
            weight_key_ = key;
            const DynamicWeights& d = *s_.dynamic;
            const std::int64_t size = static_cast<std::int64_t>(simkernel::size_of(l_.type_of(d.operand)));
            l_.emitter.at(Stage::load, step_, weight_stage_.advance());
            emit_load(l_.emitter, l_.addr_of(d.operand, repeat_->w + slab * p_.slab * d.k_stride + block.first * d.n_stride),
                      weight_stage_.addr(), static_cast<std::uint32_t>(size),
                      {{block.count, d.n_stride * size, size}, {depth, d.k_stride * size, block.count * size}});
            weight_stage_.use(step_);
            l_.emitter.at(Stage::convert, step_, weights_.advance());
            convert(weight_stage_.addr(), l_.type_of(d.operand), d.operand.quantization, weights_.addr(), plane_bytes, p_.weight_planes,
                    depth * block.count, s_.format.w_scale.empty() ? 1.0 : s_.format.w_scale[0]);
        }
        weights_.use(step_);
        return weights_.addr() + static_cast<std::uint32_t>(plane_bytes * static_cast<std::uint64_t>(plane));
    }

    // --- compute -----------------------------------------------------------------------------------------------------------------

    void emit_block(std::size_t b) {
        const Block& block = p_.blocks[b];
        acc_.advance();
        bool chained = false;
        if (several_ && step_ == 0 && !s_.dynamic && p_.weight_mode != WeightMode::piece) {
            // The first image waits for other cores; what waits for nobody goes before it in the queue.
            (void)ensure_weights(b, 0, p_.passes[0].second, 0, 0);
            if (!drain_.params.empty()) (void)ensure_params(b);
        }
        if (p_.single_segment()) {
            ensure_image(block, 0);
            for (const auto& [plane, weight_plane] : p_.passes) {
                const std::uint32_t w = ensure_weights(b, 0, weight_plane, 0, 0);
                for (const Chunk& c : chunks(block, 0))
                    matmul(block, 0, plane, c, w + static_cast<std::uint32_t>(c.first * block.count * p_.element), chained);
            }
        } else {
            bool first = true;
            for (const auto& [plane, weight_plane] : p_.passes)
                for (std::int64_t slab = 0; slab < p_.slabs_of(block); ++slab) {
                    const std::vector<Chunk> all = chunks(block, slab);
                    for (std::size_t i = 0; i < all.size();) {
                        // A piece: as many chunks as the weight buffer holds. Without pieces, the slab's all.
                        std::size_t end = i;
                        std::int64_t rows = 0;
                        while (end < all.size() && (p_.weight_mode != WeightMode::piece || s_.dynamic || rows + all[end].k <= p_.piece_k))
                            rows += all[end++].k;
                        ASSAY_CHECK(end > i, "a piece holds at least one chunk");
                        if (!first) ++step_;
                        first = false;
                        ensure_image(block, slab);
                        std::uint32_t w = ensure_weights(b, slab, weight_plane, all[i].first, rows);
                        if (p_.weight_mode == WeightMode::piece && !s_.dynamic)
                            w -= static_cast<std::uint32_t>(all[i].first * block.count * p_.element);
                        for (; i < end; ++i)
                            matmul(block, slab, plane, all[i], w + static_cast<std::uint32_t>(all[i].first * block.count * p_.element),
                                   chained);
                    }
                }
        }
        drain_block(b);
        ++step_;
    }

    const std::vector<Chunk>& chunks(const Block& block, std::int64_t slab) {
        const auto [first, depth] = slice(block, slab);
        const std::int64_t pitch = depth * p_.element, line = tile_.in_cols(s_.window) * pitch, used = slab_depth(p_, block, slab);
        auto& cached = chunks_[{used, pitch, line, block.group_k}];
        if (cached.empty())
            cached = chunks_of(s_, used, p_.element, pitch, line, l_.chip.mxu_rows, p_.weight_mode == WeightMode::piece ? p_.piece_k : 0,
                               block.group_k != 0);
        return cached;
    }

    void matmul(const Block& block, std::int64_t slab, int plane, const Chunk& c, std::uint32_t weights, bool& chained) {
        const auto [first, depth] = slice(block, slab);
        const Window& w = s_.window;
        const std::int64_t pitch = depth * p_.element, line = tile_.in_cols(w) * pitch,
                           offset = (block.channel + slab * p_.slab - first) * p_.element;
        simkernel::MatmulFields f;
        f.dtype = static_cast<std::uint32_t>(s_.integer ? Dtype::i8 : s_.format.type);
        f.accumulate = chained;
        f.a_addr = image_.addr() + static_cast<std::uint32_t>(p_.plane_bytes) * static_cast<std::uint32_t>(plane) +
                   static_cast<std::uint32_t>(offset + c.offset);
        f.w_addr = weights;
        f.w_stride = static_cast<std::uint32_t>(block.count * p_.element);
        f.acc_addr = acc_.addr();
        f.acc_stride = static_cast<std::uint32_t>(block.count * 4);
        f.m_count = {static_cast<std::uint32_t>(tile_.cols), static_cast<std::uint32_t>(tile_.rows),
                     static_cast<std::uint32_t>(tile_.batch)};
        f.a_m_stride = {static_cast<std::int32_t>(w.stride[1] * pitch), static_cast<std::int32_t>(w.stride[0] * line),
                        static_cast<std::int32_t>(tile_.in_rows(w) * line)};
        f.k_count = c.count;
        f.a_k_stride = c.stride;
        f.n_count = static_cast<std::uint32_t>(block.count);
        if (block.group_k) {
            f.group_k = block.group_k;
            f.group_n = block.group_n;
            f.group_period = static_cast<std::uint32_t>(block.depth);
        }
        l_.emitter.at(Stage::compute, step_);
        l_.emitter.emit(f);
        chained = true;
    }

    // --- drain -------------------------------------------------------------------------------------------------------------------

    std::uint32_t ensure_params(std::size_t b) {
        const std::vector<std::int64_t> key{p_.resident_params ? 0 : static_cast<std::int64_t>(b)};
        if (key != params_key_) {
            params_key_ = key;
            l_.emitter.at(Stage::load, step_, params_.advance());
            const std::uint64_t from = p_.resident_params ? 0 : params_offset_[b];
            const std::uint64_t bytes =
                p_.resident_params ? params_total_ : static_cast<std::uint64_t>(p_.blocks[b].count) * 4 * drain_.params.size();
            emit_load(l_.emitter, params_addr_ + from, params_.addr(), 1, {{static_cast<std::int64_t>(bytes), 1, 1}});
        }
        params_.use(step_);
        return params_.addr() + static_cast<std::uint32_t>(p_.resident_params ? params_offset_[b] : 0);
    }

    /// The tile of each further operand, laid out as the block of the result. With several repeats an operand lies as the result does.
    void load_extras(const Block& block, std::vector<VectorOperand>& streams) {
        if (!s_.extras.empty()) streams.resize(kFirstExtra);
        for (std::size_t i = 0; i < s_.extras.size(); ++i) {
            const std::int64_t size = p_.extra_sizes[i], pixel = block.count * size;
            const auto& t = s_.extra_strides[i];
            l_.emitter.at(Stage::load, step_, extras_[i].advance());
            const std::int64_t at = repeat_->y + tile_.n * t[0] + tile_.y * t[1] + tile_.x * t[2] + block.first * t[3];
            emit_load(l_.emitter, l_.addr_of(s_.extras[i], at), extras_[i].addr(), static_cast<std::uint32_t>(size),
                      {{block.count, t[3] * size, size},
                       {tile_.cols, t[2] * size, pixel},
                       {tile_.rows, t[1] * size, tile_.cols * pixel},
                       {tile_.batch, t[0] * size, tile_.rows * tile_.cols * pixel}});
            extras_[i].use(step_);
            streams.push_back({extras_[i].addr(),
                               l_.type_of(s_.extras[i]),
                               {static_cast<std::int32_t>(size), static_cast<std::int32_t>(pixel), 0, 0, 0}});
        }
    }

    void drain_block(std::size_t b) {
        const Block& block = p_.blocks[b];
        const auto columns = static_cast<std::int32_t>(block.count);
        const auto size = static_cast<std::int32_t>(simkernel::size_of(l_.type_of(s_.out)));
        std::vector<VectorOperand> streams{{acc_.addr(), s_.integer ? Dtype::i32 : Dtype::f32, {4, columns * 4, 0, 0, 0}}};
        if (!drain_.params.empty()) {
            const std::uint32_t params = ensure_params(b);
            for (std::size_t i = 0; i < drain_.params.size(); ++i)
                streams.push_back(
                    {params + static_cast<std::uint32_t>(i) * static_cast<std::uint32_t>(columns) * 4, drain_.types[i], {4, 0, 0, 0, 0}});
        }
        load_extras(block, streams);
        ASSAY_CHECK(!p_.whole_output || part_.blocks.count() == static_cast<std::int64_t>(p_.blocks.size()), "a core with a part of the outputs stores them by block");
        if (!p_.whole_output || first_) out_.advance();
        const std::int64_t held = p_.whole_output ? s_.outputs : block.count, at = p_.whole_output ? block.first : 0;
        VectorShape shape;
        shape.count = {static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(tile_.m()), 1, 1, 1};
        VectorOperand out{out_.addr() + static_cast<std::uint32_t>(at * size),
                          l_.type_of(s_.out),
                          {size, static_cast<std::int32_t>(held) * size, 0, 0, 0}};
        l_.emitter.at(Stage::drain, step_);
        emit_plan(l_.emitter, drain_.plan, shape, streams, out, temp_);
        if (p_.whole_output && !last_) return;
        l_.emitter.at(Stage::store, step_);
        const auto& t = s_.out_strides;
        const std::int64_t first = p_.whole_output ? 0 : block.first, pixel = held * size;
        emit_store(l_.emitter, l_.addr_of(s_.out, repeat_->y + tile_.n * t[0] + tile_.y * t[1] + tile_.x * t[2] + first * t[3]),
                   out_.addr(), static_cast<std::uint32_t>(size),
                   {{held, t[3] * size, size},
                    {tile_.cols, t[2] * size, pixel},
                    {tile_.rows, t[1] * size, tile_.cols * pixel},
                    {tile_.batch, t[0] * size, tile_.rows * tile_.cols * pixel}});
    }

    std::size_t first_block() const { return static_cast<std::size_t>(part_.blocks.begin); }
    std::size_t last_block() const { return static_cast<std::size_t>(part_.blocks.end - 1); }

    Lowering& l_;
    const bool several_;  ///< cores have a part
    MatrixPart part_;
    std::int64_t core_ = 0;
    bool first_ = true, last_ = true;  ///< block of a tile on this core
    const MatrixSpec& s_;
    const MatrixPlan& p_;
    const Drain& drain_;
    PackedWeights packed_;
    std::vector<std::size_t> params_offset_;
    std::uint64_t params_addr_ = 0, params_total_ = 0;
    Ring stage_, image_, weights_, weight_stage_, params_, out_, acc_;
    std::vector<Ring> extras_;
    std::uint32_t temp_ = 0;
    const Repeat* repeat_ = nullptr;
    Tile tile_;
    std::int64_t step_ = 0;
    std::vector<std::int64_t> image_key_, weight_key_, params_key_;
    std::map<std::array<std::int64_t, 4>, std::vector<Chunk>> chunks_;
};

}  // namespace

void emit_matrix_tiles(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan, const Drain& drain, const std::vector<MatrixPart>& parts) {
    MatrixEmitter emitter(lowering, spec, plan, drain, parts.size() > 1);
    if (parts.size() > 1) lowering.emitter.begin_disjoint_stores();
    for (std::uint32_t core = 0; core < parts.size(); ++core) emitter.run(core, parts[core]);
    lowering.emitter.end_disjoint_stores();
    lowering.emitter.set_core(0);
}

}  // namespace assay::workloads
