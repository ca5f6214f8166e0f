#pragma once
// Precision policies: how fp32 matrix work goes onto the array. QDQ/QLinear nodes of the model stay integer under each of them.
#include <span>
#include <string>
#include <string_view>

#include "aurum_contract.hpp"

namespace assay::workloads {

struct Policy {
    std::string_view name;   ///< as on the command line
    simkernel::Dtype array;  ///< type of float operands on the array
    int planes;              ///< parts that an fp32 operand is split into
    bool scaled;             ///< operands are divided by powers of two, which the drain multiplies back: needs calibrated ranges
    std::string_view layer;  ///< Layer::precision of its float matrix layers
    std::string_view text;   ///< for people
};

/// All of them, in the order in which help lists them.
std::span<const Policy> policies();
/// Throws Error(usage) naming all of them.
const Policy& find_policy(std::string_view name);

/// The power of two by which values up to `largest` are divided on their way to `type`, so that they use its range without passing it:
/// the least 2^e with largest / 2^e <= the type's largest finite value, e in [-100, 100]. 1 for types without scaling and for a largest
/// that is zero or not finite. Exact: 448 gives 1, 449 gives 2, 224 gives 0.5 in f8e4m3.
double scale_for(simkernel::Dtype type, double largest);

}  // namespace assay::workloads
