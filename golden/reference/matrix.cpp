#include "golden/reference/matrix.hpp"

#include <algorithm>

#include "golden/emulation/chain.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

/// The grid of a rule that rounds operands to a format with subnormals; null for other rules.
const NarrowGrid* grid_of(MatrixRule rule) {
    switch (rule) {
        case MatrixRule::fp16: return &kGridF16;
        case MatrixRule::fp8e4m3: return &kGridF8E4M3;
        case MatrixRule::fp8e5m2: return &kGridF8E5M2;
        default: return nullptr;
    }
}

/// Operands as a rule that rounds once feeds them to the array: rounded to fp32 (device tensors and constants already are) and then to the
/// format. Where a value carries an error that reaches over a rounding boundary, the chip may have the neighbour: that distance is the error
/// left.
Operand quantised(const Operand& in, MatrixRule rule) {
    Operand out{in.value, {}};
    const NarrowGrid* grid = grid_of(rule);
    const auto narrow = [&](double x) { return grid ? round_to_grid(*grid, round_f32(x)) : round_bf16(round_f32(x)); };
    for (Eigen::Index i = 0; i < out.value.size(); ++i) out.value.data()[i] = narrow(in.value.data()[i]);
    if (in.err.size() == 0) return out;
    out.err = Matrix::Zero(in.value.rows(), in.value.cols());
    for (Eigen::Index i = 0; i < out.err.size(); ++i) {
        const double x = in.value.data()[i], e = in.err.data()[i], q = out.value.data()[i];
        // One rounding to fp32 has been taken with the value itself.
        if (e <= rounding(x)) continue;
        out.err.data()[i] = std::max(std::fabs(narrow(x + e) - q), std::fabs(narrow(x - e) - q));
    }
    return out;
}

/// Sum over k of |a| e_b + e_a |b| + e_a e_b.
Matrix input_error(const Operand& a, const Operand& b) {
    Matrix out = Matrix::Zero(a.value.rows(), b.value.cols());
    if (b.err.size()) out.noalias() += a.value.cwiseAbs() * b.err;
    if (a.err.size()) out.noalias() += a.err * b.value.cwiseAbs();
    if (a.err.size() && b.err.size()) out.noalias() += a.err * b.err;
    return out;
}

std::vector<double> emulated(const Operand& a, const Operand& b, MatrixRule rule, bool a_is_weight) {
    const ChainShape shape{a.value.rows(), a.value.cols(), b.value.cols()};
    if (rule == MatrixRule::bf16) return chain_bf16(shape, a.value.data(), b.value.data());
    if (const NarrowGrid* grid = grid_of(rule)) return chain_narrow(shape, a.value.data(), b.value.data(), *grid);
    if (rule == MatrixRule::bf16x3) return chain_bf16x3(shape, a.value.data(), b.value.data(), a_is_weight);
    std::vector<double> acc(static_cast<std::size_t>(shape.m * shape.n), 0.0);
    chain(shape, a.value.data(), b.value.data(), acc.data());
    return acc;
}

/// Bound on accumulation, dropped products and flushes for operands as they enter the array, without the final |g| term.
Matrix accumulation_error(const Matrix& a, const Matrix& b, const Numerics& numerics) {
    const double k = static_cast<double>(a.cols());
    double steps = k, dropped = 0;
    if (numerics.rule == MatrixRule::bf16x3) {
        // Parts shrink by 2^-8 each, so the five small passes see partial sums of at most (2*2^-8 + 3*2^-16 + ...) S < 2^-6.9 S: as if the
        // main pass were longer by 5 * 2^-6 of itself. The products (1,2), (2,1), (2,2) are left out: 2^-24 + 2^-24 + 2^-32 of S.
        steps = k * (1 + 5 * 0x1p-6);
        dropped = 0x1p-23 + 0x1p-32;
    }
    // The vector unit may round the product before it adds: one more unit of S.
    if (numerics.rule == MatrixRule::fp32) dropped = kU32;
    const double factor = numerics.mode == Mode::bound_worst ? steps : accumulation_factor(steps);
    const Matrix abs_a = a.cwiseAbs(), abs_b = b.cwiseAbs();
    Matrix out = abs_a * abs_b;
    out *= factor * kU32 + dropped;
    // Subnormal parts, products and sums become zero.
    out.colwise() += (abs_a.rowwise().sum().array() * kFlush + k * kFlush).matrix();
    out.rowwise() += (abs_b.colwise().sum().array() * kFlush).matrix();
    return out;
}

