// Resize between neighbours: linear and cubic.
#include <fmt/core.h>

#include "workloads/lower/lower.hpp"

namespace assay::workloads {

void lower_interpolation(Lowering& l, NodeId id) {
    throw NodeError(id, fmt::format("mode=\"{}\" has no lowering yet", l.graph.node(id).text("mode", "nearest")));
}

}  // namespace assay::workloads
