#pragma once
// Host storage of the chip's memories: local SRAMs as flat arrays, HBM as pages made on first touch.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/types.hpp"

namespace assay::simkernel {

/// Scratchpad and accumulator of one core. Local address bit 31 selects the accumulator.
class LocalMemory {
public:
    explicit LocalMemory(const ChipConfig& config);
    /// Bytes [addr, addr + bytes) of one SRAM; empty when the range leaves it.
    std::span<std::byte> range(std::uint32_t local_addr, std::uint64_t bytes);
    std::span<std::byte> scratchpad() { return spm_; }
    std::span<std::byte> accumulator() { return acc_; }
    void clear();

private:
    std::vector<std::byte> spm_, acc_;
};

/// A large sparse memory; untouched pages read as the fill (zero, or a seeded random pattern for --silicon-shaped). Threads may read and write
/// different bytes at the same time; clear() stands alone.
class SparseMemory {
public:
    explicit SparseMemory(std::uint64_t size_bytes);
    ~SparseMemory();
    SparseMemory(const SparseMemory&) = delete;
    SparseMemory& operator=(const SparseMemory&) = delete;
    std::uint64_t size() const { return size_; }
    /// False (and nothing moves) when [addr, addr + size) leaves the memory.
    bool read(std::uint64_t addr, std::span<std::byte> out) const;
    bool write(std::uint64_t addr, std::span<const std::byte> in);
    /// Longest contiguous host range at addr, at most `bytes`; makes the page. Empty outside the memory.
    std::span<std::byte> direct(std::uint64_t addr, std::uint64_t bytes);
    void clear(std::uint64_t random_seed = 0);  ///< drops all pages; a non-zero seed makes untouched bytes pseudo-random
    std::uint64_t touched_bytes() const;

private:
    static constexpr std::uint64_t kPageBytes = std::uint64_t{1} << 20;
    static constexpr std::uint64_t kLeafPages = 4096;
    using Leaf = std::array<std::atomic<std::byte*>, kLeafPages>;

    Leaf* leaf(std::uint64_t index) const;
    std::byte* find(std::uint64_t index) const;  ///< null: untouched
    std::byte* page(std::uint64_t index) const;
    std::uint64_t size_;
    std::uint64_t seed_ = 0;
    mutable std::vector<std::atomic<Leaf*>> leaves_;
    mutable std::atomic<std::uint64_t> touched_pages_{0};
};

/// Device addresses as an engine sees them: HBM below region::spm, host memory at region::host.
class ExternalMemory {
public:
    virtual ~ExternalMemory() = default;
    virtual bool read(std::uint64_t device_addr, std::span<std::byte> out) = 0;
    virtual bool write(std::uint64_t device_addr, std::span<const std::byte> in) = 0;
};

}  // namespace assay::simkernel
