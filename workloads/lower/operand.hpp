#pragma once
// How a layer reads a tensor: a strided view of a device tensor, dequantised on the way if the model says so. Transpose, most Reshapes, Slice,
// Split, Expand and DequantizeLinear are views, so they cost nothing: the layer that reads them runs their nodes too.
#include <optional>

#include "workloads/graph/graph.hpp"

namespace assay::workloads {

struct Quantization {
    float scale = 1.0f;
    std::int32_t zero_point = 0;  ///< as stored on the device: a uint8 tensor is int8 with value - 128, and so is its zero point
    bool operator==(const Quantization&) const = default;
};

struct Operand {
    ValueId device = kNoValue;          ///< the tensor in HBM, or a constant
    std::int64_t offset = 0;            ///< elements from its start
    Shape shape;                        ///< as the reading node sees it
    std::vector<std::int64_t> strides;  ///< elements, by logical dimension of `shape`; 0 repeats
    std::optional<Quantization> quantization;
    std::vector<NodeId> path;  ///< the view nodes between the device tensor and the reader, in order

    bool constant = false;  ///< `device` is a constant of the model
};

std::vector<std::int64_t> row_major_strides(const Shape& shape);

/// The next index in row-major order; false (and all zero) after the last.
bool next_index(Shape& index, const Shape& extents);

/// The strides after reshaping without moving data; nullopt when that is impossible.
std::optional<std::vector<std::int64_t>> reshape_strides(const Shape& from, const std::vector<std::int64_t>& strides, const Shape& to);

/// Per-tensor quantisation parameters of a QuantizeLinear or DequantizeLinear-like node (scale at input `scale`, zero point at `zero`,
/// possibly absent). Throws NodeError when they are not constant scalars.
Quantization tensor_quantization(const Graph& graph, NodeId id, ValueId scale, ValueId zero, DType type);

struct IndexMap;
/// Input indices a step of each of the map's dimensions goes; nullopt when the steps differ along one.
std::optional<std::vector<std::int64_t>> affine_strides(const IndexMap& map);

/// The view that output number `output` of the node is of its (already resolved) input 0; nullopt when the node computes or moves data.
std::optional<Operand> view_through(const Graph& graph, NodeId id, const Operand& input, std::size_t output = 0);

/// Broadcasts the view to `shape` (ONNX rules): repeated dimensions get stride 0.
Operand broadcast_to(const Operand& operand, const Shape& shape);

}  // namespace assay::workloads
