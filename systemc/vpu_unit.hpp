#pragma once
// Behavioural vector unit; cycles by systemc/timing/vpu_timing.hpp. A nop takes one cycle.
#include "systemc/compute_unit.hpp"

namespace assay::chip {

class VpuUnit final : public ComputeUnit {
public:
    using ComputeUnit::ComputeUnit;

protected:
    Cycles cycles_of(const simkernel::Decoded& descriptor, const simkernel::ChipConfig& config) const override;
};

}  // namespace assay::chip
