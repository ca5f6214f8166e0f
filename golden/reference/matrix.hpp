#pragma once
// The one place where products are summed: C = A B with, if asked, a bound on the chip's error by the layer's matrix rule.
#include <functional>

#include <Eigen/Core>

#include "golden/reference/numerics.hpp"

namespace assay::golden {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Operand {
    Matrix value;
    Matrix err;  ///< |chip - value| <= err; 0 x 0: exact
};

/// A right operand that is made a few columns at a time, so that a convolution's need never exist whole.
struct Columns {
    /// Writes columns [first, first + count), count <= kPanel, to out[k * kPanel + j]; what lies past `count` is already 0. Called by several
    /// threads at once.
    using Fill = std::function<void(Eigen::Index first, Eigen::Index count, double* out)>;
    Eigen::Index rows = 0, cols = 0;
    Fill value;
    Fill err;  ///< empty: exact
};

struct Product {
    Matrix value;
    Matrix err;  ///< allowance; 0 x 0 when no bounds are kept
};

/// A is M x K, B is K x N, k in the order of the chip's accumulation. `a_is_weight`: A is the constant operand (Conv), else B (MatMul,
/// Gemm). Sums run over k one after another, whatever the number of threads.
Product multiply(const Operand& a, const Columns& b, const Numerics& numerics, bool a_is_weight);
Product multiply(const Operand& a, const Operand& b, const Numerics& numerics, bool a_is_weight);

/// Adds a bias (one a row of the product, or one a column) as the chip does after the accumulation: exactly in integers under the int8
/// rule, which then converts and scales; else one fp32 addition. `bias_err` may be empty. An empty bias only finishes the product.
void add_bias(Product& product, const std::vector<double>& bias, const std::vector<double>& bias_err, bool a_row_each,
              const Numerics& numerics);

}  // namespace assay::golden
