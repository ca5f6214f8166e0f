#pragma once
// The host fallback: nodes that the chip has no instruction for become steps that the runtime executes between descriptors.
#include <string>

#include "workloads/lower/lowering.hpp"

namespace assay::workloads {

/// Records a step for the node, with the view nodes between the device's tensors and it. Throws NodeError when the host cannot run it either
/// (random, string, sequence, optional and training operators): the text says both reasons.
void lower_to_host(Lowering& lowering, NodeId id, const std::string& reason);

/// A graph output that is a constant or a graph input itself: the host hands it over.
void lower_host_output(Lowering& lowering, ValueId value);

}  // namespace assay::workloads
