// The library's kernels as 64-byte vectors built from AVX2 registers: the code of the AVX-512 path but for its intrinsics.
#define ASSAY_VECTOR_BYTES 64
#define ASSAY_KERNEL_TABLE kKernelsWide
#define ASSAY_KERNEL_NAME "wide"
#include "simkernel/numerics/kernels_all.inc"
