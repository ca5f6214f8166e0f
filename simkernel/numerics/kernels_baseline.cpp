// The kernels for baseline; its compile options are in this folder's CMakeLists.txt.
#define ASSAY_KERNEL_TABLE kKernelsBaseline
#define ASSAY_KERNEL_NAME "baseline"
#include "simkernel/numerics/kernels_all.inc"
