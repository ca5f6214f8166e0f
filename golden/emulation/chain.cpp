#include "golden/emulation/chain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "golden/emulation/rounding.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace assay::golden {
namespace {

std::size_t size(long n) { return static_cast<std::size_t>(n); }

#if defined(__x86_64__) && defined(__GNUC__)

bool has_fused() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/// Rows of the accumulator that stay in registers together.
template <int kRows>
__attribute__((target("avx2,fma"))) void fused_rows(long k, const float* a, const float* b, float* acc) {
    __m256 sum[kRows][2];
    for (int r = 0; r < kRows; ++r)
        for (int h = 0; h < 2; ++h) sum[r][h] = _mm256_loadu_ps(acc + r * kPanel + 8 * h);
    for (long i = 0; i < k; ++i) {
        const __m256 b0 = _mm256_loadu_ps(b + i * kPanel), b1 = _mm256_loadu_ps(b + i * kPanel + 8);
        for (int r = 0; r < kRows; ++r) {
            const __m256 x = _mm256_broadcast_ss(a + r * k + i);
            sum[r][0] = _mm256_fmadd_ps(x, b0, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(x, b1, sum[r][1]);
        }
    }
    for (int r = 0; r < kRows; ++r)
        for (int h = 0; h < 2; ++h) _mm256_storeu_ps(acc + r * kPanel + 8 * h, sum[r][h]);
}

void fused_panel(long m, long k, const float* a, const float* b, float* acc) {
    long r = 0;
    for (; r + 4 <= m; r += 4) fused_rows<4>(k, a + r * k, b, acc + r * kPanel);
    for (; r < m; ++r) fused_rows<1>(k, a + r * k, b, acc + r * kPanel);
}

#else

bool has_fused() { return false; }
void fused_panel(long, long, const float*, const float*, float*) {}

#endif

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

double round_operand(Parts parts, double x) {
    switch (parts) {
        case Parts::bf16: return round_bf16(x);
        case Parts::fp16: return round_to_grid(kGridF16, x);
        case Parts::fp8e4m3: return round_to_grid(kGridF8E4M3, x);
        case Parts::fp8e5m2: return round_to_grid(kGridF8E5M2, x);
        case Parts::fp32:
        case Parts::bf16x3: break;
    }
    return x;
}

namespace {

/// Significant bits of a part.
int precision_of(Parts parts) {
    switch (parts) {
        case Parts::fp32: return 24;
        case Parts::fp16: return 11;
        case Parts::fp8e4m3: return 4;
        case Parts::fp8e5m2: return 3;
        case Parts::bf16:
        case Parts::bf16x3: break;
    }
    return 8;
}

}  // namespace

ChainProduct::ChainProduct(Parts parts, long m, long k, const double* a, bool a_is_weight)
    : parts_(parts), m_(m), k_(k), a_is_weight_(a_is_weight), a_(split(a, m * k)) {}

ChainProduct::Split ChainProduct::split(const double* x, long count) const {
    Split out;
    out.values.resize(size(count * (parts_ == Parts::bf16x3 ? 3 : 1)));
    for (long i = 0; i < count; ++i) {
        const double v = round_f32(x[i]);
        if (parts_ == Parts::fp32) {
            out.values[size(i)] = static_cast<float>(v);
        } else if (parts_ != Parts::bf16x3) {
            out.values[size(i)] = static_cast<float>(round_operand(parts_, v));
        } else {
            const std::array<double, 3> p = split_bf16(v);
            for (long j = 0; j < 3; ++j) out.values[size(j * count + i)] = static_cast<float>(p[size(j)]);
        }
    }
    for (const float v : out.values) {
        const float magnitude = std::fabs(v);
        if (magnitude > 0 && (out.least == 0 || magnitude < out.least)) out.least = magnitude;
    }
    return out;
}

void ChainProduct::run(const float* a, const float* b, bool fused, std::vector<float>& acc) const {
    if (fused) return fused_panel(m_, k_, a, b, acc.data());
    const std::vector<double> wide_a(a, a + m_ * k_), wide_b(b, b + k_ * kPanel);
    std::vector<double> wide(acc.begin(), acc.end());
    chain({m_, k_, kPanel}, wide_a.data(), wide_b.data(), wide.data());
    std::copy(wide.begin(), wide.end(), acc.begin());
}

void ChainProduct::panel(const double* b, double* out) const {
    const Split right = split(b, k_ * kPanel);
    // A host FMA rounds as the rule says but keeps subnormals. None can arise where each product is a multiple of some q >= 2^-126: so is then
    // each sum, rounded or not. A product of parts of p significant bits is a multiple of 2^(2 - 2p) times the least magnitudes' product
    // (rounded down to powers of two, 2^-2 at most).
    const double least = static_cast<double>(a_.least) * static_cast<double>(right.least);
    const bool fused = has_fused() && (least == 0 || least >= std::ldexp(1.0, 2 * precision_of(parts_) - 126));
    std::vector<float> acc(size(m_ * kPanel), 0.0f);
    if (parts_ != Parts::bf16x3) {
        run(a_.values.data(), right.values.data(), fused, acc);
    } else {
        constexpr std::pair<long, long> kPasses[] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};  // (activation, weight)
        for (const auto& [activation, weight] : kPasses)
            run(a_.values.data() + (a_is_weight_ ? weight : activation) * m_ * k_,
                right.values.data() + (a_is_weight_ ? activation : weight) * k_ * kPanel, fused, acc);
    }
    std::copy(acc.begin(), acc.end(), out);
}

namespace {

std::vector<double> whole(Parts parts, const ChainShape& shape, const double* a, const double* b, bool a_is_weight) {
    const ChainProduct product(parts, shape.m, shape.k, a, a_is_weight);
    std::vector<double> out(size(shape.m * shape.n)), panel(size(shape.k * kPanel)), part(size(shape.m * kPanel));
    for (long first = 0; first < shape.n; first += kPanel) {
        const long count = std::min(kPanel, shape.n - first);
        std::fill(panel.begin(), panel.end(), 0.0);
        for (long k = 0; k < shape.k; ++k) std::copy_n(b + k * shape.n + first, count, panel.begin() + k * kPanel);
        product.panel(panel.data(), part.data());
        for (long m = 0; m < shape.m; ++m) std::copy_n(part.begin() + m * kPanel, count, out.begin() + m * shape.n + first);
    }
    return out;
}

}  // namespace

std::vector<double> chain_bf16(const ChainShape& shape, const double* a, const double* b) { return whole(Parts::bf16, shape, a, b, false); }

std::vector<double> chain_bf16x3(const ChainShape& shape, const double* a, const double* b, bool a_is_weight) {
    return whole(Parts::bf16x3, shape, a, b, a_is_weight);
}

}  // namespace assay::golden
