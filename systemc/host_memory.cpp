#include "systemc/host_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "support/error.hpp"

namespace assay::chip {

HostMemory::HostMemory() {
    void* base = mmap(nullptr, kMaxBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        throw Error(ErrorKind::io, "host memory: cannot reserve 64 GiB of addresses: " + std::string(std::strerror(errno)) +
                                       "; raise the limit of virtual memory (ulimit -v)");
    base_ = static_cast<std::byte*>(base);
}

HostMemory::~HostMemory() { munmap(base_, kMaxBytes); }

std::span<std::byte> HostMemory::allocate(std::uint64_t offset, std::uint64_t bytes) {
    if (offset > kMaxBytes || bytes > kMaxBytes - offset) return {};
    size_ = std::max(size_, offset + bytes);
    return {base_ + offset, bytes};
}

std::span<std::byte> HostMemory::visible(std::uint64_t offset, std::uint64_t bytes) {
    if (offset > size_ || bytes > size_ - offset) return {};
    return {base_ + offset, bytes};
}

}  // namespace assay::chip
