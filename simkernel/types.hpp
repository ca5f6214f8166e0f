#pragma once
// Device time and device addresses as types of their own, so that neither is mistaken for a host quantity.
#include <compare>
#include <cstdint>

namespace assay::simkernel {

/// Device time or a span of it, in core clock cycles.
struct Cycles {
    std::uint64_t count = 0;
    constexpr auto operator<=>(const Cycles&) const = default;
    constexpr Cycles operator+(Cycles o) const { return {count + o.count}; }
    constexpr Cycles operator-(Cycles o) const { return {count - o.count}; }
    constexpr Cycles& operator+=(Cycles o) { count += o.count; return *this; }
};

/// Address in the chip's device address space (regions in simkernel/contract/registers.toml).
struct DeviceAddr {
    std::uint64_t value = 0;
    constexpr auto operator<=>(const DeviceAddr&) const = default;
    constexpr DeviceAddr operator+(std::uint64_t bytes) const { return {value + bytes}; }
};

/// Bit 31 of a local address selects the accumulator SRAM; clear: the scratchpad.
inline constexpr std::uint32_t kAccBit = 0x8000'0000u;

}  // namespace assay::simkernel