/// The product of operands as they stand on the array.
Product multiply_unscaled(const Operand& a, const Operand& b, const Numerics& numerics, bool a_is_weight) {
    const bool integer = numerics.rule == MatrixRule::int8;
    if (numerics.mode == Mode::exact || integer) return {a.value * b.value, {}};
    Product out;
    if (numerics.mode == Mode::emulate || numerics.mode == Mode::bound_emulated) {
        const std::vector<double> acc = emulated(a, b, numerics.rule, a_is_weight);
        out.value = Eigen::Map<const Matrix>(acc.data(), a.value.rows(), b.value.cols());
        if (numerics.mode == Mode::emulate) return out;
    }
    const bool rounds = numerics.rule == MatrixRule::bf16 || grid_of(numerics.rule);
    const Operand qa = rounds ? quantised(a, numerics.rule) : a, qb = rounds ? quantised(b, numerics.rule) : b;
    out.err = input_error(qa, qb);
    if (numerics.mode == Mode::bound_emulated) return out;
    out.value = qa.value * qb.value;
    out.err += accumulation_error(qa.value, qb.value, numerics) + kU32 * out.value.cwiseAbs();
    return out;
}

using Vector = Eigen::VectorXd;

/// Scale of each row: the layer's one, or the least power of two that brings the row's largest magnitude into the grid.
Vector weight_scales(const Matrix& rows, double scale, const NarrowGrid& grid) {
    if (scale != 0) return Vector::Constant(rows.rows(), scale);
    Vector out(rows.rows());
    for (Eigen::Index r = 0; r < rows.rows(); ++r) {
        double largest = 0;
        for (Eigen::Index c = 0; c < rows.cols(); ++c) largest = std::fmax(largest, std::fabs(round_f32(rows(r, c))));
        out(r) = operand_scale(grid, largest);
    }
    return out;
}

Operand rows_divided(const Operand& in, const Vector& by) {
    const Vector inverse = by.cwiseInverse();
    return {inverse.asDiagonal() * in.value, in.err.size() ? Matrix(inverse.asDiagonal() * in.err) : Matrix()};
}
Operand columns_divided(const Operand& in, const Vector& by) {
    const Vector inverse = by.cwiseInverse();
    return {in.value * inverse.asDiagonal(), in.err.size() ? Matrix(in.err * inverse.asDiagonal()) : Matrix()};
}

}  // namespace

MatrixRule matrix_rule(const std::string& precision) {
    if (precision == "int8") return MatrixRule::int8;
    if (precision == "bf16") return MatrixRule::bf16;
    if (precision == "bf16x3") return MatrixRule::bf16x3;
    if (precision == "fp16") return MatrixRule::fp16;
    if (precision == "fp8e4m3") return MatrixRule::fp8e4m3;
    if (precision == "fp8e5m2") return MatrixRule::fp8e5m2;
    if (precision == "fp32" || precision == "move" || precision.empty()) return MatrixRule::fp32;
    throw Error(ErrorKind::bad_input, "precision '" + precision + "' is not known; use int8, bf16, bf16x3, fp16, fp8e4m3, fp8e5m2, fp32 or move");
}

Product multiply(const Operand& a, const Operand& b, const Numerics& numerics, bool a_is_weight) {
    ASSAY_CHECK(a.value.cols() == b.value.rows(), "inner dimensions of a product agree");
    const bool scaled = numerics.rule == MatrixRule::fp8e4m3 || numerics.rule == MatrixRule::fp8e5m2;
    if (!scaled || numerics.mode == Mode::exact) return multiply_unscaled(a, b, numerics, a_is_weight);
    // On the array stand the operands divided by their scales; all are powers of two, so that dividing and multiplying back are exact.
    const NarrowGrid& grid = *grid_of(numerics.rule);
    const Vector sa = a_is_weight ? weight_scales(a.value, numerics.w_scale, grid) : Vector::Constant(a.value.rows(), numerics.x_scale);
    const Vector sb =
        a_is_weight ? Vector::Constant(b.value.cols(), numerics.x_scale) : weight_scales(b.value.transpose(), numerics.w_scale, grid);
    Product out = multiply_unscaled(rows_divided(a, sa), columns_divided(b, sb), numerics, a_is_weight);
    for (Matrix* m : {&out.value, &out.err})
        if (m->size()) *m = sa.asDiagonal() * *m * sb.asDiagonal();
    return out;
}

void add_bias(Product& product, const std::vector<double>& bias, const std::vector<double>& bias_err, bool a_row_each,
              const Numerics& numerics) {
    const bool integer = numerics.rule == MatrixRule::int8;
    if (numerics.bounds() && product.err.size() == 0) product.err = Matrix::Zero(product.value.rows(), product.value.cols());
    for (Eigen::Index r = 0; r < product.value.rows(); ++r)
        for (Eigen::Index c = 0; c < product.value.cols(); ++c) {
            double& v = product.value(r, c);
            const std::size_t i = static_cast<std::size_t>(a_row_each ? r : c);
            if (!bias.empty()) v = numerics.mode == Mode::emulate && !integer ? round_f32(v + bias[i]) : v + bias[i];
            if (numerics.mode == Mode::emulate && integer) v = round_f32(v);
            if (!numerics.bounds()) continue;
            // int32 to fp32, the combined scale's own rounding, and the multiplication by it: three roundings of the scaled result.
            if (integer)
                product.err(r, c) += 3 * rounding(v);
            else if (!bias.empty())
                product.err(r, c) += (bias_err.empty() ? 0.0 : bias_err[i]) + rounding(v);
        }
}

}  // namespace assay::golden
