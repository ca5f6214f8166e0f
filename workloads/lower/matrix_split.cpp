#include "workloads/lower/matrix_split.hpp"

#include "workloads/lower/matrix_weights.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kMostTiles = 4;  // of a core that are cut for it: one is loaded while another is computed and a third is stored

std::int64_t parts_of(std::int64_t all, std::int64_t one) { return (all + one - 1) / one; }

/// Tiles of about equal size, at least `count` of them where the image has so many pixels.
void cut_tiles(const MatrixSpec& spec, MatrixPlan& p, std::int64_t count) {
    const auto even = [](std::int64_t all, std::int64_t one) { return parts_of(all, parts_of(all, one)); };
    while (tile_count(spec, p) < count) {
        if (p.tile_batch > 1) p.tile_batch = (p.tile_batch + 1) / 2;
        else if (p.tile_rows > 1) p.tile_rows = (p.tile_rows + 1) / 2;
        else if (p.tile_cols > 1) p.tile_cols = (p.tile_cols + 1) / 2;
        else break;
    }
    p.tile_batch = even(spec.batch, p.tile_batch);
    p.tile_rows = even(spec.window.out[0], p.tile_rows);
    p.tile_cols = even(spec.window.out[1], p.tile_cols);
    resize_buffers(spec, p);
}

/// Cycles until the last of `rows` x `columns` cores is done: a pipeline of loads, the array, the drain and stores, whose slowest stage counts.
double cycles_of(const Lowering& l, const MatrixSpec& spec, const Drain& drain, const MatrixPlan& p, std::int64_t rows, std::int64_t columns) {
    const auto d = [](std::int64_t v) { return static_cast<double>(v); };
    const simkernel::ChipConfig& chip = l.chip;
    const Window& w = spec.window;
    const double m = d(p.tile_batch * p.tile_rows * p.tile_cols);
    const std::int64_t blocks = parts_of(static_cast<std::int64_t>(p.blocks.size()), columns), tiles = parts_of(tile_count(spec, p), rows);
    const Block& block = p.blocks[0];
    const std::int64_t in_rows = (p.tile_rows - 1) * w.stride[0] + w.reach(0), in_cols = (p.tile_cols - 1) * w.stride[1] + w.reach(1);
    const std::int64_t depth = p.depth_of(block), pixels = p.tile_batch * in_rows * in_cols;
    const std::int64_t pitch = (p.whole_depth ? spec.channels : depth) * p.element;
    double array = 0, k = 0;
    for (const Chunk& c : chunks_of(spec, depth, p.element, pitch, in_cols * pitch, chip.mxu_rows, 0, block.group_k != 0)) {
        array += d(chip.mxu_setup_cycles + c.k + chip.mxu_rows + 2 * chip.spm_latency_cycles + 4) + m * d(c.count[1]) * d(c.count[2]);
        k += d(c.k);
    }
    const double repeats = d(p.slabs_of(block)) * d(static_cast<std::int64_t>(p.passes.size()));
    array *= repeats;
    const double lanes = d(chip.vpu_lanes);
    double vector = m * d(block.count) / lanes * d(static_cast<std::int64_t>(drain.expr.ops().size()) + 1);
    const double image = d(pixels * (p.whole_depth ? spec.channels : depth * p.slabs_of(block)));
    const double converted = p.stage_bytes ? image / lanes * 3.0 * p.planes : 0;  // once a tile, of all its blocks
    const double weights = k * d(p.slabs_of(block)) * d(block.count) * d(spec.dynamic ? p.weight_source : p.element * p.weight_planes);
    const double wide = bytes_per_cycle(chip, rows * columns);
    // Resident weights come once; others with each tile, unless there is one block to keep.
    const bool once = p.weight_mode == WeightMode::resident || (p.weight_mode == WeightMode::block && blocks == 1);
    double moved = image * d(p.source) * d(tiles) * (p.whole_depth ? 1.0 : d(blocks)) + weights * d(blocks) * (once ? 1.0 : d(tiles)) +
                   m * d(block.count) * d(p.out_size) * d(tiles * blocks);
    for (const std::int64_t size : p.extra_sizes) moved += m * d(block.count) * d(size) * d(tiles * blocks);
    const double stages = std::max({array * d(tiles * blocks), vector * d(tiles * blocks) + converted * d(tiles), moved / wide});
    const double fill = (image * d(p.source) + weights * (p.weight_mode == WeightMode::resident ? d(blocks) : 1.0)) / wide + vector + converted;
    return stages + fill + (rows * columns > 1 ? sharing_cycles(chip) : 0.0);
}

}  // namespace

std::int64_t tile_count(const MatrixSpec& spec, const MatrixPlan& p) {
    return static_cast<std::int64_t>(spec.repeats.size()) * parts_of(spec.batch, p.tile_batch) * parts_of(spec.window.out[0], p.tile_rows) *
           parts_of(spec.window.out[1], p.tile_cols);
}

std::vector<MatrixPart> split_matrix(const Lowering& l, const MatrixSpec& spec, const Drain& drain, MatrixPlan& plan) {
    const auto blocks = static_cast<std::int64_t>(plan.blocks.size());
    MatrixPlan best = plan;
    std::int64_t best_rows = 1, best_columns = 1;
    double least = cycles_of(l, spec, drain, plan, 1, 1);
    const auto consider = [&](std::int64_t rows, std::int64_t columns, std::int64_t tiles) {
        MatrixPlan candidate = plan;
        cut_tiles(spec, candidate, rows * tiles);
        if (tile_count(spec, candidate) < rows * tiles) return;
        if (columns > 1 && candidate.whole_output) {  // no core has all outputs of a tile
            candidate.whole_output = false;
            resize_buffers(spec, candidate);
        }
        const double cycles = cycles_of(l, spec, drain, candidate, rows, columns);
        if (cycles >= least) return;
        least = cycles;
        best = candidate;
        best_rows = rows;
        best_columns = columns;
    };
    for (std::int64_t rows = 1; rows <= l.options.cores; ++rows)
        for (std::int64_t columns = 1; rows * columns <= l.options.cores && columns <= blocks; ++columns)
            for (std::int64_t tiles = 1; rows * columns > 1 && tiles <= kMostTiles; tiles *= 2) consider(rows, columns, tiles);
    plan = best;
    std::vector<MatrixPart> parts;
    for (std::int64_t row = 0; row < best_rows; ++row)
        for (std::int64_t column = 0; column < best_columns; ++column)
            parts.push_back({share_of(tile_count(spec, plan), row, best_rows), share_of(blocks, column, best_columns)});
    return parts;
}

}  // namespace assay::workloads
