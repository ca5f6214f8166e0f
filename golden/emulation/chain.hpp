#pragma once
// The matrix unit's arithmetic by golden's own hand (docs/numerics.md, matrix): acc = fma(a, w, acc) in fp32, sequential in k from +0, one
// rounding to nearest even and a flush of subnormals a step. Used to decide grey elements to the bit and as the yardstick of global error.
#include <vector>

namespace assay::golden {

/// Row-major matrices of doubles that hold fp32 (chain) or bf16 (chain_bf16) values.
struct ChainShape {
    long m = 0, k = 0, n = 0;
};

/// acc[m][n] continues over k ascending with a[m][k] * b[k][n]. For bf16 and narrower operands (fp16 has 11 bits) this is exact to the bit: the
/// product has at most 22 significant bits, so double holds a sum that float rounding cannot see to be inexact (a gap that loses bits of the smaller term leaves the larger
/// one, itself a float, 2^-24 away from any rounding boundary). fp32 operands may round twice in rare ties: use it only as an estimate.
/// This is the plain statement of the rule; ChainProduct is the fast one.
void chain(const ChainShape& shape, const double* a, const double* b, double* acc);

/// Columns of the right operand that are taken at once.
inline constexpr long kPanel = 16;

/// What the operands become on their way into the array.
enum class Parts {
    fp32,    ///< as they are
    bf16,    ///< rounded once from fp32 values (a double that is none is rounded to fp32 first, as a constant or a stored tensor is)
    fp16,    ///< rounded once likewise, subnormals kept
    fp8e4m3, ///< and so on: the value, already divided by its scale, saturates
    fp8e5m2,
    bf16x3,  ///< three bf16 parts each; six passes over all of k, smallest products first: (activation 2, weight 0) (1,1) (0,2) (1,0) (0,1) (0,0)
};

/// The operand nearest to an fp32 value; x itself where the parts are fp32 or several.
double round_operand(Parts parts, double x);

/// A B by the chain, kPanel columns at a time. Thread: panel() may be called by several at once.
class ChainProduct {
public:
    /// `a` is m x k; `a_is_weight` tells the roles of the operands for bf16x3.
    ChainProduct(Parts parts, long m, long k, const double* a, bool a_is_weight);
    /// `b` is k x kPanel, `out` receives m x kPanel.
    void panel(const double* b, double* out) const;

private:
    struct Split {
        std::vector<float> values;  ///< part by part
        float least = 0;            ///< smallest magnitude that is not zero; 0: none
    };
    Split split(const double* x, long count) const;
    void run(const float* a, const float* b, bool fused, std::vector<float>& acc) const;

    Parts parts_;
    long m_, k_;
    bool a_is_weight_;
    Split a_;
};

/// Whole products, for tests and small matrices.
std::vector<double> chain_bf16(const ChainShape& shape, const double* a, const double* b);
std::vector<double> chain_bf16x3(const ChainShape& shape, const double* a, const double* b, bool a_is_weight);

}  // namespace assay::golden
