#pragma once
// Calibration of a generated int8 model: ranges of its values on its own inputs, by the fp64 reference.
#include "workloads/generate/quantize.hpp"

namespace assay::campaign {

/// Least and greatest of every float value. Throws Error(usage) when the model is too large to be held, or the reference lacks one of its
/// operators: analytic ranges are the way then.
workloads::generate::Ranges measured_ranges(const workloads::generate::GeneratedModel& model);

}  // namespace assay::campaign
