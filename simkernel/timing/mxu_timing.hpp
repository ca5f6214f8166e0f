#pragma once
// Time of one matmul descriptor on the matrix unit, as the RTL takes it (rtl_models/README.md, "Timing"). Exact, not calibrated:
// tests/rtl_models/mxu_unit_test.cpp demands equality with the Verilated clocks on every random descriptor, and the behavioural unit
// of systemc/ uses this function.
#include "aurum_contract.hpp"
#include "simkernel/types.hpp"

namespace assay::simkernel {

/// Cycles from the offer of a checked descriptor (its waits met) to its retirement, when no port is refused and local reads and write
/// acknowledgements take spm.latency_cycles:
///   setup + K (weight rows) + M*k1*k2 (activation segments) + rows (the array's depth) + 2*latency (first read, last write) + 4.
/// The 4 registers: decode, activation buffer to array edge, array output, retirement.
constexpr Cycles mxu_cycles(const MatmulFields& f, const ChipConfig& config) {
    const std::uint64_t segments = std::uint64_t{f.k_count[1]} * f.k_count[2];
    const std::uint64_t k = segments * f.k_count[0];
    const std::uint64_t m = std::uint64_t{f.m_count[0]} * f.m_count[1] * f.m_count[2];
    const auto latency = static_cast<std::uint64_t>(config.spm_latency_cycles);
    return {static_cast<std::uint64_t>(config.mxu_setup_cycles) + k + m * segments + static_cast<std::uint64_t>(config.mxu_rows) +
            2 * latency + 4};
}

}  // namespace assay::simkernel
