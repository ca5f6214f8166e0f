#pragma once
// Elementwise nodes that run as one expression: what follows a value, as long as each value between is read inside only. A value that is
// read twice (x * sigmoid(x)) is no obstacle when both readers join.
#include <functional>
#include <map>

#include "workloads/lower/lanes.hpp"
#include "workloads/lower/lowering.hpp"

namespace assay::workloads {

struct Chain {
    std::vector<NodeId> nodes;   ///< producers before consumers
    ValueId output = kNoValue;   ///< the only value that is read outside
};

/// How a chain reads what it does not compute.
class ChainReader {
public:
    virtual ~ChainReader() = default;
    /// A tensor or constant, broadcast to the chain's shape.
    virtual Lane read(ValueId value) = 0;
    /// One value for each index of dimension 1.
    virtual Expr::Ref channel(NodeId id, const std::vector<float>& values, const char* suffix) = 0;
};

/// Extends the chain from `chain.output` on, by nodes of its shape that read, besides the chain's values, only what `readable` admits; at most
/// `most_sources` tensors besides scalars. Probed values and graph outputs end it.
void grow_chain(const Lowering& lowering, Chain& chain, const std::function<bool(ValueId)>& readable, std::size_t most_sources);

/// The chain's last value; `values` holds what its nodes read from before it.
Lane emit_chain(Expr& expr, const Graph& graph, const std::vector<NodeId>& nodes, std::map<ValueId, Lane> values, ChainReader& reader);

}  // namespace assay::workloads
