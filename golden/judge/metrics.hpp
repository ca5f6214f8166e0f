#pragma once
// Whole-tensor figures. The similarity figures are reported and never decide; the ratios decide the global error.
#include <vector>

#include "golden/reference/value.hpp"
#include "support/tensor.hpp"

namespace assay::golden {

struct Similarity {
    double pcc = 0, cosine = 0, psnr = 0;  ///< NaN where undefined (constant or zero tensors); psnr in dB over the reference's peak
};
/// Over the elements that are finite on both sides.
Similarity similarity(const Tensor& device, const Value& reference);

struct Ratios {
    double r_rms = 0, r_max = 0, max_abs = 0;
    double yardstick_max = 0;           ///< what r_max is measured in
    std::int64_t class_mismatches = 0;  ///< elements non-finite on the device alone, or finite there alone
    std::int64_t first_mismatch = -1;
};
/// rms and max of (device - golden) over the same of (emulation - fp64), each floored at one output ULP: for floats the ULP of fp32 at each
/// reference value (rms) and at the largest one (max), for integers 1.
/// `level`: a relative error below which the emulation's is not taken: one run of it is one draw, which a small tensor may get right by luck.
Ratios global_ratios(const Tensor& device, const Value& golden, const Value& fp64, const Value& emulation, double level = 0);

double ulp_f32(double x);  ///< distance between fp32 neighbours at |x|, at least the smallest normal number

}  // namespace assay::golden
