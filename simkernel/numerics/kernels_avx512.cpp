// The kernels for avx512; its compile options are in this folder's CMakeLists.txt.
#define ASSAY_KERNEL_TABLE kKernelsAvx512
#define ASSAY_KERNEL_NAME "avx512"
#include "simkernel/numerics/kernels_all.inc"
