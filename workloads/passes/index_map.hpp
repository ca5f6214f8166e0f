#pragma once
// Operators that choose, repeat, reverse or drop elements dimension by dimension (Slice, Split, Expand, Tile, Gather by constants, Pad,
// nearest Resize): each dimension of the result says which index of the input it reads. One description serves shape inference, views and
// moves, so that the three cannot disagree.
#include <optional>

#include "workloads/graph/graph.hpp"

namespace assay::workloads {

inline constexpr std::int64_t kFill = -1;  ///< an index that reads no element: the padding value stands there

struct IndexMap {
    std::optional<std::size_t> source;  ///< dimension of the input; none: a new dimension, which repeats
    Shape extents;                      ///< dimensions of the result that it makes, outermost first; none for a Gather by a scalar
    std::int64_t start = 0, step = 1;   ///< row-major index i over `extents` reads start + i * step …
    std::vector<std::int64_t> list;     ///< … unless a list says what it reads
    std::int64_t count() const { return element_count(extents); }
    std::int64_t at(std::int64_t i) const { return list.empty() ? start + i * step : list[static_cast<std::size_t>(i)]; }
};

/// The maps of output number `output`; together their extents are its shape. nullopt when the node is of another family, or a parameter is
/// computed at run time. Throws MalformedNode when the parameters break the operator's rules, NodeError for a list past 2^24 entries.
///
/// Slice-1…13, Split-2…18, Expand-8, Tile-6, Gather-1…13, Pad-2…24, Upsample-7/9, Resize-10…19 (mode nearest).
std::optional<std::vector<IndexMap>> index_maps(const Graph& graph, NodeId id, std::size_t output = 0);

/// The constant integers of input i (or of attribute `name`, for versions that have it); nullopt when they are computed at run time, an
/// empty list when absent.
std::optional<std::vector<std::int64_t>> constant_integers(const Graph& graph, NodeId id, std::size_t i, const char* name = nullptr);

}  // namespace assay::workloads
