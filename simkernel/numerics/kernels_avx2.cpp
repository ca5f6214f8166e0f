// The kernels for avx2; its compile options are in this folder's CMakeLists.txt.
#define ASSAY_KERNEL_TABLE kKernelsAvx2
#define ASSAY_KERNEL_NAME "avx2"
#include "simkernel/numerics/kernels_all.inc"
