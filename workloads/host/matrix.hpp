#pragma once
// Products of matrices in double or int64, for every operator that is one inside.
#include <cstdint>
#include <span>

namespace assay::workloads::hostops {

/// y[m, n] (+)= a[m, k] b[k, n], row-major. Doubles sum in Eigen's order; 64-bit integers wrap.
void product(const double* a, const double* b, double* y, std::int64_t m, std::int64_t k, std::int64_t n, bool accumulate = false);
void product(const std::int64_t* a, const std::int64_t* b, std::int64_t* y, std::int64_t m, std::int64_t k, std::int64_t n, bool accumulate = false);

}  // namespace assay::workloads::hostops
