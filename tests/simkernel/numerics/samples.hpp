#pragma once
// Operand values where floating point goes wrong, and directed-random ones near them.
#include <cstdint>
#include <random>
#include <vector>

namespace assay::simkernel::test {

/// std::mt19937 with results of 32 bits in type too.
using Rng = std::mersenne_twister_engine<std::uint32_t, 32, 624, 397, 31, 0x9908B0DFu, 11, 0xFFFFFFFFu, 7, 0x9D2C5680u, 15, 0xEFC60000u, 18, 1812433253u>;

/// fp32 patterns of every class: zeros, subnormals, the ends of the normal range, ones, ties of conversions, powers of two, infinities, NaNs.
inline std::vector<std::uint32_t> corner_f32() {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t magnitude :
         {0x00000000u, 0x00000001u, 0x00400000u, 0x007FFFFFu, 0x00800000u, 0x00800001u, 0x00FFFFFFu, 0x01000000u, 0x0C800000u, 0x1FFFFFFFu, 0x20000000u,
          0x33000000u, 0x33800000u, 0x34000000u, 0x3E800000u, 0x3EFFFFFFu, 0x3F000000u, 0x3F000001u, 0x3F3504F2u, 0x3F3504F3u, 0x3F7FFFFFu, 0x3F800000u,
          0x3F800001u, 0x3F808000u, 0x3F818000u, 0x3FB504F3u, 0x3FB504F4u, 0x3FC00000u, 0x40000000u, 0x40200000u, 0x40490FDBu, 0x4AFFFFFFu, 0x4B000000u,
          0x4B000001u, 0x4B7FFFFFu, 0x42FC0000u, 0x42FC0001u, 0x42FBFFFFu, 0x43000000u, 0x42FFFFFFu, 0x4EFFFFFFu, 0x4F000000u, 0x4F000001u, 0x5F000000u,
          0x7E800000u, 0x7EFFFFFFu, 0x7F000000u, 0x7F7F7FFFu, 0x7F7F8000u, 0x7F7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu})
        for (const std::uint32_t sign : {0u, 0x80000000u}) out.push_back(magnitude | sign);
    return out;
}

/// Random fp32: half of them of any pattern, half near 1 or near the flush threshold, where sums cancel and products underflow.
inline std::uint32_t directed_f32(Rng& rng) {
    const std::uint32_t bits = rng();
    switch (rng() % 4) {
        case 0: return (bits & 0x80FFFFFFu) | 0x3F000000u;  // magnitude in [0.5, 2)
        case 1: return (bits & 0x8FFFFFFFu) | 0x00000000u;  // below 2^-96
        default: return bits;
    }
}
/// The same for bf16: small significands make exact cancellation likely.
inline std::uint16_t directed_bf16(Rng& rng) {
    const auto bits = static_cast<std::uint16_t>(rng());
    switch (rng() % 6) {
        case 0: return bits;
        case 1: return static_cast<std::uint16_t>((bits & 0x807Fu) | 0x1F80u);  // squares lie near 2^-126
        case 2: return static_cast<std::uint16_t>((bits & 0x8003u) | 0x0080u);
        default: return static_cast<std::uint16_t>((bits & 0x81FFu) | 0x3E00u);
    }
}

}  // namespace assay::simkernel::test
