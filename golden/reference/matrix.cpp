#include "golden/reference/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "golden/reference/parallel.hpp"
#include "golden/reference/placement.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

constexpr Eigen::Index kWide = kPanel;
using Panel = std::vector<double>;  ///< K x kPanel, row-major

/// Operands as a rule that rounds once feeds them to the array. Where a value carries an error that reaches over a rounding boundary, the chip
/// may have the neighbour: that distance is the error left in `err`.
void quantise(const Numerics& numerics, Role role, double* value, double* err, Eigen::Index count) {
    for (Eigen::Index i = 0; i < count; ++i) {
        const double x = value[i], q = place_rounded(numerics, role, x);
        value[i] = q;
        if (!err) continue;
        // One rounding to fp32 has been taken with the value itself.
        const double e = err[i];
        err[i] = e <= rounding(x) ? 0.0
                                  : std::max(std::fabs(place_rounded(numerics, role, x + e) - q), std::fabs(place_rounded(numerics, role, x - e) - q));
    }
}

typedef double Lanes __attribute__((vector_size(32)));
typedef std::int64_t Bits __attribute__((vector_size(32)));
constexpr Bits kNoSign = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
constexpr int kLanes = kPanel / 4;

/// out (kRows x kPanel) = rows of a times a panel; magnitudes |a| |b| beside it when `abs` is given. Multiplication and addition stay apart, in
/// the order of k: the sums are the same on every host.
template <int kRows, bool kAbs>
[[gnu::always_inline]] inline void sum_rows(Eigen::Index k, const double* a, const double* panel, double* out, double* abs) {
    Lanes sum[kRows][kLanes] = {}, magnitude[kAbs ? kRows : 1][kLanes] = {};
    for (Eigen::Index i = 0; i < k; ++i)
        for (int j = 0; j < kLanes; ++j) {
            Lanes b;
            __builtin_memcpy(&b, panel + i * kPanel + 4 * j, sizeof b);
            for (int r = 0; r < kRows; ++r) {
                const Lanes p = b * a[r * k + i];
                sum[r][j] += p;
                if constexpr (kAbs) magnitude[r][j] += (Lanes)((Bits)p & kNoSign);
            }
        }
    for (int r = 0; r < kRows; ++r) {
        __builtin_memcpy(out + r * kPanel, sum[r], sizeof sum[r]);
        if constexpr (kAbs) __builtin_memcpy(abs + r * kPanel, magnitude[r], sizeof magnitude[r]);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("avx2", "default")))  // no FMA among them
#endif
void sum_panel(Eigen::Index m, Eigen::Index k, const double* a, const double* panel, double* out, double* abs) {
    Eigen::Index r = 0;
    if (abs) {
        for (; r < m; ++r) sum_rows<1, true>(k, a + r * k, panel, out + r * kPanel, abs + r * kPanel);
        return;
    }
    for (; r + 2 <= m; r += 2) sum_rows<2, false>(k, a + r * k, panel, out + r * kPanel, nullptr);
    for (; r < m; ++r) sum_rows<1, false>(k, a + r * k, panel, out + r * kPanel, nullptr);
}

/// One product, a panel of columns after another.
class Multiplication {
public:
    Multiplication(const Operand& a, const Columns& b, const Numerics& numerics, bool a_is_weight)
        : numerics_(numerics), b_(b), m_(a.value.rows()), k_(a.value.cols()), left_(a_is_weight ? Role::weight : Role::activation),
          right_(a_is_weight ? Role::activation : Role::weight), a_(a.value), a_err_(a.err) {
        const bool exact = numerics.mode == Mode::exact, integer = numerics.rule == MatrixRule::int8;
        exact_sums_ = numerics.rule == MatrixRule::w8a8;
        bounds_ = !integer && numerics.bounds();
        places_ = !exact && has_scales(numerics.rule);
        if (places_) place_left();
        if (!exact && !integer && !exact_sums_ && (numerics.mode == Mode::emulate || numerics.mode == Mode::bound_emulated))
            chain_.emplace(parts_of(numerics.rule), m_, k_, a_.data(), a_is_weight);
        // The chain rounds its operands itself; bounds need them rounded too. Those on the right are rounded as they come.
        rounds_ = !exact && rounds_once(numerics.rule) && (bounds_ || exact_sums_);
        if (rounds_) quantise(numerics, left_, a_.data(), a_err_.size() ? a_err_.data() : nullptr, a_.size());
        if (!bounds_) return;
        abs_a_ = a_.cwiseAbs();
        row_abs_ = abs_a_.rowwise().sum();
    }

