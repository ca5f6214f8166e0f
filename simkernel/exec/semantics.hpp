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

/// `work` without executing.
std::uint64_t work_of(const Decoded& decoded);

}  // namespace assay::simkernel
