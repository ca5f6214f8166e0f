#pragma once
// Is a program legal? It is when it also runs right one descriptor at a time in stream order (DESIGN §3): every wait is met by signals of
// earlier descriptors, each semaphore has one signalling engine (of one core), no signal overflows. Linear in the program.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simkernel/exec/decode.hpp"

namespace assay::simkernel {

struct ProgramProblem {
    std::uint32_t descriptor = 0;
    ErrorCode code = ErrorCode::none;
    std::string text;
};

/// Problems in stream order, at most `limit`; empty when legal.
std::vector<ProgramProblem> check_program(std::span<const DescriptorWords> descriptors, const ChipConfig& config, std::size_t limit = 20);

/// True when some wait of the program needs the signal of descriptor `index` (its semaphore's value counts for a later wait).
bool signal_is_needed(std::span<const DescriptorWords> descriptors, std::uint32_t index);

}  // namespace assay::simkernel
