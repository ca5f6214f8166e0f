// The matrix unit by definition: the text of docs/numerics.md §matrix, one step at a time.
#include <algorithm>
#include <cstring>

#include "simkernel/numerics/formats.hpp"
#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/vector_shape.hpp"

namespace assay::simkernel {
namespace {

/// Grouped mode lets the pair (k, n) take part only within its group; dense mode always.
bool takes_part(const MatmulFields& f, std::uint32_t k, std::uint32_t n) {
    return f.group_k == 0 || (k % f.group_period) / f.group_k == n / f.group_n;
}

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// A float operand as fp32.
std::uint32_t operand(Dtype type, const std::byte* from) {
    switch (type) {
        case Dtype::f16: return f32_from_narrow(kF16, load<std::uint16_t>(from));
        case Dtype::f8e4m3: return f32_from_narrow(kF8E4M3, load<std::uint8_t>(from));
        case Dtype::f8e5m2: return f32_from_narrow(kF8E5M2, load<std::uint8_t>(from));
        default: return f32_from_bf16(load<std::uint16_t>(from));  // decode admits no other
    }
}

}  // namespace

void run_matmul_scalar(const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    const auto type = static_cast<Dtype>(f.dtype);
    const bool floating = type != Dtype::i8;
    const auto size = static_cast<std::ptrdiff_t>(bytes_of(type));
    std::uint64_t m = 0;
    for (std::uint32_t m2 = 0; m2 < f.m_count[2]; ++m2)
        for (std::uint32_t m1 = 0; m1 < f.m_count[1]; ++m1)
            for (std::uint32_t m0 = 0; m0 < f.m_count[0]; ++m0, ++m) {
                const std::ptrdiff_t row = std::ptrdiff_t{m0} * f.a_m_stride[0] + std::ptrdiff_t{m1} * f.a_m_stride[1] +
                                           std::ptrdiff_t{m2} * f.a_m_stride[2];
                for (std::uint32_t n = 0; n < f.n_count; ++n) {
                    std::byte* cell = acc + m * f.acc_stride + std::uint64_t{4} * n;
                    std::uint32_t sum = f.accumulate != 0 ? load<std::uint32_t>(cell) : 0;
                    std::uint32_t k = 0;
                    for (std::uint32_t k2 = 0; k2 < f.k_count[2]; ++k2)
                        for (std::uint32_t k1 = 0; k1 < f.k_count[1]; ++k1)
                            for (std::uint32_t k0 = 0; k0 < f.k_count[0]; ++k0, ++k) {
                                if (!takes_part(f, k, n)) continue;
                                const std::byte* x = a + row + std::ptrdiff_t{k1} * f.a_k_stride[0] + std::ptrdiff_t{k2} * f.a_k_stride[1] + k0 * size;
                                const std::byte* y = w + std::uint64_t{k} * f.w_stride + n * size;
                                if (floating)
                                    sum = fma32(operand(type, x), operand(type, y), sum);
                                else
                                    sum += static_cast<std::uint32_t>(load<std::int8_t>(x) * load<std::int8_t>(y));
                            }
                    if (floating) sum = canonical32(sum);
                    std::memcpy(cell, &sum, sizeof sum);
                }
            }
}

std::uint64_t matmul_macs(const MatmulFields& f) {
    const std::uint64_t rows = std::uint64_t{f.m_count[0]} * f.m_count[1] * f.m_count[2];
    const std::uint64_t depth = std::uint64_t{f.k_count[0]} * f.k_count[1] * f.k_count[2];
    if (f.group_k == 0) return rows * depth * f.n_count;
    std::uint64_t pairs = 0;
    for (std::uint64_t k = 0; k < depth; ++k) {  // columns of k's group that exist
        const std::uint64_t first = (k % f.group_period) / f.group_k * f.group_n;
        if (first < f.n_count) pairs += std::min<std::uint64_t>(f.group_n, f.n_count - first);
    }
    return rows * pairs;
}

}  // namespace assay::simkernel
