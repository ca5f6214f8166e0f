#pragma once
// Constant weights of a matrix layer, packed for the array: block after block, in each slab after slab, plane after plane, K rows of the
// block's outputs.
#include "workloads/lower/matrix_plan.hpp"

namespace assay::workloads {

struct PackedWeights {
    std::uint64_t addr = 0;                  ///< in HBM
    std::vector<std::int64_t> block_offset;  ///< bytes from addr
    std::vector<std::int64_t> block_bytes;
    /// Bytes from the block's start to (slab, plane).
    std::int64_t offset(const MatrixSpec& spec, const MatrixPlan& plan, const Block& block, std::int64_t slab, int plane) const;
};

/// Channels of the slab within the block.
std::int64_t slab_depth(const MatrixPlan& plan, const Block& block, std::int64_t slab);

PackedWeights pack_weights(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan);

/// Largest magnitude of a float layer's weights over K, for each output.
std::vector<double> weight_magnitudes(const Lowering& lowering, const MatrixSpec& spec);

/// Sum over K of (w - zero point) for each output: what a shift of every activation by one adds to the accumulator. Wraps as int32 does.
std::vector<std::int32_t> weight_sums(const MatrixSpec& spec);

}  // namespace assay::workloads
