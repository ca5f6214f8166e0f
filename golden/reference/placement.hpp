#pragma once
// How a matrix rule puts fp32 operands on the array (docs/numerics.md section 3): divided by a scale, and rounded to what the array takes.
#include "golden/emulation/chain.hpp"
#include "golden/reference/numerics.hpp"

namespace assay::golden {

/// `count` numbers, `stride` apart: one row or column of an operand, over k.
struct Line {
    double* at;
    long count, stride;
    double& operator[](long i) const { return at[i * stride]; }
};

enum class Role { activation, weight };

/// True where operands are scaled or replaced before the array's own rounding.
bool has_scales(MatrixRule rule);

/// Brings a line into the array's units, not yet rounded, and returns what one unit counts: sums are multiplied back by it. A weight without a
/// scale of its own (Numerics::w_scale is 0) takes that of its largest magnitude.
double place(const Numerics& numerics, Role role, const Line& line);

/// True where the array takes something coarser than fp32, by one rounding: place_rounded says which.
bool rounds_once(MatrixRule rule);
/// The array's operand for a placed value.
double place_rounded(const Numerics& numerics, Role role, double x);

/// The chain that sums the products; w8a8 and int8 have none, being exact.
Parts parts_of(MatrixRule rule);

}  // namespace assay::golden
