#pragma once
// The tables that the kernels_*.cpp define, one an instruction set. Constant-initialised: safe to read at any time.
#include "simkernel/numerics/kernels.hpp"

namespace assay::simkernel {

extern const KernelTable kKernelsBaseline;    ///< SSE2: the floor of x86-64
extern const KernelTable kKernelsAvx2;        ///< AVX2, FMA
extern const KernelTable kKernelsAvx512;      ///< AVX-512 F, BW, DQ, VL
extern const KernelTable kKernelsAvx512Vnni;  ///< and VNNI (vpdpwssd)
extern const KernelTable kKernelsWide;        ///< 64-byte vectors on AVX2 registers: tests the shape of AVX-512; not linked into the library

}  // namespace assay::simkernel
