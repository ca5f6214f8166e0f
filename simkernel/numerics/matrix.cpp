// The matrix unit at host-vector speed: activations and weights are repacked into contiguous panels that the kernels stream through.
#include "simkernel/numerics/matrix.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "simkernel/numerics/kernels.hpp"
#include "simkernel/numerics/matrix_plan.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel {
namespace {

/// Rows packed together: both tile heights (6 and 12) divide it, and 24 rows of K = 128 floats (12 KiB) stay in L1 beside one weight panel.
constexpr std::size_t kBlockRows = 24;
/// Multiply-accumulates below which a second thread costs more than it saves: about 10 us of one core, the price of waking it.
constexpr std::size_t kParallelMacs = 256 * 1024;
/// Up to so many rows the threads share a product by columns: each packs its own weights, which by rows one thread would do for all.
constexpr std::size_t kFewRows = 256;
/// Elements by which packed rows are padded: kernels read whole vectors of at most 16 words.
constexpr std::size_t kPad = 16;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

struct Buffers {
    std::vector<float> floats;
    std::vector<std::int32_t> words;
    std::vector<std::byte> rows, panel, tile;
};
/// Of this thread, kept between descriptors. On the heap: the caller may be a SystemC process with a small stack.
Buffers& buffers() {
    thread_local Buffers instance;
    return instance;
}

template <class T>
T* reserve(std::vector<T>& buffer, std::size_t count) {
    if (buffer.size() < count) buffer.resize(count);
    return buffer.data();
}

/// Elements of the descriptor's float type as the kernels take them.
void widen(const KernelTable& kernel, const MatmulFields& f, const std::byte* from, float* to, std::size_t count) {
    const auto type = static_cast<Dtype>(f.dtype);
    if (type == Dtype::bf16) kernel.widen_bf16(from, to, count);
    else kernel.widen_narrow(type, from, to, count);
}

/// One slice of a descriptor packed for the kernels: rows of activations and panels of `kernel.columns` columns of weights.
class SliceRunner {
public:
    SliceRunner(const KernelTable& kernel, const MatmulFields& f, const Slice& slice, const std::byte* a, const std::byte* w, std::byte* acc)
        : kernel_(kernel),
          f_(f),
          slice_(slice),
          a_(a),
          w_(w),
          acc_(acc),
          floating_(is_floating(f)),
          group_(floating_ ? 1 : kernel.i8_group),
          steps_((slice.k.size() + group_ - 1) / group_),
          // The last group's missing k meet weights of zero, whatever the row holds there.
          row_bytes_(round_up(steps_ * 4, 4 * kPad)),
          panel_bytes_(steps_ * kernel.columns * 4 + kernel.columns * sizeof(std::int32_t)) {}

    std::size_t panels() const { return (slice_.columns + kernel_.columns - 1) / kernel_.columns; }
    std::size_t row_bytes() const { return row_bytes_; }
    std::size_t panel_bytes() const { return panel_bytes_; }

    void pack_rows(std::size_t first, std::size_t count, std::byte* to) const {
        for (std::size_t r = 0; r < count; ++r) {
            const std::byte* row = a_ + row_offset(f_, first + r);
            std::byte* at = to + r * row_bytes_;
            for (const Run& run : slice_.runs) {
                if (floating_) widen(kernel_, f_, row + run.offset, reinterpret_cast<float*>(at), run.count);
                else kernel_.pack_i8_row(row + run.offset, at, run.count);
                at += run.count * (4 / group_);
            }
        }
    }

