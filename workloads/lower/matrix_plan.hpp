#pragma once
// How a matrix layer's loops go onto the array and into the scratchpad.
#include <string>

#include "workloads/lower/matrix_drain.hpp"

namespace assay::workloads {

/// Outputs [first, first + count) computed together, from the channels [channel, channel + depth) of the image.
struct Block {
    std::int64_t first = 0, count = 0, channel = 0, depth = 0;
    /// Several groups side by side: k and n take part together only within a group (matmul's grouped mode). 0: dense.
    std::uint32_t group_k = 0, group_n = 0;
};

/// One matmul's share of K: `k` rows of the block's weights from `first`, read from the image tile at `offset`.
struct Chunk {
    std::int64_t first = 0, k = 0;
    std::array<std::uint32_t, 3> count{1, 1, 1};
    std::array<std::int32_t, 2> stride{0, 0};
    std::int64_t offset = 0;  ///< bytes from the tile's first element
};

enum class WeightMode { resident, block, piece };

struct MatrixPlan {
    std::vector<Block> blocks;
    std::int64_t tile_batch = 1, tile_rows = 1, tile_cols = 1;  ///< output tile
    std::int64_t slab = 0;                                      ///< channels of a slab; all of a block's unless they do not fit
    bool whole_depth = true;  ///< a tile holds all channels of the image; false: those of one block (and slab)
    WeightMode weight_mode = WeightMode::resident;
    std::int64_t piece_k = 0;   ///< rows of K in a piece
    bool whole_output = false;  ///< the out tile holds all outputs; false: one block's
    bool resident_params = true;
    int planes = 1;  ///< of activations: 3 for the bf16 split, 1 to 3 for integers less their zero point
    int weight_planes = 1;
    int weight_buffers = 1;  ///< of weights, and of their stage: 1 when all are resident
    std::vector<std::pair<int, int>> passes;  ///< (activation plane, weight plane) in order
    std::int64_t element = 1;                 ///< bytes of an operand on the array
    std::int64_t source = 1;                  ///< bytes of an element as loaded
    std::int64_t weight_source = 1;           ///< and of a weight that is an activation
    std::int64_t out_size = 4;                ///< bytes of an element of the result
    std::int64_t params = 0;                  ///< parameter words for each output
    std::size_t temps = 0;                    ///< temporaries of the drain
    // Scratchpad, bytes of one buffer.
    std::uint64_t stage_bytes = 0, image_bytes = 0, plane_bytes = 0, weight_bytes = 0, weight_stage_bytes = 0, params_bytes = 0,
                  out_bytes = 0, temp_bytes = 0;
    std::vector<std::int64_t> extra_sizes;    ///< bytes of an element of each further operand of the drain
    std::vector<std::uint64_t> extra_bytes;
    std::uint64_t acc_bytes = 0;
    std::uint64_t total_bytes() const;

    std::int64_t depth_of(const Block& block) const { return std::min(slab, block.depth); }
    std::int64_t slabs_of(const Block& block) const { return (block.depth + slab - 1) / slab; }
    /// Segments of one (tile, block): all passes at once, or a pass, slab and piece each.
    bool single_segment() const { return slab_count == 1 && weight_mode != WeightMode::piece; }
    std::int64_t slab_count = 1;
};

/// Throws NodeError when even the smallest tile does not fit.
MatrixPlan plan_matrix(const Lowering& lowering, const MatrixSpec& spec, const Drain& drain);

/// Fills in the buffer sizes for the plan's other choices.
void resize_buffers(const MatrixSpec& spec, MatrixPlan& plan);

/// The K of one block and slab (`depth` channels), in the order (kh, kw, c), cut for the array. `pitch` is bytes between pixels of the tile
/// and `line` between its rows. Grouped chunks hold whole periods of `depth`.
std::vector<Chunk> chunks_of(const MatrixSpec& spec, std::int64_t depth, std::int64_t element, std::int64_t pitch, std::int64_t line,
                             std::int64_t rows, std::int64_t piece_k, bool grouped);

std::string describe(const MatrixSpec& spec, const MatrixPlan& plan, const simkernel::ChipConfig& chip);

}  // namespace assay::workloads
