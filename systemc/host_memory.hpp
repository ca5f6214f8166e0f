#pragma once
// Host memory that the chip's DMA can reach: one range of host addresses that never moves, so spans stay valid as it grows.
#include <cstdint>
#include <span>

namespace assay::chip {

class HostMemory {
public:
    HostMemory();  ///< reserves addresses, not memory. Throws Error(io) when the system refuses.
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    /// Makes [0, offset + bytes) visible to the chip (zero until written) and returns [offset, offset + bytes). Empty past kMaxBytes.
    std::span<std::byte> allocate(std::uint64_t offset, std::uint64_t bytes);
    /// Bytes the chip may touch; empty when part of the range was never allocated.
    std::span<std::byte> visible(std::uint64_t offset, std::uint64_t bytes);

    static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 36;

private:
    std::byte* base_ = nullptr;
    std::uint64_t size_ = 0;
};

}  // namespace assay::chip
