#pragma once
// Precision policies: how fp32 matrix work goes onto the array (docs/numerics.md section 3). QDQ/QLinear nodes of the model stay integer under
// each of them.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aurum_contract.hpp"

namespace assay::workloads {

/// What happens to operands on their way to the array, beside the rounding to its type.
enum class Scaling {
    none,
    powers,     ///< both are divided by powers of two: activations by one from calibration, weights by one for each output
    integers,   ///< both become 8-bit integers: activations in steps from calibration, weights in steps of their output
    weights_8,  ///< constant weights are 8-bit integers in device memory, in steps of their output
    weights_4,  ///< constant weights are 4-bit integers in device memory, in steps of 32 values of K
};

struct Policy {
    std::string_view name;       ///< as on the command line
    simkernel::Dtype array;      ///< type of operands on the array
    int planes;                  ///< parts that an fp32 operand is split into
    Scaling scaling;
    std::string_view layer;      ///< Layer::precision of its float matrix layers
    std::string_view otherwise;  ///< policy of layers that it cannot have: no calibrated range, no constant weights; "": none such
    std::string_view text;       ///< for people

    bool calibrated() const { return scaling == Scaling::powers || scaling == Scaling::integers; }
};

/// All of them, in the order in which help lists them.
std::span<const Policy> policies();
std::vector<std::string> policy_names();
/// Throws Error(usage) naming all of them.
const Policy& find_policy(std::string_view name);

/// The power of two by which values up to `largest` are divided on their way to `type`, so that they use its range without passing it:
/// the least 2^e with largest / 2^e <= the type's largest finite value, e in [-100, 100]. 1 for types without scaling and for a largest
/// that is zero or not finite. Exact: 448 gives 1, 449 gives 2, 224 gives 0.5 in f8e4m3.
double scale_for(simkernel::Dtype type, double largest);

/// Eight-bit steps of an activation: value = step * (q - zero), q in [-128, 127].
struct IntegerSteps {
    float step = 1;
    int zero = 0;
};
/// Steps that reach every value of [low, high] and hold 0 exactly; `symmetric`: with zero at 0. Step 1 when the range is empty or not finite.
IntegerSteps steps_for(double low, double high, bool symmetric);

/// The step of weights of magnitude up to `largest` as integers of -most .. most: largest / most as fp32, then as bf16 if asked; 1 when that is zero
/// or not finite.
float weight_step(double largest, int most, bool bf16);

}  // namespace assay::workloads
