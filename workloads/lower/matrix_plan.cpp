#include "workloads/lower/matrix_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "simkernel/exec/decode.hpp"
#include "workloads/lower/narrow_weights.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kTiles = 4;              // load, compute, drain and store of four tiles overlap
constexpr std::int64_t kRowsPerWeightLoad = 4;  // loading a pass' weights takes mxu.rows cycles: at most a fifth of the pass

std::int64_t kernel_area(const MatrixSpec& spec) { return spec.window.kernel[0] * spec.window.kernel[1]; }

std::vector<Block> blocks_of(const MatrixSpec& spec, const simkernel::ChipConfig& chip) {
    std::vector<Block> blocks;
    const std::int64_t in = spec.channels / spec.groups, out = spec.outputs / spec.groups;
    if (spec.groups > 1 && in <= chip.mxu_rows && out <= chip.mxu_cols) {
        const std::int64_t together = std::min({chip.mxu_rows / in, chip.mxu_cols / out, spec.groups});
        for (std::int64_t g = 0; g < spec.groups; g += together) {
            const std::int64_t n = std::min(together, spec.groups - g);
            blocks.push_back({g * out, n * out, g * in, n * in, n > 1 ? static_cast<std::uint32_t>(in) : 0u,
                              n > 1 ? static_cast<std::uint32_t>(out) : 0u});
        }
        return blocks;
    }
    for (std::int64_t g = 0; g < spec.groups; ++g)
        for (std::int64_t o = 0; o < out; o += chip.mxu_cols)
            blocks.push_back({g * out + o, std::min(chip.mxu_cols, out - o), g * in, in, 0, 0});
    return blocks;
}

/// int8 planes whose sum reaches every integer of [low, high]: what is left after saturating, plane by plane.
int planes_for(std::int32_t low, std::int32_t high) {
    int planes = 1;
    while (-128 * planes > low || 127 * planes < high) ++planes;
    return planes;
}

int weight_planes(const ConstantWeights& w, std::int64_t outputs) {
    std::int32_t low = 0, high = 0;
    for (std::int64_t i = 0; i < w.integers->count(); ++i) {
        const auto o = static_cast<std::size_t>(w.strides[0] == 0 ? 0 : i / w.strides[0] % outputs);
        const auto value = static_cast<std::int32_t>(w.integers->integer(i)) - w.zero_point[o];
        low = std::min(low, value);
        high = std::max(high, value);
    }
    return planes_for(low, high);
}

void choose_passes(const MatrixSpec& spec, MatrixPlan& p) {
    if (spec.integer) {
        const auto shifted = [](const Operand& o) {
            return planes_for(-128 - o.quantization->zero_point, 127 - o.quantization->zero_point);
        };
        p.planes = spec.dynamic ? shifted(spec.x) : 1;
        p.weight_planes = spec.dynamic ? shifted(spec.dynamic->operand) : weight_planes(*spec.weights, spec.outputs);
        for (int a = 0; a < p.planes; ++a)
            for (int w = 0; w < p.weight_planes; ++w) p.passes.emplace_back(a, w);
        return;
    }
    p.element = static_cast<std::int64_t>(simkernel::size_of(spec.format.type));
    if (spec.format.planes == 1) {
        p.passes = {{0, 0}};
        return;
    }
    p.planes = p.weight_planes = 3;
    p.passes = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};  // smallest products first
}

/// Bytes of the narrow weights behind one weight buffer.
std::int64_t narrow_stage_bytes(const MatrixSpec& spec, const MatrixPlan& p) {
    if (spec.format.scaling == Scaling::weights_8) return static_cast<std::int64_t>(align_up(p.weight_bytes / static_cast<std::uint64_t>(p.element)));
    std::int64_t all = 0, largest = 0, columns = 1;
    for (const Block& b : p.blocks) {
        const std::int64_t bytes = nibble_bytes(b.depth, b.count) + step_bytes(b.depth, b.count);
        all += bytes;
        largest = std::max(largest, bytes);
        columns = std::max(columns, b.count);
    }
    if (p.weight_mode == WeightMode::piece) return nibble_bytes(p.piece_k, columns) + step_bytes(p.piece_k, columns);
    return p.weight_mode == WeightMode::resident ? all : largest;
}

