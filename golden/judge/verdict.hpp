#pragma once
// What a judgement says. Worst first: FAIL, ERROR, MISS, INCONCLUSIVE, PASS, MEASURED, SKIP (DESIGN section 7).
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/tensor.hpp"

namespace assay::golden {

enum class Verdict { fail, error, miss, inconclusive, pass, measured, skip };
std::string_view name_of(Verdict verdict);  ///< "FAIL", ...
Verdict worse(Verdict a, Verdict b);
/// The worst of them; MISS for none, and for nothing but SKIP: a run in which nothing was judged did not run.
Verdict worst(std::span<const Verdict> verdicts);

/// One element, for people: where it stands and what it holds.
struct ElementReport {
    std::int64_t index = 0;        ///< row-major
    std::vector<std::int64_t> at;  ///< the same as coordinates
    double device = 0, expected = 0, allow = 0;
};

/// Against this layer alone, fed with the device's own inputs.
struct LocalError {
    double max_abs = 0;       ///< largest |device - g|
    double max_ratio = 0;     ///< largest |device - g| / allowance; 0/0 counts as 0
    std::int64_t grey = 0;    ///< elements beyond the allowance that golden's emulation decided to the bit in the device's favour
    std::int64_t lsb = 0;     ///< requantised elements that differ by 1 LSB at a rounding boundary
    std::int64_t failed = 0;  ///< elements out of bounds
};

/// Against the whole network in fp64: (device - fp64) over (emulation - fp64), floored at one output ULP.
struct GlobalError {
    double r_rms = 0, r_max = 0;
    double max_abs = 0;  ///< largest |device - fp64|
};

struct TensorVerdict {
    std::string name, node, op, layer, dtype, shape, precision;
    std::string role;             ///< "layer", "output", "published"
    std::size_t layer_index = 0;  ///< role "layer": index into the program's layers
    Verdict verdict = Verdict::miss;
    std::string reason;               ///< why it is not PASS; "only its shape was judged" for a zero-size tensor
    double max_abs = 0, max_rel = 0;  ///< against the reference that decided; relative to |reference|, over non-zero elements
    std::optional<LocalError> local;
    std::optional<GlobalError> global;
    /// Reported, never deciding (y = 2x and y = x + 1000 both have a PCC of 1.000). NaN where undefined; psnr in dB, infinite when equal.
    double pcc = 0, cosine = 0, psnr = 0;
    std::optional<ElementReport> first_failing;
    std::int64_t elements = 0;  ///< elements compared
};

struct RunVerdict {
    Verdict verdict = Verdict::miss;
    std::string reason;                        ///< of the verdict when no tensor explains it
    std::vector<TensorVerdict> tensors;        ///< one an output of each layer of the program, in its order
    std::vector<TensorVerdict> outputs;        ///< against golden, then against published outputs
    std::optional<std::size_t> first_failing;  ///< index into the program's layers: the first layer whose own arithmetic is wrong
    std::string first_failing_layer;           ///< its name, "" when none
    std::vector<std::string> warnings;         ///< of the reference: non-finite weights and the like

    /// The worst verdict among a layer's outputs; null when none was judged (a step of a node that was taken apart).
    const TensorVerdict* of_layer(std::size_t layer) const;
};

}  // namespace assay::golden
