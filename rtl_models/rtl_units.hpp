#pragma once
// Verilated units that fit the seam of systemc/unit.hpp.
#include <memory>
#include <string>
#include <vector>

#include "systemc/unit.hpp"

namespace assay::rtl {

/// MXU geometries built into this binary ("8x8", "32x32"), from CMake's ASSAY_RTL_CONFIGS.
std::vector<std::string> built_mxu_geometries();
/// Throws Error(usage) when the chip's geometry was not built, naming those built and the CMake command that adds one.
std::unique_ptr<chip::Unit> make_mxu(const simkernel::ChipConfig& config, chip::UnitPorts& ports, const chip::WaveOptions& wave);

}  // namespace assay::rtl