    /// Panel p: its steps, then the bias of its columns. Missing columns are zero (their sums are discarded).
    void pack_panel(std::size_t p, std::byte* to) const {
        const std::size_t column = p * kernel_.columns, count = std::min(kernel_.columns, slice_.columns - column);
        const std::byte* base = w_ + (slice_.first_column + column) * element_bytes(f_);
        if (count < kernel_.columns) std::memset(to, 0, panel_bytes_);
        auto* bias = reinterpret_cast<std::int32_t*>(to + steps_ * kernel_.columns * 4);
        std::memset(bias, 0, kernel_.columns * sizeof(std::int32_t));
        for (std::size_t s = 0; s < steps_; ++s, to += kernel_.columns * 4) {
            if (floating_) {
                widen(kernel_, f_, base + std::size_t{slice_.k[s]} * f_.w_stride, reinterpret_cast<float*>(to), count);
                continue;
            }
            std::array<const std::byte*, 4> rows{};
            for (std::size_t g = 0; g < group_ && group_ * s + g < slice_.k.size(); ++g) rows[g] = base + std::size_t{slice_.k[group_ * s + g]} * f_.w_stride;
            kernel_.pack_i8_step(rows.data(), to, count, bias);
        }
    }

    /// Packed rows [first, first + rows) against packed panel p.
    void multiply(const std::byte* packed_rows, std::size_t first, std::size_t rows, const std::byte* panel, std::size_t p) const {
        const std::size_t column = p * kernel_.columns, count = std::min(kernel_.columns, slice_.columns - column);
        const std::size_t tile_stride = kernel_.columns * 4;
        const auto tile_of = floating_ ? kernel_.tile_bf16 : kernel_.tile_i8;
        const auto* bias = floating_ ? nullptr : reinterpret_cast<const std::int32_t*>(panel + steps_ * kernel_.columns * 4);
        for (std::size_t r = 0; r < rows; r += kernel_.max_rows) {
            const std::size_t tile_rows = std::min(kernel_.max_rows, rows - r);
            std::byte* cells = acc_ + (first + r) * f_.acc_stride + 4 * (slice_.first_column + column);
            TileArgs args{packed_rows + r * row_bytes_, row_bytes_, panel, steps_, cells, f_.acc_stride, f_.accumulate != 0, bias};
            if (count == kernel_.columns) {
                tile_of(tile_rows, args);
                continue;
            }
            // A panel wider than the columns left works on a copy, so that no neighbour of the last column is touched.
            std::byte* tile = reserve(buffers().tile, kernel_.max_rows * tile_stride);
            args.acc = tile;
            args.acc_stride_bytes = tile_stride;
            for (std::size_t i = 0; args.accumulate && i < tile_rows; ++i) std::memcpy(tile + i * tile_stride, cells + i * f_.acc_stride, 4 * count);
            tile_of(tile_rows, args);
            for (std::size_t i = 0; i < tile_rows; ++i) std::memcpy(cells + i * f_.acc_stride, tile + i * tile_stride, 4 * count);
        }
    }

private:
    const KernelTable& kernel_;
    const MatmulFields& f_;
    const Slice& slice_;
    const std::byte* const a_;
    const std::byte* const w_;
    std::byte* const acc_;
    const bool floating_;
    const std::size_t group_, steps_, row_bytes_, panel_bytes_;
};

void run_slices(const KernelTable& kernel, const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    const std::size_t rows = rows_of(f);
    for (const Slice& slice : plan_slices(f)) {
        const SliceRunner runner(kernel, f, slice, a, w, acc);
        const std::size_t macs_of_row = std::max<std::size_t>(1, slice.k.size() * slice.columns);
        const std::size_t panels = runner.panels();
        if (rows <= kFewRows) {
            std::byte* packed = reserve(buffers().rows, rows * runner.row_bytes());
            runner.pack_rows(0, rows, packed);
            const std::size_t panel_macs = rows * slice.k.size() * kernel.columns;
            parallel_for(panels, std::max<std::size_t>(1, kParallelMacs / 2 / std::max<std::size_t>(1, panel_macs)), [&](std::size_t begin, std::size_t end) {
                const FtzScope ftz;
                std::byte* panel = reserve(buffers().panel, runner.panel_bytes());
                for (std::size_t p = begin; p < end; ++p) {
                    runner.pack_panel(p, panel);
                    runner.multiply(packed, 0, rows, panel, p);
                }
            });
            continue;
        }
        std::vector<std::byte> weights(panels * runner.panel_bytes());
        for (std::size_t p = 0; p < panels; ++p) runner.pack_panel(p, weights.data() + p * runner.panel_bytes());
        const std::size_t blocks = (rows + kBlockRows - 1) / kBlockRows;
        parallel_for(blocks, std::max<std::size_t>(1, kParallelMacs / 2 / (macs_of_row * kBlockRows)), [&](std::size_t begin, std::size_t end) {
            const FtzScope ftz;
            std::byte* packed = reserve(buffers().rows, kBlockRows * runner.row_bytes());
            for (std::size_t block = begin; block < end; ++block) {
                const std::size_t first = block * kBlockRows, count = std::min(kBlockRows, rows - first);
                runner.pack_rows(first, count, packed);
                for (std::size_t p = 0; p < panels; ++p) runner.multiply(packed, first, count, weights.data() + p * runner.panel_bytes(), p);
            }
        });
    }
}

/// Depthwise: one k and one n a group, so column n takes activation j*period + n at its j-th step. Vectors run over n, without repacking.
/// T is the lane type: float or int32.
template <class T>
void run_diagonal(const KernelTable& kernel, const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    constexpr bool kFloat = std::is_same_v<T, float>;
    const std::size_t depth = depth_of(f), padded = round_up(f.n_count, kPad);
    std::vector<std::uint32_t> base, length;
    for (std::size_t first = 0; first < depth; first += f.group_period) {
        base.push_back(static_cast<std::uint32_t>(first));
        length.push_back(static_cast<std::uint32_t>(std::min<std::size_t>({f.n_count, f.group_period, depth - first})));
    }
    std::vector<T> weights(base.size() * padded);
    for (std::size_t j = 0; j < base.size(); ++j)
        for (std::size_t n = 0; n < length[j]; ++n) {
            const std::byte* from = w + (base[j] + n) * f.w_stride + n * element_bytes(f);
            if constexpr (kFloat) widen(kernel, f, from, &weights[j * padded + n], 1);
            else kernel.widen_i8_i32(from, &weights[j * padded + n], 1);
        }
    std::vector<std::uint32_t> all(depth);
    for (std::size_t k = 0; k < depth; ++k) all[k] = static_cast<std::uint32_t>(k);
    const std::vector<Run> runs = plan_runs(f, all);

    parallel_for(rows_of(f), std::max<std::size_t>(1, kParallelMacs / 8 / depth), [&](std::size_t begin, std::size_t end) {
        const FtzScope ftz;
        Buffers& mine = buffers();
        T* row = nullptr;
        if constexpr (kFloat) row = reserve(mine.floats, depth + kPad);
        else row = reserve(mine.words, depth + kPad);
        std::byte* sums = reserve(mine.tile, 4 * padded);
        for (std::size_t m = begin; m < end; ++m) {
            const std::byte* from = a + row_offset(f, m);
            T* to = row;
            for (const Run& run : runs) {
                if constexpr (kFloat) widen(kernel, f, from + run.offset, to, run.count);
                else kernel.widen_i8_i32(from + run.offset, to, run.count);
                to += run.count;
            }
            std::byte* cells = acc + m * f.acc_stride;
            if (f.accumulate != 0) std::memcpy(sums, cells, std::size_t{4} * f.n_count);
            else std::memset(sums, 0, 4 * padded);
            const DiagonalArgs args{row, weights.data(), base.data(), length.data(), base.size(), padded, sums};
            (kFloat ? kernel.diagonal_bf16 : kernel.diagonal_i8)(args);
            std::memcpy(cells, sums, std::size_t{4} * f.n_count);
        }
    });
}

}  // namespace

void run_matmul(const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    const KernelTable* kernel = kernels();
    // Rows of the accumulator that overlap have a meaning only in order, one at a time.
    const bool rows_overlap = rows_of(f) > 1 && f.acc_stride < std::uint64_t{4} * f.n_count;
    if (kernel == nullptr || rows_overlap) return run_matmul_scalar(f, a, w, acc);
    if (f.group_k == 1 && f.group_n == 1) {
        is_floating(f) ? run_diagonal<float>(*kernel, f, a, w, acc) : run_diagonal<std::int32_t>(*kernel, f, a, w, acc);
    } else {
        run_slices(*kernel, f, a, w, acc);
    }
}

}  // namespace assay::simkernel
