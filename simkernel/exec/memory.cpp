#include "simkernel/exec/memory.hpp"

#include <algorithm>
#include <cstring>

namespace assay::simkernel {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): a good 64-bit mix of a counter, used for untouched memory.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

bool inside(std::uint64_t addr, std::uint64_t bytes, std::uint64_t size) { return bytes <= size && addr <= size - bytes; }

}  // namespace

LocalMemory::LocalMemory(const ChipConfig& config)
    : spm_(static_cast<std::size_t>(config.spm_bytes)), acc_(static_cast<std::size_t>(config.acc_bytes)) {}

std::span<std::byte> LocalMemory::range(std::uint32_t local_addr, std::uint64_t bytes) {
    std::vector<std::byte>& sram = local_addr & kAccBit ? acc_ : spm_;
    const std::uint64_t offset = local_addr & ~kAccBit;
    if (!inside(offset, bytes, sram.size())) return {};
    return {sram.data() + offset, static_cast<std::size_t>(bytes)};
}

void LocalMemory::clear() {
    std::fill(spm_.begin(), spm_.end(), std::byte{0});
    std::fill(acc_.begin(), acc_.end(), std::byte{0});
}

SparseMemory::SparseMemory(std::uint64_t size_bytes)
    : size_(size_bytes), leaves_((size_bytes + kPageBytes * kLeafPages - 1) / (kPageBytes * kLeafPages)) {}

SparseMemory::~SparseMemory() { clear(); }

SparseMemory::Leaf* SparseMemory::leaf(std::uint64_t index) const { return leaves_[index / kLeafPages].load(std::memory_order_acquire); }

std::byte* SparseMemory::find(std::uint64_t index) const {
    const Leaf* leaf = this->leaf(index);
    return leaf == nullptr ? nullptr : (*leaf)[index % kLeafPages].load(std::memory_order_acquire);
}

/// The page, made when nobody has touched it. Of two threads that make one, the second finds the first's.
std::byte* SparseMemory::page(std::uint64_t index) const {
    if (std::byte* present = find(index)) return present;
    if (leaf(index) == nullptr) {
        auto fresh = std::make_unique<Leaf>();
        Leaf* expected = nullptr;
        if (leaves_[index / kLeafPages].compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel)) (void)fresh.release();
    }
    auto page = std::make_unique<std::byte[]>(kPageBytes);
    if (seed_ != 0)
        for (std::uint64_t i = 0; i < kPageBytes; i += 8) {
            const std::uint64_t word = mix(seed_ ^ mix(index * kPageBytes + i));
            std::memcpy(page.get() + i, &word, 8);
        }
    std::byte* expected = nullptr;
    if (!(*leaf(index))[index % kLeafPages].compare_exchange_strong(expected, page.get(), std::memory_order_acq_rel)) return expected;
    touched_pages_.fetch_add(1, std::memory_order_relaxed);
    return page.release();
}

std::span<std::byte> SparseMemory::direct(std::uint64_t addr, std::uint64_t bytes) {
    if (!inside(addr, std::min<std::uint64_t>(bytes, 1), size_) || bytes == 0) return {};
    const std::uint64_t offset = addr % kPageBytes;
    const std::uint64_t length = std::min({bytes, kPageBytes - offset, size_ - addr});
    return {page(addr / kPageBytes) + offset, static_cast<std::size_t>(length)};
}

bool SparseMemory::read(std::uint64_t addr, std::span<std::byte> out) const {
    if (!inside(addr, out.size(), size_)) return false;
    while (!out.empty()) {
        const std::uint64_t offset = addr % kPageBytes;
        const std::size_t length = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), kPageBytes - offset));
        if (seed_ == 0 && find(addr / kPageBytes) == nullptr) std::memset(out.data(), 0, length);  // reading makes no page
        else std::memcpy(out.data(), page(addr / kPageBytes) + offset, length);
        out = out.subspan(length);
        addr += length;
    }
    return true;
}

bool SparseMemory::write(std::uint64_t addr, std::span<const std::byte> in) {
    if (!inside(addr, in.size(), size_)) return false;
    while (!in.empty()) {
        const std::span<std::byte> to = direct(addr, in.size());
        std::memcpy(to.data(), in.data(), to.size());
        in = in.subspan(to.size());
        addr += to.size();
    }
    return true;
}

void SparseMemory::clear(std::uint64_t random_seed) {
    for (std::atomic<Leaf*>& slot : leaves_) {
        const std::unique_ptr<Leaf> leaf(slot.exchange(nullptr));
        if (!leaf) continue;
        for (const std::atomic<std::byte*>& page : *leaf) std::unique_ptr<std::byte[]>(page.load());
    }
    touched_pages_ = 0;
    seed_ = random_seed;
}

std::uint64_t SparseMemory::touched_bytes() const { return touched_pages_.load() * kPageBytes; }

}  // namespace assay::simkernel
