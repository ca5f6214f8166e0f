#pragma once
// What the quantised matrix operators share.
#include <cstdint>

namespace assay::workloads::hostops {

/// round half to even(sum * scale) + zero point, before saturation: the requantisation of QLinearConv-10 and QLinearMatMul-10.
double requantized(double sum, double scale, std::int64_t zero_point);

}  // namespace assay::workloads::hostops
