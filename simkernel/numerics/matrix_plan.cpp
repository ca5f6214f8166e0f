#include "simkernel/numerics/matrix_plan.hpp"

#include <algorithm>
#include <numeric>

namespace assay::simkernel {

std::ptrdiff_t row_offset(const MatmulFields& f, std::size_t m) {
    const std::size_t m0 = m % f.m_count[0], rest = m / f.m_count[0];
    const std::size_t m1 = rest % f.m_count[1], m2 = rest / f.m_count[1];
    return static_cast<std::ptrdiff_t>(m0) * f.a_m_stride[0] + static_cast<std::ptrdiff_t>(m1) * f.a_m_stride[1] +
           static_cast<std::ptrdiff_t>(m2) * f.a_m_stride[2];
}

std::ptrdiff_t depth_offset(const MatmulFields& f, std::size_t k) {
    const std::size_t k0 = k % f.k_count[0], rest = k / f.k_count[0];
    const std::size_t k1 = rest % f.k_count[1], k2 = rest / f.k_count[1];
    return static_cast<std::ptrdiff_t>(k0 * element_bytes(f)) + static_cast<std::ptrdiff_t>(k1) * f.a_k_stride[0] +
           static_cast<std::ptrdiff_t>(k2) * f.a_k_stride[1];
}

std::vector<Run> plan_runs(const MatmulFields& f, const std::vector<std::uint32_t>& k) {
    const auto size = static_cast<std::ptrdiff_t>(element_bytes(f));
    std::vector<Run> runs;
    for (const std::uint32_t index : k) {
        const std::ptrdiff_t offset = depth_offset(f, index);
        if (!runs.empty() && runs.back().offset + static_cast<std::ptrdiff_t>(runs.back().count) * size == offset)
            ++runs.back().count;
        else
            runs.push_back({offset, 1});
    }
    return runs;
}

std::vector<Slice> plan_slices(const MatmulFields& f) {
    std::vector<Slice> slices;
    const std::size_t depth = depth_of(f);
    if (f.group_k == 0) {
        Slice& all = slices.emplace_back();
        all.k.resize(depth);
        std::iota(all.k.begin(), all.k.end(), 0u);
        all.columns = f.n_count;
    } else {
        const std::size_t groups = (std::size_t{f.n_count} + f.group_n - 1) / f.group_n;
        slices.resize(groups);
        for (std::size_t g = 0; g < groups; ++g) {
            slices[g].first_column = g * f.group_n;
            slices[g].columns = std::min<std::size_t>(f.group_n, f.n_count - g * f.group_n);
        }
        for (std::size_t k = 0; k < depth; ++k) {
            const std::size_t g = (k % f.group_period) / f.group_k;
            if (g < groups) slices[g].k.push_back(static_cast<std::uint32_t>(k));
        }
    }
    for (Slice& slice : slices) slice.runs = plan_runs(f, slice.k);
    return slices;
}

}  // namespace assay::simkernel
