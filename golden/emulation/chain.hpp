#pragma once
// The matrix unit's arithmetic by golden's own hand (docs/numerics.md, matrix): acc = fma(a, w, acc) in fp32, sequential in k from +0, one
// rounding to nearest even and a flush of subnormals a step. Used to decide grey elements to the bit and as the yardstick of global error.
#include <vector>

#include "golden/emulation/rounding.hpp"

namespace assay::golden {

/// Row-major matrices of doubles that hold fp32 (chain_f32) or bf16 (chain_bf16) values.
struct ChainShape {
    long m = 0, k = 0, n = 0;
};

/// acc[m][n] continues over k ascending with a[m][k] * b[k][n]. For bf16 operands this is exact to the bit: the product has 16 significant
/// bits, so double holds a sum that float rounding cannot see to be inexact (a gap that loses bits of the smaller term leaves the larger
/// one, itself a float, 2^-24 away from any rounding boundary). fp32 operands may round twice in rare ties: use it only as an estimate.
void chain(const ChainShape& shape, const double* a, const double* b, double* acc);

/// bf16 operands, rounded once from fp32 values (a double that is none is rounded to fp32 first, as a constant or a stored tensor is).
std::vector<double> chain_bf16(const ChainShape& shape, const double* a, const double* b);
/// Operands of a narrow grid, rounded once likewise. Exact to the bit for the same reason: products have at most 22 significant bits.
std::vector<double> chain_narrow(const ChainShape& shape, const double* a, const double* b, const NarrowGrid& grid);
/// fp32 operands in three bf16 parts each; six passes over all of k, smallest products first: (a2,w0) (a1,w1) (a0,w2) (a1,w0) (a0,w1)
/// (a0,w0). `a_is_weight` swaps the roles of a and b in that order.
std::vector<double> chain_bf16x3(const ChainShape& shape, const double* a, const double* b, bool a_is_weight);

}  // namespace assay::golden
