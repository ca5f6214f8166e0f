#pragma once
// How much arithmetic a node asks for, wherever it runs: what the share of the host fallback is counted in.
#include "workloads/graph/graph.hpp"

namespace assay::workloads {

/// Multiply-accumulates of matrix work: convolutions, products, recurrent cells, attention. 0 for all else.
std::uint64_t macs_of(const Graph& graph, NodeId id);

/// 2 a MAC; 1 for each element that a node computes otherwise (of its input when it reduces); 0 for plain data movement and what
/// depends on shapes only.
std::uint64_t operations_of(const Graph& graph, NodeId id);

}  // namespace assay::workloads
