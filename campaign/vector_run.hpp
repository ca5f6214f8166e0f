#pragma once
// One conformance vector on a target that is already there.
#include "campaign/conformance.hpp"

namespace assay::campaign {

/// Never throws what the vector causes: that is its outcome. `seconds` is the caller's.
VectorOutcome run_vector(const std::string& folder, switchover::Target& target, const ConformanceOptions& options);

}  // namespace assay::campaign
