#pragma once
// Independent statements of what an operation must give: exact integer arithmetic, and the host's own FMA unit.
#include <cstdint>

namespace assay::simkernel::test {

/// a*b + c from the definition in 128-bit integers: exact product and sum, one rounding to nearest even at 24 bits with unbounded exponent,
/// then overflow and flush. Shares no code with simkernel/numerics.
std::uint32_t exact_fma(std::uint32_t a, std::uint32_t b, std::uint32_t c);

/// The host's fused multiply-add instruction under FTZ|DAZ, NaNs made canonical. Only where has_host_fma().
bool has_host_fma();
std::uint32_t host_fma(std::uint32_t a, std::uint32_t b, std::uint32_t c);

}  // namespace assay::simkernel::test
