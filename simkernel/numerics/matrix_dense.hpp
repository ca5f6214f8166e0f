#pragma once
// Dense products of one or several descriptors that add to the same sums one after another.
#include <span>

#include "simkernel/numerics/kernels.hpp"
#include "simkernel/numerics/matrix.hpp"

namespace assay::simkernel {

/// What the host threads keep between descriptors, each its own. On the heap: the caller may be a SystemC process with a small stack.
struct MatrixScratch {
    std::vector<float> floats;
    std::vector<std::int32_t> words;
    std::vector<std::byte> rows, weights, tile;
};
MatrixScratch& matrix_scratch();

template <class T>
T* reserve(std::vector<T>& buffer, std::size_t count) {
    if (buffer.size() < count) buffer.resize(count);
    return buffer.data();
}

/// Elements by which packed rows are padded: kernels read whole vectors of at most 16 words.
inline constexpr std::size_t kRowPad = 16;
/// Multiply-accumulates below which a second thread costs more than it saves: about 10 us of one core, the price of waking it.
inline constexpr std::size_t kParallelMacs = 256 * 1024;

/// Elements of the descriptor's float type as the kernels take them.
void widen(const KernelTable& kernel, const MatmulFields& f, const std::byte* from, float* to, std::size_t count);

/// As run_matmul_chain, for descriptors that are not depthwise and whose accumulator rows do not overlap.
void run_dense(const KernelTable& kernel, std::span<const MatmulCall> calls, std::byte* acc);

}  // namespace assay::simkernel