/// Pieces of K begin where a chunk does, and those of 4-bit weights where a group does (one divides the other, see choose_format).
std::int64_t piece_unit(const Lowering& l, const MatrixSpec& spec) {
    return spec.format.scaling == Scaling::weights_4 ? std::max(l.chip.mxu_rows, kW4Group) : l.chip.mxu_rows;
}

/// Weights as near as they fit: all at once in half the scratchpad, else a block in a quarter, else pieces of K.
void choose_weight_mode(const Lowering& l, const MatrixSpec& spec, MatrixPlan& p) {
    const std::int64_t spm = l.chip.spm_bytes;
    std::int64_t all = 0, largest = 0, columns = 1;
    for (const Block& b : p.blocks) {
        const std::int64_t bytes = kernel_area(spec) * b.depth * b.count * p.element * p.weight_planes;
        all += bytes;
        largest = std::max(largest, bytes);
        columns = std::max(columns, b.count);
    }
    // Narrow weights need room for both forms.
    const std::int64_t room = spec.format.narrow_weights() ? spm * 2 / 3 : spm;
    if (all <= room / 2) {
        p.weight_mode = WeightMode::resident;
    } else if (largest <= room / 8) {
        p.weight_mode = WeightMode::block;
    } else {
        p.weight_mode = WeightMode::piece;
        const std::int64_t unit = piece_unit(l, spec);
        p.piece_k = std::max<std::int64_t>(unit, room / 16 / (columns * p.element) / unit * unit);
    }
    p.resident_params = p.params * 4 * spec.outputs <= spm / 16;
}

/// The largest output tile with the plan's other choices; false when one pixel does not fit.
bool fit_tile(const Lowering& l, const MatrixSpec& spec, MatrixPlan& p) {
    std::int64_t columns = 1;
    for (const Block& b : p.blocks) columns = std::max(columns, b.count);
    // Two accumulator buffers, so that a tile drains while the next is computed; and at least kTiles tiles, so that there is a next one,
    // unless they would be too short to hide the loading of the array's weights.
    const std::int64_t pixels = spec.batch * spec.window.out[0] * spec.window.out[1];
    const std::int64_t useful = std::max(kRowsPerWeightLoad * l.chip.mxu_rows, (pixels + kTiles - 1) / kTiles);
    const std::int64_t most = std::clamp<std::int64_t>(l.chip.acc_bytes / 2 / (columns * 4), 1, useful);
    p.tile_cols = std::min(spec.window.out[1], most);
    p.tile_rows = std::min(spec.window.out[0], std::max<std::int64_t>(1, most / p.tile_cols));
    p.tile_batch = p.tile_rows == spec.window.out[0] && p.tile_cols == spec.window.out[1]
                       ? std::min(spec.batch, std::max<std::int64_t>(1, most / (p.tile_rows * p.tile_cols)))
                       : 1;
    const auto spm = static_cast<std::uint64_t>(l.chip.spm_bytes);
    while (true) {
        for (const bool whole : {true, false}) {
            p.whole_output = whole;
            resize_buffers(spec, p);
            if (p.total_bytes() <= spm) return true;
        }
        if (p.tile_batch > 1)
            p.tile_batch = (p.tile_batch + 1) / 2;
        else if (p.tile_rows > 1)
            p.tile_rows = (p.tile_rows + 1) / 2;
        else if (p.tile_cols > 1)
            p.tile_cols = (p.tile_cols + 1) / 2;
        else
            return false;
    }
}

}  // namespace

