#pragma once
// From the accumulator to the layer's result: bias, scale, activations, requantisation (docs/numerics.md §vector).
#include "workloads/lower/matrix.hpp"

namespace assay::workloads {

inline constexpr std::uint32_t kFirstExtra = 64;  ///< more than a drain has parameters

struct Drain {
    /// Stream 0: the accumulator; streams 1, 2, …: the parameters, one word for each output; from kFirstExtra on: MatrixSpec::extras.
    Expr expr;
    ExprPlan plan;
    std::vector<std::vector<std::uint32_t>> params;
    std::vector<simkernel::Dtype> types;
};

Drain build_drain(const Lowering& lowering, const MatrixSpec& spec);

}  // namespace assay::workloads
