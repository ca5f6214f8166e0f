#pragma once
// The global judgement: the device's tensor in the whole network against fp64, measured in the error of golden's own emulation; and the
// judgement against published outputs.
#include "golden/judge/verdict.hpp"
#include "golden/reference/value.hpp"

namespace assay::golden {

inline constexpr double kGlobalPass = 2, kGlobalFail = 4;  ///< DESIGN section 7: r <= 2 passes, up to 4 is INCONCLUSIVE, above fails

struct GlobalQuestion {
    const Value& golden;  ///< what the device is compared with
    const Value& fp64;    ///< the reference's own values: what the emulation's error is measured against
    const Value& emulation;
    double level = 0;  ///< typical relative error of the network's tensors (median_level): no tensor is measured in less
};
/// Adds the global error to a verdict: shape, class, ratios, similarity figures; worsens verdict and reason as they ask.
void judge_global(TensorVerdict& verdict, const Tensor& device, const GlobalQuestion& question);

struct PublishedQuestion {
    const Tensor& device;
    const Tensor& published;
    const Value& fp64;
    const Value& emulation;  ///< in the program's arithmetic
    /// Largest relative error of the network's tensors in fp32 (fp32_level below): what the runtime that published the output may be off
    /// by.
    double fp32_level = 0;
    bool classifier = false;  ///< the top class must be the same
};
/// Integers within 2 LSB; floats within 2 (E + E32), E the largest error of the emulation against fp64 at this output and E32 = fp32_level
/// times its largest value, each at least one ULP; up to twice that is INCONCLUSIVE. Classifiers: the same top class of every row.
TensorVerdict judge_published(const PublishedQuestion& question);

/// max |emulation - fp64| over max |fp64| of one tensor; 0 for integers and for tensors without a finite non-zero value. The largest over a
/// network's tensors is its fp32 level: over all of them, since an output of two elements may be right by luck.
double relative_level(const Value& fp64, const Value& emulation);

/// rms(emulation - fp64) over rms(fp64) of one tensor; 0 for integers and where either is not finite or fp64 is zero.
double rms_level(const Value& fp64, const Value& emulation);

}  // namespace assay::golden
