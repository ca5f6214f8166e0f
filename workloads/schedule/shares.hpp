#pragma once
// How equal units of work (tiles) are dealt out to cores: in runs, as even as whole units are.
#include <algorithm>
#include <cstdint>
#include <string>

#include "aurum_contract.hpp"

namespace assay::workloads {

struct Share {
    std::int64_t begin = 0, end = 0;
    bool has(std::int64_t unit) const { return unit >= begin && unit < end; }
    std::int64_t count() const { return end - begin; }
};

constexpr Share share_of(std::int64_t units, std::int64_t part, std::int64_t parts) { return {units * part / parts, units * (part + 1) / parts}; }

/// Cycles that a layer on several cores pays for it: its loads wait for a shared signal of whoever stored their bytes, where one core's own would
/// have been seen at once, and the cores are seldom even.
inline double sharing_cycles(const simkernel::ChipConfig& chip) {
    return static_cast<double>(2 * (chip.noc_latency_cycles + chip.dma_setup_cycles + chip.hbm_t_rcd_cycles + chip.hbm_t_cl_cycles));
}

/// Bytes a cycle that each of `cores` has of HBM when all ask.
inline double bytes_per_cycle(const simkernel::ChipConfig& chip, std::int64_t cores) {
    return std::min(static_cast<double>(chip.noc_bytes_per_cycle), static_cast<double>(chip.hbm_channels * chip.hbm_bytes_per_cycle) / static_cast<double>(cores));
}

/// For a layer's mapping: ", 4 cores", or nothing for one.
inline std::string on_cores(std::int64_t cores) { return cores > 1 ? ", " + std::to_string(cores) + " cores" : ""; }

/// Cores, up to `most`, that finish a layer of `units` equal units soonest, when it takes one core `cycles` in all.
inline std::int64_t cores_for(const simkernel::ChipConfig& chip, std::int64_t most, std::int64_t units, double cycles) {
    std::int64_t best = 1;
    double least = cycles;
    for (std::int64_t cores = 2; cores <= std::min(most, units); ++cores) {
        const double shared = cycles * static_cast<double>((units + cores - 1) / cores) / static_cast<double>(units) + sharing_cycles(chip);
        if (shared >= least) continue;
        least = shared;
        best = cores;
    }
    return best;
}

}  // namespace assay::workloads
