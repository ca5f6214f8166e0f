#pragma once
// The vector unit's arithmetic (docs/numerics.md §vector): micro-programs over strided streams, reductions in the stated order.
#include <array>
#include <cstddef>
#include <cstdint>

#include "aurum_contract.hpp"

namespace assay::simkernel {

struct VectorStatus {
    bool saturated = false;  ///< an integer output conversion saturated (sticky)
};

/// Computes one `vector` descriptor whose fields and addresses have been checked (simkernel/exec/decode.hpp). `in[i]` and `out` are host
/// pointers to in_addr[i] and out_addr. `lanes` is the chip's L (a power of two), which fixes the order of lane reductions.
VectorStatus run_vector(const VectorFields& f, const std::array<const std::byte*, 3>& in, std::byte* out, int lanes);
/// The same by the definition, one element at a time.
VectorStatus run_vector_scalar(const VectorFields& f, const std::array<const std::byte*, 3>& in, std::byte* out, int lanes);

/// One micro-operation on lane values (raw 32-bit), by the definition.
std::uint32_t run_uop(Uop op, std::uint32_t a, std::uint32_t b, std::uint32_t c);

/// Encoding of micro-operations (see simkernel/contract/descriptors.toml).
constexpr std::uint32_t encode_uop(Uop op, unsigned dst, unsigned a, unsigned b = 0, unsigned c = 0) {
    return static_cast<std::uint32_t>(op) | dst << 8 | a << 12 | b << 17 | c << 22;
}
inline constexpr unsigned kUopImm = 16;  ///< selector of immediate 0
inline constexpr unsigned kUopIn = 24;   ///< selector of stream in0

}  // namespace assay::simkernel