void resize_buffers(const MatrixSpec& spec, MatrixPlan& p) {
    const Window& w = spec.window;
    const std::int64_t in_rows = (p.tile_rows - 1) * w.stride[0] + w.reach(0), in_cols = (p.tile_cols - 1) * w.stride[1] + w.reach(1);
    const std::int64_t m = p.tile_batch * p.tile_rows * p.tile_cols;
    std::int64_t depth = 0, columns = 0, k = 0;
    p.slab_count = 1;
    for (const Block& b : p.blocks) {
        depth = std::max(depth, p.depth_of(b));
        columns = std::max(columns, b.count);
        k = std::max(k, kernel_area(spec) * b.depth);
        p.slab_count = std::max(p.slab_count, p.slabs_of(b));
    }
    const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
    const std::int64_t image = p.tile_batch * in_rows * in_cols * (p.whole_depth ? spec.channels : depth);
    const bool converted = !spec.integer || spec.dynamic || spec.format.scaling == Scaling::integers;
    p.stage_bytes = converted ? align_up(u(image * p.source)) : 0;
    p.plane_bytes = align_up(u(image * p.element));
    p.image_bytes = p.plane_bytes * u(p.planes);
    const std::int64_t row = columns * p.element;
    if (spec.dynamic) {
        p.weight_stage_bytes = align_up(u(depth * columns * p.weight_source));
        p.weight_bytes = align_up(u(depth * row)) * u(p.weight_planes);
    } else if (p.weight_mode == WeightMode::resident) {
        std::int64_t all = 0;
        for (const Block& b : p.blocks) all += kernel_area(spec) * b.depth * b.count * p.element * p.weight_planes;
        p.weight_bytes = align_up(u(all));
    } else {
        p.weight_bytes = align_up(u(p.weight_mode == WeightMode::block ? k * row * p.weight_planes : p.piece_k * row));
    }
    p.weight_buffers = spec.dynamic || p.weight_mode != WeightMode::resident ? 2 : 1;
    if (spec.format.narrow_weights()) p.weight_stage_bytes = u(narrow_stage_bytes(spec, p));
    p.params_bytes = align_up(u(p.params * 4 * (p.resident_params ? spec.outputs : columns)));
    p.out_bytes = align_up(u(m * (p.whole_output ? spec.outputs : columns) * p.out_size));
    p.temp_bytes = p.temps * align_up(u(m * columns * 4));
    p.extra_bytes.clear();
    for (const std::int64_t size : p.extra_sizes) p.extra_bytes.push_back(align_up(u(m * columns * size)));
    p.acc_bytes = u(m * columns * 4);
}

std::uint64_t MatrixPlan::total_bytes() const {
    const std::uint64_t weights = static_cast<std::uint64_t>(weight_buffers) * (weight_bytes + weight_stage_bytes);
    return 2 * stage_bytes + 2 * image_bytes + weights + (resident_params ? 1 : 2) * params_bytes + 2 * out_bytes +
           temp_bytes + 2 * std::accumulate(extra_bytes.begin(), extra_bytes.end(), std::uint64_t{0});
}

MatrixPlan plan_matrix(const Lowering& l, const MatrixSpec& spec, const Drain& drain) {
    MatrixPlan p;
    p.blocks = blocks_of(spec, l.chip);
    choose_passes(spec, p);
    p.source = static_cast<std::int64_t>(simkernel::size_of(l.type_of(spec.x)));
    if (spec.dynamic) p.weight_source = static_cast<std::int64_t>(simkernel::size_of(l.type_of(spec.dynamic->operand)));
    p.params = static_cast<std::int64_t>(drain.params.size());
    p.temps = drain.plan.temps;
    p.out_size = static_cast<std::int64_t>(simkernel::size_of(l.type_of(spec.out)));
    for (const Operand& extra : spec.extras) p.extra_sizes.push_back(static_cast<std::int64_t>(simkernel::size_of(l.type_of(extra))));
    choose_weight_mode(l, spec, p);
    for (const Block& b : p.blocks) p.slab = std::max(p.slab, b.depth);
    // Several groups of blocks read different channels: a tile of all of them saves nothing unless it needs no smaller tile.
    if (fit_tile(l, spec, p)) {
        if (spec.groups == 1) return p;
        MatrixPlan narrow = p;
        narrow.whole_depth = false;
        if (fit_tile(l, spec, narrow) && narrow.tile_batch * narrow.tile_rows * narrow.tile_cols > p.tile_batch * p.tile_rows * p.tile_cols)
            return narrow;
        return p;
    }
    p.whole_depth = false;
    if (spec.groups > 1 && fit_tile(l, spec, p)) return p;
    // Grouped blocks read whole groups: only dense ones are cut into slabs.
    while (p.slab > 1 && p.blocks[0].group_k == 0) {
        const std::int64_t before = p.slab;
        p.slab = (p.slab + 1) / 2;
        // A slab of 4-bit weights begins with a group.
        if (spec.format.scaling == Scaling::weights_4) p.slab = static_cast<std::int64_t>(align_up(static_cast<std::uint64_t>(p.slab), kW4Group));
        if (p.slab >= before) break;
        if (fit_tile(l, spec, p)) return p;
    }
    throw NodeError(spec.main, fmt::format("the smallest tile needs {} scratchpad bytes, the chip has {}; use a larger chip",
                                           p.total_bytes(), l.chip.spm_bytes));
}

