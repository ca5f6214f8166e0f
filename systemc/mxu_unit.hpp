#pragma once
// Behavioural matrix unit; cycles are those of the RTL (simkernel/timing/mxu_timing.hpp).
#include "systemc/compute_unit.hpp"

namespace assay::chip {

class MxuUnit final : public ComputeUnit {
public:
    using ComputeUnit::ComputeUnit;

protected:
    Cycles cycles_of(const simkernel::Decoded& descriptor, const simkernel::ChipConfig& config) const override;
};

}  // namespace assay::chip
