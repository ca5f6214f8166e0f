// The kernels for avx512vnni; its compile options are in this folder's CMakeLists.txt.
#define ASSAY_KERNEL_TABLE kKernelsAvx512Vnni
#define ASSAY_KERNEL_NAME "avx512vnni"
#include "simkernel/numerics/kernels_all.inc"
