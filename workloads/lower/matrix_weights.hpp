#pragma once
// Constant weights of a matrix layer, packed for the array: block after block, in each slab after slab, plane after plane, K rows of the
// block's outputs.
#include <functional>

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
/// Weights that lie side by side: outputs [o, o + count) of one (kernel position, channel).
struct PackedRow {
    std::int64_t offset = 0;       ///< bytes from the image's start to the first, in the first plane
    std::int64_t plane_bytes = 0;  ///< from one plane to the next
    std::int64_t o = 0, count = 0;
    std::int64_t index = 0;        ///< position of the first in the ONNX tensor; the others follow at strides[0]
};
void for_each_packed_row(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed, const std::function<void(const PackedRow&)>& visit);
/// Where the first plane's weights lie when each takes `bytes` in the image; `elements`: of the ONNX tensor.
simkernel::ElementMap packed_elements(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed, std::int64_t elements, std::int64_t bytes);

PackedWeights pack_weights(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan);

/// Largest magnitude of a float layer's weights over K, for each output. Throws MalformedNode when one is not finite.
std::vector<double> weight_magnitudes(const Lowering& lowering, const MatrixSpec& spec);

/// Sum over K of (w - zero point) for each output: what a shift of every activation by one adds to the accumulator. Wraps as int32 does.
std::vector<std::int32_t> weight_sums(const MatrixSpec& spec);

}  // namespace assay::workloads
