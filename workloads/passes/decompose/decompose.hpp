#pragma once
// Nodes that the chip has no lowering for, taken apart into nodes that it has. Runs after infer_and_fold. A node that cannot be taken apart (a
// weight made at run time, an activation that is not known here) stays as it is and runs on the host.
#include "workloads/graph/graph.hpp"

namespace assay::workloads {

/// Replaces what it can. New nodes keep the original's `index`; new values are named "<first output>#<step>" and are `internal`; shapes and
/// types of all of them are known. Appends to `errors` what breaks the rules of an operator.
void decompose(Graph& graph, std::vector<NodeError>& errors);

}  // namespace assay::workloads
