#pragma once
// What one checked descriptor does to memory. The sequential interpreter, the TLM's behavioural units and the bridges' checks all call this:
// there is one meaning of a descriptor.
#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/memory.hpp"

namespace assay::simkernel {

struct Effect {
    Fault fault;           ///< an external access failed; local ones were checked by decode
    bool saturated = false;
    std::uint64_t work = 0;  ///< counter `work` of its engine: MACs, element operations or bytes
};

Effect execute(const Decoded& decoded, LocalMemory& local, ExternalMemory& external, const ChipConfig& config);

/// True for a load or store that goes through a list of rows.
bool is_indexed(const Decoded& decoded);
/// The rows that an indexed load or store goes through, in order, negative words counted from the limit; empty for any other descriptor.
/// To be read before the descriptor is executed: a load may overwrite its own list.
std::vector<std::int64_t> transfer_rows(const Decoded& decoded, LocalMemory& local);

/// `work` without executing.
std::uint64_t work_of(const Decoded& decoded);

}  // namespace assay::simkernel
