// Det-11: by elimination with the largest pivot of each column, in bounded arithmetic.
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

using Rows = std::vector<std::vector<Bounded>>;

/// Hadamard: |det| is at most the product of the rows' lengths, from column `first` on.
double hadamard(const Rows& a, std::size_t first) {
    double product = 1;
    for (std::size_t r = first; r < a.size(); ++r) {
        double square = 0;
        for (std::size_t c = first; c < a.size(); ++c) square += std::pow(std::fabs(a[r][c].v) + a[r][c].e, 2);
        product *= std::sqrt(square);
    }
    return product;
}

Bounded determinant(const Functions& f, Rows a) {
    Bounded product{1, 0};
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t best = i;
        for (std::size_t r = i + 1; r < a.size(); ++r)
            if (std::fabs(a[r][i].v) > std::fabs(a[best][i].v)) best = r;
        if (a[best][i].v == 0) {
            // Singular here; where the column is not exactly zero on the chip, what is left bounds its answer.
            return {0, (std::fabs(product.v) + product.e) * hadamard(a, i)};
        }
        if (best != i) {
            std::swap(a[best], a[i]);
            product.v = -product.v;
        }
        for (std::size_t r = i + 1; r < a.size(); ++r) {
            const Bounded factor = f.div(a[r][i], a[i][i]);
            for (std::size_t c = i + 1; c < a.size(); ++c) a[r][c] = f.sub(a[r][c], f.mul(factor, a[i][c]));
        }
        product = f.mul(product, a[i][i]);
    }
    return product;
}

}  // namespace

Outputs det(const Node& node) {
    const Value& x = node.real(0);
    if (x.rank() < 2 || x.shape[x.shape.size() - 1] != x.shape[x.shape.size() - 2])
        node.fail(fmt::format("input is {}; square matrices are expected", to_string(x.shape)));
    const auto n = static_cast<std::size_t>(x.shape.back());
    Value y(x.dtype, Shape(x.shape.begin(), x.shape.end() - 2));
    if (node.bounds()) y.err.resize(y.f.size());
    const Functions f(node.numerics());
    for (std::size_t m = 0; m < y.f.size(); ++m) {
        Rows a(n, std::vector<Bounded>(n));
        for (std::size_t i = 0; i < n * n; ++i) {
            const auto at = static_cast<std::int64_t>(m * n * n + i);
            a[i / n][i % n] = {x.at(at), x.error(at)};
        }
        const Bounded d = determinant(f, std::move(a));
        y.f[m] = d.v;
        if (node.bounds()) y.err[m] = std::isfinite(d.v) ? d.e : 0.0;
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
