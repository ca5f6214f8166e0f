// MatMul, Gemm, their integer and quantised kin, Det.
#include "workloads/host/matrix.hpp"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <cmath>

#include "workloads/host/elements.hpp"
#include "workloads/host/quantize.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;
using RealMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The batched product of NumPy's matmul: shapes aligned, batches broadcast.
struct Batched {
    Shape batch, result;
    I64 m = 1, k = 1, n = 1;
    std::vector<I64> a_at, b_at;  ///< by batch: index of the matrix in a and b

    Batched(const Call& c, std::size_t ia, std::size_t ib) {
        Shape a = c.in(ia).shape, b = c.in(ib).shape;
        if (a.empty()) c.bad_shape(ia, "a scalar has no product; repair the model");
        if (b.empty()) c.bad_shape(ib, "a scalar has no product; repair the model");
        const bool row = a.size() == 1, column = b.size() == 1;
        if (row) a.insert(a.begin(), 1);
        if (column) b.push_back(1);
        m = a[a.size() - 2], k = a.back(), n = b.back();
        if (b[b.size() - 2] != k) c.fail(fmt::format("K is {} in A and {} in B; repair the model", k, b[b.size() - 2]));
        const Shape ba(a.begin(), a.end() - 2), bb(b.begin(), b.end() - 2);
        batch = broadcast(c, ba, bb);
        result = batch;
        if (!row) result.push_back(m);
        if (!column) result.push_back(n);
        const I64 count = element_count(batch);
        c.make(DType::u8, {std::min(element_count(result), kMaxElements + 1)});
        c.work(static_cast<double>(count) * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n));
        a_at = positions(ba, count);
        b_at = positions(bb, count);
    }

private:
    std::vector<I64> positions(const Shape& own, I64 count) const {
        const auto all = strides_of(batch), mine = strides_of(own);
        std::vector<I64> at(static_cast<std::size_t>(count), 0);
        const std::size_t lead = batch.size() - own.size();
        for (I64 i = 0; i < count; ++i)
            for (std::size_t d = 0; d < own.size(); ++d)
                if (own[d] != 1) at[static_cast<std::size_t>(i)] += i / all[lead + d] % batch[lead + d] * mine[d];
        return at;
    }
};

template <class T>
std::vector<T> multiply(const Batched& p, const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> y(static_cast<std::size_t>(element_count(p.batch) * p.m * p.n), T{0});
    for (std::size_t i = 0; i < p.a_at.size(); ++i)
        product(a.data() + p.a_at[i] * p.m * p.k, b.data() + p.b_at[i] * p.k * p.n, y.data() + static_cast<I64>(i) * p.m * p.n, p.m, p.k, p.n);
    return y;
}

Results matmul(const Call& c) {
    c.same_types(0, 2);
    const Batched p(c, 0, 1);
    if (is_float(c.in(0).dtype)) return one(tensor_of(c, c.in(0).dtype, p.result, std::span<const double>(multiply(p, reals_of(c.in(0)), reals_of(c.in(1))))));
    return one(tensor_of(c, c.in(0).dtype, p.result, std::span<const I64>(multiply(p, integers_of(c.in(0)), integers_of(c.in(1))))));
}

/// Values minus their zero point: one, one a row (axis rank - 2) or one a column, by the zero point's shape.
std::vector<I64> centred(const Call& c, std::size_t x, std::size_t zero, bool rows) {
    auto v = integers_of(c.in(x));
    if (!c.has(zero)) return v;
    const auto z = integers_of(c.in(zero));
    const Shape& shape = c.in(x).shape;
    if (z.size() == 1) {
        for (I64& e : v) e -= z[0];
        return v;
    }
    // A list, or the operand's own shape with the summed dimension 1.
    Shape by_axis = shape;
    if (shape.size() < 2) c.bad_shape(zero, "a zero point for each row needs a matrix; repair the model");
    by_axis[shape.size() - (rows ? 1 : 2)] = 1;
    const Shape list{shape[shape.size() - (rows ? 2 : 1)]};
    Tensor given = c.in(zero);
    if (given.shape == list && rows) given.shape.push_back(1);
    const auto spread_zero = integers_of(spread(c, given, shape));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] -= spread_zero[i];
    return v;
}

Results matmul_integer(const Call& c) {
    const Batched p(c, 0, 1);
    return one(tensor_of(c, DType::i32, p.result, std::span<const I64>(multiply(p, centred(c, 0, 2, true), centred(c, 1, 3, false)))));
}

