#pragma once
// The global judgement: the device's tensor in the whole network against fp64, measured in the error of golden's own emulation; and the
// judgement against published outputs.
#include "golden/judge/verdict.hpp"
#include "golden/reference/value.hpp"

namespace assay::golden {

inline constexpr double kGlobalPass = 2, kGlobalFail = 4;  ///< DESIGN section 7: r <= 2 passes, up to 4 is INCONCLUSIVE, above fails

struct GlobalQuestion {
    const Value& golden;     ///< what the device is compared with
    const Value& fp64;       ///< the reference's own values: what the emulation's error is measured against
    const Value& emulation;
};
/// Adds the global error to a verdict: shape, class, ratios, similarity figures; worsens verdict and reason as they ask.
void judge_global(TensorVerdict& verdict, const Tensor& device, const GlobalQuestion& question);

struct PublishedQuestion {
    const Tensor& device;
    const Tensor& published;
    const Value& fp64;
    const Value& emulation;       ///< in the program's arithmetic
    const Value& emulation_fp32;  ///< in plain fp32, as the runtime that published it computed
    bool classifier = false;      ///< the top class must be the same
};
/// Integers within 2 LSB; floats within what both errors allow: 2 (E + E32), E and E32 the largest errors of the two emulations against fp64
/// (floored at one ULP), twice that is INCONCLUSIVE. Classifiers: the same top class of every row.
TensorVerdict judge_published(const PublishedQuestion& question);

}  // namespace assay::golden
