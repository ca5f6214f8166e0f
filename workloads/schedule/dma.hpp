#pragma once
// Strided transfers of any rank as load, store and fill descriptors.
#include <cstdint>
#include <vector>

#include "workloads/schedule/emitter.hpp"

namespace assay::workloads {

/// One dimension of a transfer, innermost first in a list. Strides in bytes.
struct DmaDim {
    std::int64_t extent = 1;
    std::int64_t ext_stride = 0;
    std::int64_t local_stride = 0;
};

/// Bytes of `size` at every index. Dimensions contiguous on both sides are merged into the run; past four dimensions, several descriptors.
void emit_load(Emitter& emitter, std::uint64_t ext_addr, std::uint32_t local_addr, std::uint32_t size, std::vector<DmaDim> dims);
void emit_store(Emitter& emitter, std::uint64_t ext_addr, std::uint32_t local_addr, std::uint32_t size, std::vector<DmaDim> dims);
/// Fills with a pattern of `size` bytes (1, 2 or 4) at every index.
void emit_fill(Emitter& emitter, std::uint32_t local_addr, std::uint32_t pattern, std::uint32_t size, std::vector<DmaDim> dims);

constexpr std::uint64_t align_up(std::uint64_t bytes, std::uint64_t to = 64) { return (bytes + to - 1) / to * to; }

}  // namespace assay::workloads
