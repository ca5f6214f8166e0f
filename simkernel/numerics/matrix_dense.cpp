// Activations and weights are repacked into contiguous panels that the kernels stream through. A chain is walked a block of rows at a time
// through all its descriptors, so that the sums stay in the cache from one to the next; each keeps its own order in k and its own canonical
// results, so the bits are those of the descriptors one by one.
#include "simkernel/numerics/matrix_dense.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "simkernel/numerics/matrix_plan.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel {
namespace {

/// Rows packed together: both tile heights (6 and 12) divide it, and 24 rows of K = 128 floats (12 KiB) stay in L1 beside one weight panel.
constexpr std::size_t kPackRows = 24;
/// Rows that go through the whole chain together: their sums (96 KiB at 128 columns) stay in L2.
constexpr std::size_t kBlockRows = 8 * kPackRows;
/// Up to so many rows the threads share a product by columns: each packs its own weights, which by rows one thread would do for all.
constexpr std::size_t kFewRows = 256;
/// Packed weights of a chain that are used together: half of a 2 MiB L2.
constexpr std::size_t kWeightBytes = std::size_t{1} << 20;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// One slice of a descriptor packed for the kernels: rows of activations and panels of `kernel.columns` columns of weights.
class Link {
public:
    Link(const KernelTable& kernel, const MatmulCall& call, Slice slice, std::byte* acc)
        : kernel_(kernel),
          f_(*call.fields),
          slice_(std::move(slice)),
          a_(call.a),
          w_(call.w),
          acc_(acc),
          floating_(is_floating(f_)),
          group_(floating_ ? 1 : kernel.i8_group),
          steps_((slice_.k.size() + group_ - 1) / group_),
          // The last group's missing k meet weights of zero, whatever the row holds there.
          row_bytes_(round_up(steps_ * 4, 4 * kRowPad)),
          panel_bytes_(steps_ * kernel.columns * 4 + kernel.columns * sizeof(std::int32_t)) {}

