#include "golden/emulation/chain.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "golden/emulation/rounding.hpp"

namespace assay::golden {
namespace {

std::vector<double> rounded(const double* x, std::size_t count) {
    std::vector<double> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = round_bf16(round_f32(x[i]));
    return out;
}

std::array<std::vector<double>, 3> split(const double* x, std::size_t count) {
    std::array<std::vector<double>, 3> out{std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
    for (std::size_t i = 0; i < count; ++i) {
        const std::array<double, 3> parts = split_bf16(round_f32(x[i]));
        for (std::size_t p = 0; p < 3; ++p) out[p][i] = parts[p];
    }
    return out;
}

}  // namespace

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("avx2", "default")))  // no FMA among them: multiply and add stay apart
#endif
void chain(const ChainShape& shape, const double* a, const double* b, double* acc) {
    for (long m = 0; m < shape.m; ++m) {
        double* row = acc + m * shape.n;
        for (long k = 0; k < shape.k; ++k) {
            const double am = a[m * shape.k + k];
            const double* bk = b + k * shape.n;
            for (long n = 0; n < shape.n; ++n) row[n] = round_f32(am * bk[n] + row[n]);
        }
    }
}

std::vector<double> chain_bf16(const ChainShape& shape, const double* a, const double* b) {
    std::vector<double> acc(static_cast<std::size_t>(shape.m * shape.n), 0.0);
    chain(shape, rounded(a, static_cast<std::size_t>(shape.m * shape.k)).data(),
          rounded(b, static_cast<std::size_t>(shape.k * shape.n)).data(), acc.data());
    return acc;
}

std::vector<double> chain_narrow(const ChainShape& shape, const double* a, const double* b, const NarrowGrid& grid) {
    const auto on_grid = [&](const double* x, long count) {
        std::vector<double> out(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = round_to_grid(grid, round_f32(x[i]));
        return out;
    };
    std::vector<double> acc(static_cast<std::size_t>(shape.m * shape.n), 0.0);
    chain(shape, on_grid(a, shape.m * shape.k).data(), on_grid(b, shape.k * shape.n).data(), acc.data());
    return acc;
}

std::vector<double> chain_bf16x3(const ChainShape& shape, const double* a, const double* b, bool a_is_weight) {
    const auto pa = split(a, static_cast<std::size_t>(shape.m * shape.k));
    const auto pb = split(b, static_cast<std::size_t>(shape.k * shape.n));
    std::vector<double> acc(static_cast<std::size_t>(shape.m * shape.n), 0.0);
    constexpr std::pair<std::size_t, std::size_t> kPasses[] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};  // (activation, weight)
    for (const auto& [activation, weight] : kPasses)
        chain(shape, pa[a_is_weight ? weight : activation].data(), pb[a_is_weight ? activation : weight].data(), acc.data());
    return acc;
}

}  // namespace assay::golden