/// QLinearMatMul-10: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero; scales by tensor, by row of a or by column of b.
Results qlinear_matmul(const Call& c) {
    const Batched p(c, 0, 3);
    const auto sums = multiply(p, centred(c, 0, 2, true), centred(c, 3, 5, false));
    const auto sa = reals_of(c.in(1)), sb = reals_of(c.in(4)), sy = reals_of(c.in(6));
    const auto zy = integers_of(c.in(7));
    if (sy.size() != 1 || zy.size() != 1) c.bad_shape(6, "one output scale and zero point are expected; repair the model");
    if ((sa.size() != 1 && static_cast<I64>(sa.size()) != p.m) || (sb.size() != 1 && static_cast<I64>(sb.size()) != p.n))
        c.fail("scales are expected by tensor, by row of a or by column of b; repair the model");
    Tensor out = c.make(c.in(7).dtype, p.result);
    std::vector<double> y(sums.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        const auto row = static_cast<std::size_t>(static_cast<I64>(i) / p.n % p.m), column = static_cast<std::size_t>(static_cast<I64>(i) % p.n);
        y[i] = requantized(static_cast<double>(sums[i]), sa[sa.size() > 1 ? row : 0] * sb[sb.size() > 1 ? column : 0] / sy[0], zy[0]);
    }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

template <class T>
std::vector<T> transposed(const std::vector<T>& v, I64 rows, I64 columns) {
    std::vector<T> out(v.size());
    for (I64 r = 0; r < rows; ++r)
        for (I64 k = 0; k < columns; ++k) out[static_cast<std::size_t>(k * rows + r)] = v[static_cast<std::size_t>(r * columns + k)];
    return out;
}

/// Gemm-13: alpha A' B' + beta C.
Results gemm(const Call& c) {
    c.same_types(0, 3);
    Shape a = c.in(0).shape, b = c.in(1).shape;
    if (a.size() != 2) c.bad_shape(0, "a matrix is expected; repair the model");
    if (b.size() != 2) c.bad_shape(1, "a matrix is expected; repair the model");
    const bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
    if (ta) std::swap(a[0], a[1]);
    if (tb) std::swap(b[0], b[1]);
    if (a[1] != b[0]) c.fail(fmt::format("K is {} in A and {} in B; repair the model", a[1], b[0]));
    const Shape shape{a[0], b[1]};
    Tensor out = c.make(c.in(0).dtype, shape);
    c.work(static_cast<double>(a[0]) * static_cast<double>(a[1]) * static_cast<double>(b[1]));
    const double alpha = c.real("alpha", 1.0f), beta = c.real("beta", 1.0f);
    const auto run = [&](auto x, auto y) {
        using T = typename decltype(x)::value_type;
        if (ta) x = transposed(x, a[1], a[0]);
        if (tb) y = transposed(y, b[1], b[0]);
        std::vector<T> r(static_cast<std::size_t>(a[0] * b[1]), T{0});
        product(x.data(), y.data(), r.data(), a[0], a[1], b[1]);
        std::vector<T> bias;
        if (c.has(2)) {
            const Spread spread_c(c, c.in(2), shape);
            bias.resize(r.size());
            load(spread_c.get(), 0, std::span<T>(bias));
        }
        for (std::size_t i = 0; i < r.size(); ++i) {
            if constexpr (std::is_same_v<T, double>)
                r[i] = alpha * r[i] + (bias.empty() ? 0.0 : beta * bias[i]);
            else
                r[i] = (alpha == 1 ? r[i] : static_cast<I64>(alpha * static_cast<double>(r[i]))) +
                       (bias.empty() ? 0 : beta == 1 ? bias[i] : static_cast<I64>(beta * static_cast<double>(bias[i])));
        }
        store(out, 0, std::span<const T>(r));
    };
    if (is_float(out.dtype))
        run(reals_of(c.in(0)), reals_of(c.in(1)));
    else
        run(integers_of(c.in(0)), integers_of(c.in(1)));
    return one(std::move(out));
}

Results det(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2]) c.bad_shape(0, "square matrices are expected; repair the model");
    const I64 n = x.shape[rank - 1];
    const Shape shape(x.shape.begin(), x.shape.end() - 2);
    const auto v = reals_of(x);
    c.work(static_cast<double>(v.size()) * static_cast<double>(n));
    std::vector<double> y;
    for (I64 i = 0, count = element_count(shape); i < count; ++i)
        y.push_back(n == 0 ? 1.0 : Eigen::Map<const RealMatrix>(v.data() + i * n * n, n, n).determinant());
    return one(tensor_of(c, x.dtype, shape, std::span<const double>(y)));
}

}  // namespace

void product(const double* a, const double* b, double* y, I64 m, I64 k, I64 n, bool accumulate) {
    if (m == 0 || n == 0) return;
    Eigen::Map<RealMatrix> out(y, m, n);
    if (!accumulate) out.setZero();
    if (k > 0) out.noalias() += Eigen::Map<const RealMatrix>(a, m, k) * Eigen::Map<const RealMatrix>(b, k, n);
}

void product(const I64* a, const I64* b, I64* y, I64 m, I64 k, I64 n, bool accumulate) {
    // Through unsigned, where overflow wraps; rows of b keep the inner loop contiguous.
    auto* out = reinterpret_cast<std::uint64_t*>(y);
    if (!accumulate) std::fill(out, out + m * n, 0);
    for (I64 i = 0; i < m; ++i)
        for (I64 p = 0; p < k; ++p) {
            const auto factor = static_cast<std::uint64_t>(a[i * k + p]);
            if (factor == 0) continue;
            for (I64 j = 0; j < n; ++j) out[i * n + j] += factor * static_cast<std::uint64_t>(b[p * n + j]);
        }
}

std::span<const Operator> matrix_operators() {
    static constexpr Operator table[] = {{"Det", det, 11},
                                         {"Gemm", gemm, 7},
                                         {"MatMul", matmul},
                                         {"MatMulInteger", matmul_integer, 10},
                                         {"QLinearMatMul", qlinear_matmul, 10}};
    return table;
}

}  // namespace assay::workloads::hostops
