#pragma once
// Constant weights of a matrix layer, packed for the array: block after block, in each slab after slab, plane after plane, K rows of the
// block's outputs.
#include "workloads/lower/matrix_plan.hpp"

namespace assay::workloads {

struct PackedWeights {
    std::uint64_t addr = 0;                  ///< in HBM
    std::vector<std::int64_t> block_offset;  ///< bytes from addr
    std::vector<std::int64_t> block_bytes;
    std::vector<std::int64_t> narrow_offset;  ///< 4-bit weights: bytes from addr to each block in device memory; the two above count on the array
    /// Bytes from the block's start to (slab, plane).
    std::int64_t offset(const MatrixSpec& spec, const MatrixPlan& plan, const Block& block, std::int64_t slab, int plane) const;
};

/// Channels of the slab within the block.
std::int64_t slab_depth(const MatrixPlan& plan, const Block& block, std::int64_t slab);

/// Calls visit(o, c, i) for every weight of the layer: output, channel within its group, position in the ONNX tensor.
void for_each_weight(const MatrixSpec& spec, const std::function<void(std::int64_t o, std::int64_t c, std::int64_t index)>& visit);
/// Calls visit(offset, plane_bytes, o, index) for every weight that is packed: byte of its first plane from the image's start, bytes from one
/// plane to the next, output, position in the ONNX tensor.
void for_each_packed(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed,
                     const std::function<void(std::int64_t offset, std::int64_t plane_bytes, std::int64_t o, std::int64_t index)>& visit);

PackedWeights pack_weights(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan);

/// Largest magnitude of a float layer's weights over K, for each output. Throws MalformedNode when one is not finite.
std::vector<double> weight_magnitudes(const Lowering& lowering, const MatrixSpec& spec);

/// Sum over K of (w - zero point) for each output: what a shift of every activation by one adds to the accumulator. Wraps as int32 does.
std::vector<std::int32_t> weight_sums(const MatrixSpec& spec);

}  // namespace assay::workloads