    Product run() {
        Product out;
        out.value.resize(m_, b_.cols);
        if (bounds_) out.err.resize(m_, b_.cols);
        const Eigen::Index panels = (b_.cols + kWide - 1) / kWide;
        parallel_for(panels, static_cast<double>(m_) * static_cast<double>(k_) * static_cast<double>(b_.cols),
                     [&](std::int64_t p) { panel(p * kWide, std::min(kWide, b_.cols - p * kWide), out); });
        return out;
    }

private:
    /// The left operand in the array's units: row r of it counts row_scale_[r] each.
    void place_left() {
        row_scale_.resize(m_);
        for (Eigen::Index r = 0; r < m_; ++r) row_scale_[r] = place(numerics_, left_, {a_.data() + r * k_, k_, 1});
        if (a_err_.size()) a_err_ = row_scale_.cwiseInverse().asDiagonal() * a_err_;
    }

    /// The same of a panel, by columns.
    void place_right(Panel& b, Panel& eb, double* scale) const {
        for (Eigen::Index j = 0; j < kWide; ++j) {
            scale[j] = place(numerics_, right_, {b.data() + j, k_, kWide});
            for (Eigen::Index i = 0; i < k_ && !eb.empty(); ++i) eb[static_cast<std::size_t>(i * kWide + j)] /= scale[j];
        }
    }

    /// From the array's units to the operands' own. Powers of two cost nothing but a flush. Another factor costs the chip a rounding, one more
    /// where it was multiplied with what follows in the drain, and integer sums their conversion.
    void scale_back(const double* column_scale, Panel& sums, Panel& err) const {
        const bool powers = numerics_.rule == MatrixRule::fp8e4m3 || numerics_.rule == MatrixRule::fp8e5m2;
        const double roundings = powers ? 0 : exact_sums_ ? 3 : 2;
        for (Eigen::Index r = 0; r < m_; ++r)
            for (Eigen::Index j = 0; j < kWide; ++j) {
                const auto at = static_cast<std::size_t>(r * kWide + j);
                const double by = row_scale_[r] * column_scale[j];
                sums[at] = numerics_.mode == Mode::emulate ? round_f32(round_f32(sums[at]) * by) : sums[at] * by;
                if (err.empty()) continue;
                err[at] *= by;
                if (by != 1) err[at] += kFlush + roundings * kU32 * std::fabs(sums[at]);
            }
    }

    void panel(Eigen::Index first, Eigen::Index count, Product& out) const {
        const auto entries = static_cast<std::size_t>(k_ * kWide), results = static_cast<std::size_t>(m_ * kWide);
        Panel b(entries, 0.0), sums(results), abs;
        b_.value(first, count, b.data());
        Panel eb, err;
        if (bounds_ && b_.err) {
            eb.assign(entries, 0.0);
            b_.err(first, count, eb.data());
        }
        double column_scale[kPanel];
        if (places_) place_right(b, eb, column_scale);
        if (chain_) chain_->panel(b.data(), sums.data());
        if (rounds_) quantise(numerics_, right_, b.data(), eb.empty() ? nullptr : eb.data(), k_ * kWide);
        if (bounds_) {
            if (!chain_) {
                abs.resize(results);
                sum_panel(m_, k_, a_.data(), b.data(), sums.data(), abs.data());
            }
            err = error(b, eb, sums, abs);
        } else if (!chain_) {
            sum_panel(m_, k_, a_.data(), b.data(), sums.data(), nullptr);
        }
        if (places_) scale_back(column_scale, sums, err);
        for (Eigen::Index r = 0; r < m_ && bounds_; ++r) std::copy_n(err.data() + r * kWide, count, out.err.data() + r * b_.cols + first);
        for (Eigen::Index r = 0; r < m_; ++r) std::copy_n(sums.data() + r * kWide, count, out.value.data() + r * b_.cols + first);
    }

