#pragma once
// The SystemC chip as a Target: `tlm`, and `hybrid:<units>` when some units are Verilated. One a process (SystemC elaborates once).
#include "switchover/target.hpp"

namespace assay::switchover {

/// `rtl_units` are names of units ("mxu"). Throws Error(usage) for an unknown unit or a geometry that was not built.
std::unique_ptr<Target> make_chip_target(const std::string& name, const std::vector<std::string>& rtl_units, const TargetOptions& options);

}  // namespace assay::switchover
