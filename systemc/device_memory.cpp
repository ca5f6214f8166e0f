#include "systemc/device_memory.hpp"

#include <algorithm>

namespace assay::chip {

bool DeviceMemory::read(std::uint64_t device_addr, std::span<std::byte> out) {
    if (device_addr < simkernel::region::host) return hbm_.read(device_addr, out);
    const auto range = host_.visible(device_addr - simkernel::region::host, out.size());
    if (range.size() != out.size()) return false;
    std::copy(range.begin(), range.end(), out.begin());
    return true;
}

bool DeviceMemory::write(std::uint64_t device_addr, std::span<const std::byte> in) {
    if (device_addr < simkernel::region::host) return hbm_.write(device_addr, in);
    const auto range = host_.visible(device_addr - simkernel::region::host, in.size());
    if (range.size() != in.size()) return false;
    std::copy(in.begin(), in.end(), range.begin());
    return true;
}

}  // namespace assay::chip