    std::size_t panels() const { return (slice_.columns + kernel_.columns - 1) / kernel_.columns; }
    std::size_t row_bytes() const { return row_bytes_; }
    std::size_t panel_bytes() const { return panel_bytes_; }
    std::size_t weight_bytes() const { return panels() * panel_bytes_; }
    std::size_t depth() const { return slice_.k.size(); }
    std::size_t columns() const { return slice_.columns; }

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
        if (f_.group_k == 0 && count == kernel_.columns && static_cast<Dtype>(f_.dtype) == Dtype::bf16) {
            kernel_.widen_bf16_panel(base, f_.w_stride, reinterpret_cast<float*>(to), steps_);
            return;
        }
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
            std::byte* tile = reserve(matrix_scratch().tile, kernel_.max_rows * tile_stride);
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
    const Slice slice_;
    const std::byte* const a_;
    const std::byte* const w_;
    std::byte* const acc_;
    const bool floating_;
    const std::size_t group_, steps_, row_bytes_, panel_bytes_;
};

std::size_t grain(std::size_t macs_of_item) { return std::max<std::size_t>(1, kParallelMacs / 2 / std::max<std::size_t>(1, macs_of_item)); }

/// Few rows: all of them are packed once, then each thread takes panels of columns through the chain and packs their weights itself.
void run_by_columns(std::span<const Link> links, std::size_t rows, std::size_t columns_of_panel) {
    std::vector<std::size_t> at;  // of each link's packed rows
    std::size_t packed_bytes = 0, depth = 0, panel_bytes = 0;
    for (const Link& link : links) {
        at.push_back(packed_bytes);
        packed_bytes += rows * link.row_bytes();
        depth += link.depth();
        panel_bytes = std::max(panel_bytes, link.panel_bytes());
    }
    std::byte* packed = reserve(matrix_scratch().rows, packed_bytes);
    for (std::size_t i = 0; i < links.size(); ++i) links[i].pack_rows(0, rows, packed + at[i]);
    parallel_for(links[0].panels(), grain(rows * depth * columns_of_panel), [&](std::size_t begin, std::size_t end) {
        const FtzScope ftz;
        std::byte* panel = reserve(matrix_scratch().weights, panel_bytes);
        for (std::size_t p = begin; p < end; ++p)
            for (std::size_t i = 0; i < links.size(); ++i) {
                links[i].pack_panel(p, panel);
                links[i].multiply(packed + at[i], 0, rows, panel, p);
            }
    });
}

/// Many rows: all weights are packed once, then each thread takes blocks of rows through the chain.
void run_by_rows(std::span<const Link> links, std::size_t rows) {
    std::vector<std::size_t> at;  // of each link's packed weights
    std::size_t weight_bytes = 0, depth = 0, row_bytes = 0;
    for (const Link& link : links) {
        at.push_back(weight_bytes);
        weight_bytes += link.weight_bytes();
        depth += link.depth();
        row_bytes = std::max(row_bytes, link.row_bytes());
    }
    const std::size_t panels = links[0].panels();
    std::byte* weights = reserve(matrix_scratch().weights, weight_bytes);
    // Packing a weight costs about as much as eight multiply-accumulates.
    parallel_for(links.size() * panels, grain(8 * links[0].weight_bytes() / panels / 4), [&](std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j) {
            const Link& link = links[j / panels];
            link.pack_panel(j % panels, weights + at[j / panels] + j % panels * link.panel_bytes());
        }
    });
    const std::size_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    parallel_for(blocks, grain(kBlockRows * depth * links[0].columns()), [&](std::size_t begin, std::size_t end) {
        const FtzScope ftz;
        std::byte* packed = reserve(matrix_scratch().rows, kPackRows * row_bytes);
        for (std::size_t block = begin; block < end; ++block)
            for (std::size_t i = 0; i < links.size(); ++i) {
                const std::size_t last = std::min(rows, (block + 1) * kBlockRows);
                for (std::size_t first = block * kBlockRows; first < last; first += kPackRows) {
                    const std::size_t count = std::min(kPackRows, last - first);
                    links[i].pack_rows(first, count, packed);
                    for (std::size_t p = 0; p < panels; ++p) links[i].multiply(packed, first, count, weights + at[i] + p * links[i].panel_bytes(), p);
                }
            }
    });
}

}  // namespace

MatrixScratch& matrix_scratch() {
    thread_local MatrixScratch instance;
    return instance;
}

void widen(const KernelTable& kernel, const MatmulFields& f, const std::byte* from, float* to, std::size_t count) {
    const auto type = static_cast<Dtype>(f.dtype);
    if (type == Dtype::bf16) kernel.widen_bf16(from, to, count);
    else kernel.widen_narrow(type, from, to, count);
}

void run_dense(const KernelTable& kernel, std::span<const MatmulCall> calls, std::byte* acc) {
    const std::size_t rows = rows_of(*calls[0].fields);
    std::vector<std::vector<Slice>> slices;
    for (const MatmulCall& call : calls) slices.push_back(plan_slices(*call.fields));
    for (std::size_t s = 0; s < slices[0].size(); ++s) {
        std::vector<Link> links;
        links.reserve(calls.size());
        for (std::size_t c = 0; c < calls.size(); ++c) links.emplace_back(kernel, calls[c], std::move(slices[c][s]), acc);
        for (std::span<const Link> left = links; !left.empty();) {
            std::size_t count = 0;
            for (std::size_t bytes = 0; count < left.size() && (count == 0 || bytes + left[count].weight_bytes() <= kWeightBytes); ++count)
                bytes += left[count].weight_bytes();
            if (rows <= kFewRows) run_by_columns(left.first(count), rows, kernel.columns);
            else run_by_rows(left.first(count), rows);
            left = left.subspan(count);
        }
    }
}

}  // namespace assay::simkernel
