// The matrix unit at host-vector speed: dense products (matrix_dense.cpp), depthwise ones here, and the choice between them.
#include "simkernel/numerics/matrix.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "simkernel/numerics/kernels.hpp"
#include "simkernel/numerics/matrix_dense.hpp"
#include "simkernel/numerics/matrix_plan.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel {
namespace {

/// Depthwise: one k and one n a group, so column n takes activation j*period + n at its j-th step. Vectors run over n, without repacking.
/// T is the lane type: float or int32.
template <class T>
void run_diagonal(const KernelTable& kernel, const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    constexpr bool kFloat = std::is_same_v<T, float>;
    const std::size_t depth = depth_of(f), padded = (f.n_count + kRowPad - 1) / kRowPad * kRowPad;
    std::vector<std::uint32_t> base, length;
    for (std::size_t first = 0; first < depth; first += f.group_period) {
        base.push_back(static_cast<std::uint32_t>(first));
        length.push_back(static_cast<std::uint32_t>(std::min<std::size_t>({f.n_count, f.group_period, depth - first})));
    }
    std::vector<T> weights(base.size() * padded);
    for (std::size_t j = 0; j < base.size(); ++j)
        for (std::size_t n = 0; n < length[j]; ++n) {
            const std::byte* from = w + (base[j] + n) * f.w_stride + n * element_bytes(f);
            if constexpr (kFloat) widen(kernel, f, from, &weights[j * padded + n], 1);
            else kernel.widen_i8_i32(from, &weights[j * padded + n], 1);
        }
    std::vector<std::uint32_t> all(depth);
    for (std::size_t k = 0; k < depth; ++k) all[k] = static_cast<std::uint32_t>(k);
    const std::vector<Run> runs = plan_runs(f, all);

    parallel_for(rows_of(f), std::max<std::size_t>(1, kParallelMacs / 8 / depth), [&](std::size_t begin, std::size_t end) {
        const FtzScope ftz;
        MatrixScratch& mine = matrix_scratch();
        T* row = nullptr;
        if constexpr (kFloat) row = reserve(mine.floats, depth + kRowPad);
        else row = reserve(mine.words, depth + kRowPad);
        std::byte* sums = reserve(mine.tile, 4 * padded);
        for (std::size_t m = begin; m < end; ++m) {
            const std::byte* from = a + row_offset(f, m);
            T* to = row;
            for (const Run& run : runs) {
                if constexpr (kFloat) widen(kernel, f, from + run.offset, to, run.count);
                else kernel.widen_i8_i32(from + run.offset, to, run.count);
                to += run.count;
            }
            std::byte* cells = acc + m * f.acc_stride;
            if (f.accumulate != 0) std::memcpy(sums, cells, std::size_t{4} * f.n_count);
            else std::memset(sums, 0, 4 * padded);
            const DiagonalArgs args{row, weights.data(), base.data(), length.data(), base.size(), padded, sums};
            (kFloat ? kernel.diagonal_bf16 : kernel.diagonal_i8)(args);
            std::memcpy(cells, sums, std::size_t{4} * f.n_count);
        }
    });
}

}  // namespace

bool continues(const MatmulFields& first, const MatmulFields& next) {
    const bool dense = first.group_k == 0 && next.group_k == 0;
    return dense && next.accumulate != 0 && first.acc_addr == next.acc_addr && first.acc_stride == next.acc_stride && first.dtype == next.dtype &&
           first.n_count == next.n_count && rows_of(first) == rows_of(next);
}

void run_matmul(const MatmulFields& f, const std::byte* a, const std::byte* w, std::byte* acc) {
    const MatmulCall call{&f, a, w};
    run_matmul_chain({&call, 1}, acc);
}

void run_matmul_chain(std::span<const MatmulCall> calls, std::byte* acc) {
    const KernelTable* kernel = kernels();
    const MatmulFields& f = *calls[0].fields;
    // Rows of the accumulator that overlap have a meaning only in order, one at a time.
    const bool rows_overlap = rows_of(f) > 1 && f.acc_stride < std::uint64_t{4} * f.n_count;
    if (kernel == nullptr || rows_overlap) {
        for (const MatmulCall& call : calls) run_matmul_scalar(*call.fields, call.a, call.w, acc);
    } else if (f.group_k == 1 && f.group_n == 1) {
        for (const MatmulCall& call : calls)
            is_floating(f) ? run_diagonal<float>(*kernel, *call.fields, call.a, call.w, acc)
                           : run_diagonal<std::int32_t>(*kernel, *call.fields, call.a, call.w, acc);
    } else {
        run_dense(*kernel, calls, acc);
    }
}

}  // namespace assay::simkernel
