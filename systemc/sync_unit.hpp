#pragma once
// Behavioural collective unit: `sync` takes one cycle.
#include "systemc/compute_unit.hpp"

namespace assay::chip {

class SyncUnit final : public ComputeUnit {
public:
    using ComputeUnit::ComputeUnit;

protected:
    Cycles cycles_of(const simkernel::Decoded&, const simkernel::ChipConfig&) const override { return {1}; }
};

}  // namespace assay::chip
