#include "systemc/mxu_unit.hpp"

#include "simkernel/timing/mxu_timing.hpp"

namespace assay::chip {

Cycles MxuUnit::cycles_of(const simkernel::Decoded& descriptor, const simkernel::ChipConfig& config) const {
    return simkernel::mxu_cycles(std::get<simkernel::MatmulFields>(descriptor.op), config);
}

}  // namespace assay::chip
