#include "systemc/vpu_unit.hpp"

#include "systemc/timing/vpu_timing.hpp"

namespace assay::chip {

Cycles VpuUnit::cycles_of(const simkernel::Decoded& descriptor, const simkernel::ChipConfig& config) const {
    const auto* vector = std::get_if<simkernel::VectorFields>(&descriptor.op);
    if (vector == nullptr) return {1};
    return Cycles{static_cast<std::uint64_t>(config.vpu_setup_cycles)} + vector_cycles(*vector, config.vpu_lanes);
}

}  // namespace assay::chip