    /// The operands' own errors, sum over k of |a| e_b + e_a |b| + e_a e_b, and what the accumulation adds unless it is emulated.
    Panel error(const Panel& b, const Panel& eb, const Panel& sums, const Panel& abs) const {
        Panel out(static_cast<std::size_t>(m_ * kWide), 0.0), part(out.size());
        const auto add = [&](const Matrix& left, const Panel& right) {
            sum_panel(m_, k_, left.data(), right.data(), part.data(), nullptr);
            for (std::size_t i = 0; i < out.size(); ++i) out[i] += part[i];
        };
        if (!eb.empty()) add(abs_a_, eb);
        if (a_err_.size()) {
            Panel magnitude(b.size());
            for (std::size_t i = 0; i < b.size(); ++i) magnitude[i] = std::fabs(b[i]) + (eb.empty() ? 0.0 : eb[i]);
            add(a_err_, magnitude);
        }
        if (chain_ || exact_sums_) return out;
        const double k = static_cast<double>(k_);
        double steps = k, dropped = 0;
        if (numerics_.rule == MatrixRule::bf16x3) {
            // Parts shrink by 2^-8 each, so the five small passes see partial sums of at most (2*2^-8 + 3*2^-16 + ...) S < 2^-6.9 S: as if
            // the main pass were longer by 5 * 2^-6 of itself. The products (1,2), (2,1), (2,2) are left out: 2^-24 + 2^-24 + 2^-32 of S.
            steps = k * (1 + 5 * 0x1p-6);
            dropped = 0x1p-23 + 0x1p-32;
        }
        // The vector unit may round the product before it adds: one more unit of S.
        if (numerics_.rule == MatrixRule::fp32) dropped = kU32;
        const double factor = (numerics_.mode == Mode::bound_worst ? steps : accumulation_factor(steps)) * kU32 + dropped;
        double column[kPanel] = {};
        for (Eigen::Index i = 0; i < k_; ++i)
            for (Eigen::Index j = 0; j < kWide; ++j) column[j] += std::fabs(b[static_cast<std::size_t>(i * kWide + j)]);
        for (Eigen::Index r = 0; r < m_; ++r)
            for (Eigen::Index j = 0; j < kWide; ++j) {
                const auto at = static_cast<std::size_t>(r * kWide + j);
                // Subnormal parts, products and sums become zero.
                out[at] += abs[at] * factor + (row_abs_[r] + k + column[j]) * kFlush + kU32 * std::fabs(sums[at]);
            }
        return out;
    }

    const Numerics& numerics_;
    const Columns& b_;
    Eigen::Index m_, k_;
    Role left_, right_;
    Matrix a_, a_err_, abs_a_;
    Eigen::VectorXd row_scale_;
    Eigen::VectorXd row_abs_;
    std::optional<ChainProduct> chain_;
    bool bounds_ = false, rounds_ = false, places_ = false, exact_sums_ = false;
};

}  // namespace

MatrixRule matrix_rule(const std::string& precision) {
    if (precision == "int8") return MatrixRule::int8;
    if (precision == "bf16") return MatrixRule::bf16;
    if (precision == "bf16x3") return MatrixRule::bf16x3;
    if (precision == "fp16") return MatrixRule::fp16;
    if (precision == "fp8e4m3") return MatrixRule::fp8e4m3;
    if (precision == "fp8e5m2") return MatrixRule::fp8e5m2;
    if (precision == "w8a8") return MatrixRule::w8a8;
    if (precision == "w8") return MatrixRule::w8;
    if (precision == "w4") return MatrixRule::w4;
    if (precision == "fp32" || precision == "move" || precision.empty()) return MatrixRule::fp32;
    throw Error(ErrorKind::bad_input,
                "precision '" + precision + "' is not known; use int8, bf16, bf16x3, fp16, fp8e4m3, fp8e5m2, w8a8, w8, w4, fp32 or move");
}

Product multiply(const Operand& a, const Columns& b, const Numerics& numerics, bool a_is_weight) {
    ASSAY_CHECK(a.value.cols() == b.rows, "inner dimensions of a product agree");
    return Multiplication(a, b, numerics, a_is_weight).run();
}

Product multiply(const Operand& a, const Operand& b, const Numerics& numerics, bool a_is_weight) {
    const auto fill = [](const Matrix& from) {
        return [&from](Eigen::Index first, Eigen::Index count, double* out) {
            for (Eigen::Index k = 0; k < from.rows(); ++k) std::copy_n(from.data() + k * from.cols() + first, count, out + k * kPanel);
        };
    };
    Columns columns{b.value.rows(), b.value.cols(), fill(b.value), {}};
    if (b.err.size()) columns.err = fill(b.err);
    return multiply(a, columns, numerics, a_is_weight);
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
