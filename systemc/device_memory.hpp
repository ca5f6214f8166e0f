#pragma once
// Device addresses as an engine's functional accesses see them: HBM from 0, host memory from region::host. Values only, no time.
#include "systemc/host_memory.hpp"
#include "systemc/hbm_controller.hpp"

namespace assay::chip {

class DeviceMemory final : public simkernel::ExternalMemory {
public:
    DeviceMemory(simkernel::SparseMemory& hbm, HostMemory& host) : hbm_(hbm), host_(host) {}
    bool read(std::uint64_t device_addr, std::span<std::byte> out) override;
    bool write(std::uint64_t device_addr, std::span<const std::byte> in) override;

private:
    simkernel::SparseMemory& hbm_;
    HostMemory& host_;
};

}  // namespace assay::chip
