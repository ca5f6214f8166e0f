#pragma once
// The inner loops of matrix and vector unit, compiled once for each instruction set from the same source (kernels_*.inc) and chosen at run
// time. Debian 12's Highway has neither an SSE2 target nor VNNI, hence GCC vector types with a dozen intrinsics.
// All floating-point kernels must run under FtzScope; none keeps state.
#include <cstddef>
#include <cstdint>

#include "aurum_contract.hpp"

namespace assay::simkernel {

/// One tile of a matrix product: `rows` rows of activations by one panel of `KernelTable::columns` columns.
struct TileArgs {
    const void* a;           ///< row r at a + r*a_stride_bytes: float[k], or integers in groups of KernelTable::i8_group as they pack them
    std::size_t a_stride_bytes;
    const void* w;           ///< panel: float[steps][columns], or integers [steps][columns][i8_group]
    std::size_t steps;       ///< k of floats, groups of k of integers
    std::byte* acc;          ///< row r at acc + r*acc_stride_bytes: `columns` 32-bit words
    std::size_t acc_stride_bytes;
    bool accumulate;         ///< false: start at +0 and do not read acc
    const std::int32_t* bias = nullptr;  ///< integers: added to each of the panel's columns at the start, wrapping; null: nothing
};

/// One row of a depthwise product (one k and one n a group): acc[n] takes a[base[j] + n] * w[j][n] for j ascending, n < length[j].
struct DiagonalArgs {
    const void* a;               ///< float or int32, readable for 16 elements past the last used
    const void* w;               ///< float or int32 [steps][padded]
    const std::uint32_t* base;
    const std::uint32_t* length;
    std::size_t steps;
    std::size_t padded;          ///< columns rounded up to 16
    void* acc;                   ///< `padded` words, read and written
};

struct KernelTable {
    const char* name;
    std::size_t columns;   ///< of a panel
    std::size_t max_rows;  ///< of a tile

    void (*tile_bf16)(std::size_t rows, const TileArgs& args);
    void (*tile_i8)(std::size_t rows, const TileArgs& args);
    void (*diagonal_bf16)(const DiagonalArgs& args);
    void (*diagonal_i8)(const DiagonalArgs& args);
    void (*widen_bf16)(const std::byte* from, float* to, std::size_t count);
    /// `steps` rows of KernelTable::columns elements, `stride` bytes apart, to consecutive rows of floats.
    void (*widen_bf16_panel)(const std::byte* from, std::size_t stride, float* to, std::size_t steps);
    /// f16, f8e4m3 and f8e5m2 likewise; NaNs become the canonical one.
    void (*widen_narrow)(Dtype type, const std::byte* from, float* to, std::size_t count);
    void (*widen_i8_i32)(const std::byte* from, std::int32_t* to, std::size_t count);
    /// Integer products take `i8_group` consecutive k at a time: 2 as pairs of int16, or 4 as bytes with activations raised by 128 to unsigned, which
    /// the bias of the panel takes back: -128 times the sum of its weights, wrapping (so the int32 sums are exact).
    std::size_t i8_group;
    void (*pack_i8_row)(const std::byte* from, std::byte* to, std::size_t count);
    /// Weights of one step: rows[0..i8_group) of `count` columns, null past the last k, to [columns][i8_group]; their sums are taken off bias * 128.
    void (*pack_i8_step)(const std::byte* const* rows, std::byte* to, std::size_t count, std::int32_t* bias);

    /// dst[i] = op(a[i], b[i], c[i]) for i < count rounded up to 16: all arrays hold that many. dst may be an operand.
    void (*uop)(Uop op, const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c, std::uint32_t* dst, std::size_t count);
    /// partial[i] = op(partial[i], value[i]) for i < count exactly; both are readable up to 16 elements past it.
    void (*combine)(Reduce op, std::uint32_t* partial, const std::uint32_t* value, std::size_t count);
    /// `count` contiguous elements to lane values (floats flushed and canonical) and back; write returns whether an integer or, with
    /// `saturate_f8`, an fp8 value saturated.
    void (*read)(Dtype type, const std::byte* from, std::uint32_t* lanes, std::size_t count);
    bool (*write)(Dtype type, bool saturate_f8, const std::uint32_t* lanes, std::byte* to, std::size_t count);
};

/// The kernels in use; null where only the scalar definitions exist.
const KernelTable* kernels();
/// Installs a table that is not among available_dispatch(): for a test that builds the kernels in another shape. Null: back to the best one.
void install_kernels(const KernelTable* table);

}  // namespace assay::simkernel