std::vector<Chunk> chunks_of(const MatrixSpec& spec, std::int64_t depth, std::int64_t element, std::int64_t pitch, std::int64_t line,
                             std::int64_t rows, std::int64_t piece_k, bool grouped) {
    const Window& w = spec.window;
    std::vector<Chunk> chunks;
    std::int64_t k = 0;
    const auto add = [&](std::int64_t c0, std::int64_t c1, std::int64_t c2, std::int64_t s1, std::int64_t s2, std::int64_t offset) {
        chunks.push_back({k,
                          c0 * c1 * c2,
                          {static_cast<std::uint32_t>(c0), static_cast<std::uint32_t>(c1), static_cast<std::uint32_t>(c2)},
                          {static_cast<std::int32_t>(c1 > 1 ? s1 : 0), static_cast<std::int32_t>(c2 > 1 ? s2 : 0)},
                          offset});
        k += c0 * c1 * c2;
    };
    const std::int64_t down = w.dilation[0] * line, across = w.dilation[1] * pitch;
    const std::int64_t kh_count = w.kernel[0];
    // Undilated full-depth rows of the window are contiguous in the tile: one run of kw*c. In grouped mode a chunk must start at a period.
    const bool joined = w.kernel[1] == 1 || (!grouped && w.dilation[1] == 1 && depth * element == pitch);
    const std::int64_t run = joined ? w.kernel[1] * depth : depth, runs = joined ? 1 : w.kernel[1];
    if (run * runs <= rows) {
        const std::int64_t together = piece_k > 0 ? std::max<std::int64_t>(1, std::min(rows, piece_k) / (run * runs)) : rows / (run * runs);
        for (std::int64_t kh = 0; kh < kh_count; kh += together) add(run, runs, std::min(together, kh_count - kh), across, down, kh * down);
    } else if (run <= rows) {
        const std::int64_t together = rows / run;
        for (std::int64_t kh = 0; kh < kh_count; ++kh)
            for (std::int64_t kw = 0; kw < runs; kw += together)
                add(run, std::min(together, runs - kw), 1, across, 0, kh * down + kw * across);
    } else {
        for (std::int64_t kh = 0; kh < kh_count; ++kh)
            for (std::int64_t kw = 0; kw < runs; ++kw)
                for (std::int64_t c = 0; c < run; c += rows)
                    add(std::min(rows, run - c), 1, 1, 0, 0, kh * down + kw * across + c * element);
    }
    return chunks;
}

std::string describe(const MatrixSpec& spec, const MatrixPlan& p, const simkernel::ChipConfig& chip) {
    const Block& b = p.blocks[0];
    const std::int64_t depth = p.depth_of(b);
    const Window& w = spec.window;
    const std::int64_t pitch = (p.whole_depth ? spec.channels : depth) * p.element;
    const std::int64_t in_cols = (p.tile_cols - 1) * w.stride[1] + w.reach(1);
    const auto chunks = chunks_of(spec, depth, p.element, pitch, in_cols * pitch, chip.mxu_rows, 0, b.group_k != 0);
    std::string text = fmt::format("K={} in {} chunks", kernel_area(spec) * b.depth / (b.group_k ? b.depth / b.group_k : 1),
                                   chunks.size() * static_cast<std::size_t>(p.slabs_of(b)));
    if (p.slab_count > 1) text += fmt::format(" ({} slabs of {} channels)", p.slab_count, p.slab);
    const auto tiles = [](std::int64_t all, std::int64_t one) { return (all + one - 1) / one; };
    text += fmt::format(", M={}x{}, N={}x{}", p.tile_batch * p.tile_rows * p.tile_cols,
                        tiles(spec.batch, p.tile_batch) * tiles(w.out[0], p.tile_rows) * tiles(w.out[1], p.tile_cols) *
                            static_cast<std::int64_t>(spec.repeats.size()),
                        b.count, p.blocks.size());
    if (b.group_k) text += fmt::format(", {} groups a pass", b.depth / b.group_k);
    if (p.passes.size() > 1) text += fmt::format(", {} passes", p.passes.size());
    text += spec.dynamic                            ? ", weights from an activation"
            : p.weight_mode == WeightMode::resident ? ", weights resident"
            : p.weight_mode == WeightMode::block    ? ", weights by block"
                                                    : ", weights in pieces";
    return text;
}

}  // namespace assay::workloads
