#pragma once
// An estimate of a run's energy from what its counters and layers say and published energies of operations (configs/energy/*.toml).
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "aurum_contract.hpp"

namespace assay::campaign {

/// Picojoules of one operation; each is a key of the file.
struct EnergyTable {
    std::string name;
    double mac_int8 = 0, mac_bf16 = 0, mac_fp16 = 0, mac_fp8 = 0, vector_element = 0, sram_byte = 0, hbm_byte = 0;
};

/// By name ("7nm", in configs/energy) or by path (ends in .toml). Throws Error(usage) for an unknown name, Error(bad_input) listing every
/// missing, unknown, negative or non-numeric key.
EnergyTable load_energy_table(const std::string& name_or_path);

struct Energy {
    double matrix_pj = 0, vector_pj = 0, sram_pj = 0, hbm_pj = 0;
    double total_pj() const { return matrix_pj + vector_pj + sram_pj + hbm_pj; }
};

/// From a verdict (verdict.json): multiply-accumulates by type as the matrix unit did them (a three-way split counts its products), vector
/// elements, HBM bytes that the DMA moved. SRAM bytes are derived: each DMA byte once; for the matrix unit one activation a row of the
/// array and a partial sum read and written a column; for the vector unit two operands read and one written, four bytes each.
Energy estimate_energy(const nlohmann::json& verdict, const simkernel::ChipConfig& chip, const EnergyTable& table);

}  // namespace assay::campaign
