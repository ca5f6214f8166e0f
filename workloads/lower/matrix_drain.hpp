#pragma once
// From the accumulator to the layer's result: bias, scale, activations, requantisation (docs/numerics.md §vector).
#include "workloads/lower/matrix.hpp"

namespace assay::workloads {

struct Drain {
    Expr expr;  ///< stream 0: the accumulator; streams 1, 2, …: the parameters, one word for each output
    std::vector<std::vector<std::uint32_t>> params;
    std::vector<simkernel::Dtype> types;
};

Drain build_drain(const MatrixSpec& spec);

}  // namespace assay::workloads
