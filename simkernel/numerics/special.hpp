#pragma once
// Constants of the vector unit's functions that are defined by algorithm (docs/numerics.md §special). The scalar definition and the vector
// kernels read the same numbers; they are part of the chip's contract, so changing one changes bits.
namespace assay::simkernel::special {

// recip: 1/m on [1, 2), minimax quadratic (|relative error| <= 2^-6.62); two Newton steps follow.
inline constexpr float kRecip[3] = {0x1.0f8380p+1f, -0x1.745c0ap+0f, 0x1.4afc08p-2f};

// rsqrt: m^(-1/2) on [1, 4), minimax cubic (|relative error| <= 2^-7.14); two Newton steps follow.
inline constexpr float kRsqrt[4] = {0x1.8e618cp+0f, -0x1.7a4a14p-1f, 0x1.8eb392p-3f, -0x1.381b2ep-6f};

// exp2: (2^f - 1)/f on [-1/2, 1/2], minimax of degree 5.
inline constexpr float kExp2[6] = {0x1.62e430p-1f, 0x1.ebfbdcp-3f, 0x1.c6aee8p-5f, 0x1.3b2d4cp-7f, 0x1.5f3e54p-10f, 0x1.41fbbap-13f};

// log2(1 + t) = t*kLog2Hi + (t*kLog2Lo + t*t*Q(t)), t in [sqrt(1/2) - 1, sqrt(2) - 1]; Hi + Lo = log2(e) to 50 bits, Q of degree 9.
inline constexpr float kLog2Hi = 0x1.715476p+0f;
inline constexpr float kLog2Lo = 0x1.4ae0c0p-26f;
inline constexpr float kLog2[10] = {-0x1.715476p-1f, 0x1.ec7088p-2f, -0x1.715490p-2f, 0x1.277f2ap-2f, -0x1.ec7858p-3f,
                                    0x1.a414c8p-3f,  -0x1.6e97a6p-3f, 0x1.5fa174p-3f, -0x1.58fbe0p-3f, 0x1.8d65e2p-4f};
/// Significands from this bit pattern up (sqrt(2) rounded) are halved, so that t stays around zero.
inline constexpr unsigned kSqrt2Mantissa = 0x3504F3u;

}  // namespace assay::simkernel::special
