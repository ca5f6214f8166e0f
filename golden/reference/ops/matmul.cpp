// MatMul (NumPy semantics: batched, broadcasting, vectors) and Gemm.
#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/matrix_product.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

Operand operand(const Value& v, std::int64_t first, std::int64_t rows, std::int64_t cols) {
    Operand out{Matrix(rows, cols), {}};
    if (!v.err.empty()) out.err.resize(rows, cols);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
        out.value.data()[i] = v.at(first + i);
        if (!v.err.empty()) out.err.data()[i] = v.error(first + i);
    }
    return out;
}

Operand transposed(const Operand& in) { return {Matrix(in.value.transpose()), in.err.size() ? Matrix(in.err.transpose()) : Matrix()}; }

}  // namespace

Value matrix_product(const Node& node, const Value& a, const Value& b, const Numerics& numerics) {
    if (a.rank() < 1 || b.rank() < 1) node.fail("operands of MatMul need at least one dimension");
    // A vector is a row on the left and a column on the right; the added dimension leaves the result (numpy.matmul).
    Shape sa = a.shape, sb = b.shape;
    if (a.rank() == 1) sa.insert(sa.begin(), 1);
    if (b.rank() == 1) sb.push_back(1);
    const std::int64_t m = sa[sa.size() - 2], k = sa.back(), n = sb.back();
    if (sb[sb.size() - 2] != k) node.fail(fmt::format("inner dimensions of {} and {} differ", to_string(a.shape), to_string(b.shape)));
    const Shape batch_a(sa.begin(), sa.end() - 2), batch_b(sb.begin(), sb.end() - 2);
    Shape shape;
    try {
        shape = broadcast(batch_a, batch_b);
    } catch (const Error& error) {
        node.fail(error.what());
    }
    const auto ia = broadcast_index(batch_a, shape), ib = broadcast_index(batch_b, shape);
    if (a.rank() > 1) shape.push_back(m);
    if (b.rank() > 1) shape.push_back(n);
    Value y(DType::f32, shape);
    if (numerics.bounds()) y.err.resize(y.f.size());
    for (std::size_t i = 0; i < ia.size(); ++i) {
        Product product = multiply(operand(a, ia[i] * m * k, m, k), operand(b, ib[i] * k * n, k, n), numerics, false);
        add_bias(product, {}, {}, true, numerics);
        const auto to = static_cast<std::ptrdiff_t>(i) * m * n;
        std::copy_n(product.value.data(), product.value.size(), y.f.begin() + to);
        if (numerics.bounds()) std::copy_n(product.err.data(), product.err.size(), y.err.begin() + to);
    }
    return y;
}

Outputs matmul(const Node& node) {
    Value y = matrix_product(node, node.real(0), node.real(1), node.numerics());
    y.dtype = node.in(0).dtype;
    return {std::move(y)};
}

Outputs gemm(const Node& node) {
    const Value &a = node.real(0), &b = node.real(1);
    if (a.rank() != 2 || b.rank() != 2)
        node.fail(fmt::format("operands {} and {} must be matrices", to_string(a.shape), to_string(b.shape)));
    const double alpha = node.real("alpha", 1.0f), beta = node.real("beta", 1.0f);
    Operand x = operand(a, 0, a.shape[0], a.shape[1]), w = operand(b, 0, b.shape[0], b.shape[1]);
    if (node.integer("transA", 0)) x = transposed(x);
    if (node.integer("transB", 0)) w = transposed(w);
    if (x.value.cols() != w.value.rows())
        node.fail(fmt::format("inner dimensions of {} and {} differ", to_string(a.shape), to_string(b.shape)));
    const Numerics& num = node.numerics();
    Product product = multiply(x, w, num, false);
    const Eigen::Index rows = product.value.rows(), cols = product.value.cols();
    if (alpha != 1) {
        product.value = (product.value * alpha).unaryExpr([&](double v) { return num.round(v); });
        if (product.err.size()) product.err = product.err * std::fabs(alpha) + product.value.cwiseAbs() * kU32;
    }
    Value y(a.dtype, {rows, cols});
    if (!node.has(2) || beta == 0) {
        add_bias(product, {}, {}, false, num);
    } else {
        const Value& c = node.real(2);
        if (c.rank() > 2) node.fail(fmt::format("C of shape {} has more than two dimensions", to_string(c.shape)));
        std::vector<std::int64_t> index;
        try {
            if (broadcast(c.shape, y.shape) != y.shape)
                node.fail(fmt::format("C of shape {} does not broadcast to {}", to_string(c.shape), to_string(y.shape)));
            index = broadcast_index(c.shape, y.shape);
        } catch (const Error& error) {
            node.fail(error.what());
        }
        // One row at a time: C may differ from row to row.
        for (Eigen::Index r = 0; r < rows; ++r) {
            Product row{product.value.row(r), product.err.size() ? Matrix(product.err.row(r)) : Matrix()};
            std::vector<double> bias(static_cast<std::size_t>(cols)), bias_err;
            if (!c.err.empty()) bias_err.resize(bias.size());
            for (std::size_t i = 0; i < bias.size(); ++i) {
                const std::int64_t at = index[static_cast<std::size_t>(r * cols) + i];
                bias[i] = num.round(beta * c.at(at));
                if (!c.err.empty()) bias_err[i] = std::fabs(beta) * c.error(at) + (beta == 1 ? 0.0 : rounding(bias[i]));
            }
            add_bias(row, bias, bias_err, false, num);
            if (product.err.size() == 0 && row.err.size()) product.err = Matrix::Zero(rows, cols);
            product.value.row(r) = row.value;
            if (row.err.size()) product.err.row(r) = row.err;
        }
    }
    std::copy_n(product.value.data(), product.value.size(), y.f.begin());
    if (num.bounds()) y.err.assign(product.err.data(), product.err.data() + product.err.size());
    return {std::move(y)};
}

}  // namespace assay::golden::ops
