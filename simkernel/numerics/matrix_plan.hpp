#pragma once
// How the fast matrix path walks one descriptor: the groups of k that share a dense product, and where activations of a row lie.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/numerics/vector_shape.hpp"

namespace assay::simkernel {

/// Consecutive k of one slice whose activations are contiguous.
struct Run {
    std::ptrdiff_t offset;  ///< bytes from the row's first activation
    std::size_t count;      ///< elements
};

/// A dense product inside the descriptor: these k, in order, by columns [first_column, first_column + columns).
struct Slice {
    std::vector<std::uint32_t> k;
    std::vector<Run> runs;  ///< the same k as places in memory
    std::size_t first_column = 0;
    std::size_t columns = 0;
};

/// One slice when dense, one a group when grouped (groups without columns left out; a group without k has an empty list).
std::vector<Slice> plan_slices(const MatmulFields& f);

/// Byte offsets of a[m][0] from a[0][0], m2 outermost.
std::ptrdiff_t row_offset(const MatmulFields& f, std::size_t m);
/// Byte offset of a[0][k] from a[0][0].
std::ptrdiff_t depth_offset(const MatmulFields& f, std::size_t k);
/// Runs of the k in order; neighbours in memory are joined.
std::vector<Run> plan_runs(const MatmulFields& f, const std::vector<std::uint32_t>& k);

inline std::size_t element_bytes(const MatmulFields& f) { return bytes_of(static_cast<Dtype>(f.dtype)); }
inline bool is_floating(const MatmulFields& f) { return static_cast<Dtype>(f.dtype) != Dtype::i8; }
inline std::size_t rows_of(const MatmulFields& f) { return std::size_t{f.m_count[0]} * f.m_count[1] * f.m_count[2]; }
inline std::size_t depth_of(const MatmulFields& f) { return std::size_t{f.k_count[0]} * f.k_count[1] * f.k_count[2]; }

}  // namespace assay::simkernel
