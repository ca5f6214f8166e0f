// The matrix unit at host-vector speed: activations and weights are repacked into contiguous panels that the kernels stream through.
#include "simkernel/numerics/matrix.hpp"

#include <algorithm>
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
/// Elements by which packed rows are padded: kernels read whole vectors of at most 16 words.
constexpr std::size_t kPad = 16;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

struct Buffers {
    std::vector<float> floats;
    std::vector<std::int16_t> halves;
    std::vector<std::int32_t> words;
    std::vector<std::byte> tile;
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

/// Weights of one slice as panels of `columns` columns, one after the other; missing columns are zero (their sums are discarded).
template <class T>
std::vector<T> pack_weights(const KernelTable& kernel, const MatmulFields& f, const Slice& slice, const std::byte* w) {
    constexpr bool kFloat = std::is_same_v<T, float>;
    const std::size_t panels = (slice.columns + kernel.columns - 1) / kernel.columns;
    const std::size_t steps = kFloat ? slice.k.size() : (slice.k.size() + 1) / 2;
    const std::size_t step_elems = kernel.columns * (kFloat ? 1 : 2);
    std::vector<T> packed(panels * steps * step_elems);
    for (std::size_t p = 0; p < panels; ++p) {
        const std::size_t column = p * kernel.columns;
        const std::size_t count = std::min(kernel.columns, slice.columns - column);
        const std::byte* base = w + (slice.first_column + column) * element_bytes(f);
        T* to = packed.data() + p * steps * step_elems;
        for (std::size_t s = 0; s < steps; ++s, to += step_elems) {
            if constexpr (kFloat) {
                kernel.widen_bf16(base + std::size_t{slice.k[s]} * f.w_stride, to, count);
            } else {
                const bool pair = 2 * s + 1 < slice.k.size();
                kernel.interleave_i8(base + std::size_t{slice.k[2 * s]} * f.w_stride,
                                     pair ? base + std::size_t{slice.k[2 * s + 1]} * f.w_stride : nullptr, to, count);
            }
        }
    }
    return packed;
}

/// One slice over rows [begin, end): packs kBlockRows rows at a time and runs every panel over them.
template <class T>
void run_rows(const KernelTable& kernel, const MatmulFields& f, const Slice& slice, const std::vector<T>& weights, const std::byte* a,
              std::byte* acc, std::size_t begin, std::size_t end) {
    constexpr bool kFloat = std::is_same_v<T, float>;
    const std::size_t steps = kFloat ? slice.k.size() : (slice.k.size() + 1) / 2;
    const std::size_t stride = round_up(slice.k.size(), kPad);  // elements of a packed row; the partner of a last odd k meets a zero weight
    const std::size_t panel_elems = steps * kernel.columns * (kFloat ? 1 : 2);
    const std::size_t tile_stride = kernel.columns * 4;
    Buffers& mine = buffers();
    T* packed = nullptr;
    if constexpr (kFloat) packed = reserve(mine.floats, kBlockRows * stride);
    else packed = reserve(mine.halves, kBlockRows * stride);
    std::byte* tile = reserve(mine.tile, kernel.max_rows * tile_stride);

    for (std::size_t block = begin; block < end; block += kBlockRows) {
        const std::size_t rows = std::min(kBlockRows, end - block);
        for (std::size_t r = 0; r < rows; ++r) {
            const std::byte* row = a + row_offset(f, block + r);
            T* to = packed + r * stride;
            for (const Run& run : slice.runs) {
                if constexpr (kFloat) kernel.widen_bf16(row + run.offset, to, run.count);
                else kernel.widen_i8_i16(row + run.offset, to, run.count);
                to += run.count;
            }
        }
        for (std::size_t column = 0; column < slice.columns; column += kernel.columns) {
            const std::size_t count = std::min(kernel.columns, slice.columns - column);
            const T* panel = weights.data() + column / kernel.columns * panel_elems;
            for (std::size_t r = 0; r < rows; r += kernel.max_rows) {
                const std::size_t tile_rows = std::min(kernel.max_rows, rows - r);
                std::byte* cells = acc + (block + r) * f.acc_stride + 4 * (slice.first_column + column);
                TileArgs args{packed + r * stride, stride * sizeof(T), panel, steps, cells, f.acc_stride, f.accumulate != 0};
                if (count == kernel.columns) {
                    (kFloat ? kernel.tile_bf16 : kernel.tile_i8)(tile_rows, args);
                    continue;
                }
                // A panel wider than the columns left works on a copy, so that no neighbour of the last column is touched.
                args.acc = tile;
                args.acc_stride_bytes = tile_stride;
                for (std::size_t i = 0; args.accumulate && i < tile_rows; ++i) std::memcpy(tile + i * tile_stride, cells + i * f.acc_stride, 4 * count);
                (kFloat ? kernel.tile_bf16 : kernel.tile_i8)(tile_rows, args);
                for (std::size_t i = 0; i < tile_rows; ++i) std::memcpy(cells + i * f.acc_stride, tile + i * tile_stride, 4 * count);
            }
        }
    }
}

template <class T>
void run_slices(const KernelTable& kernel, const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    for (const Slice& slice : plan_slices(f)) {
        const std::vector<T> weights = pack_weights<T>(kernel, f, slice, w);
        const std::size_t macs_of_row = std::max<std::size_t>(1, slice.k.size() * slice.columns);
        const std::size_t blocks = (rows_of(f) + kBlockRows - 1) / kBlockRows;
        parallel_for(blocks, std::max<std::size_t>(1, kParallelMacs / 2 / (macs_of_row * kBlockRows)), [&](std::size_t begin, std::size_t end) {
            const FtzScope ftz;
            run_rows<T>(kernel, f, slice, weights, a, acc, begin * kBlockRows, std::min(rows_of(f), end * kBlockRows));
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
            if constexpr (kFloat) kernel.widen_bf16(from, &weights[j * padded + n], 1);
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
                if constexpr (kFloat) kernel.widen_bf16(from + run.offset, to, run.count);
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
    const bool bf16 = static_cast<Dtype>(f.dtype) == Dtype::bf16;
    // Rows of the accumulator that overlap have a meaning only in order, one at a time.
    const bool rows_overlap = rows_of(f) > 1 && f.acc_stride < std::uint64_t{4} * f.n_count;
    if (kernel == nullptr || rows_overlap) return run_matmul_scalar(f, a, w, acc);
    if (f.group_k == 1 && f.group_n == 1) {
        bf16 ? run_diagonal<float>(*kernel, f, a, w, acc) : run_diagonal<std::int32_t>(*kernel, f, a, w, acc);
    } else {
        bf16 ? run_slices<float>(*kernel, f, a, w, acc) : run_slices<std::int16_t>(*kernel, f, a, w, acc);
    }
}

}  // namespace assay::simkernel
