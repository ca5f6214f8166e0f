#pragma once
// A core's scratchpad, accumulator and semaphores in the device address space: where the host reads and writes them while the core runs no
// job. A loosely timed TLM-2.0 target: bytes move at once, time is added to `delay`. While a job runs, outside the memories, and for
// semaphore accesses that are not whole words: nothing moves, TLM_ADDRESS_ERROR_RESPONSE (IEEE 1666-2011 §14.17).
// Engines do not come this way: each has private ports to the SRAMs (systemc/unit.hpp).
#include <tlm_utils/simple_target_socket.h>

#include <functional>

#include "systemc/semaphore_file.hpp"
#include "systemc/traffic.hpp"

namespace assay::chip {

class LocalMemoryPort final : public sc_core::sc_module {
public:
    tlm_utils::simple_target_socket<LocalMemoryPort> from_noc{"from_noc"};

    /// `busy` tells whether the core runs a job.
    LocalMemoryPort(sc_core::sc_module_name name, const simkernel::ChipConfig& config, simkernel::LocalMemory& memory,
                    SemaphoreFile& semaphores, std::function<bool()> busy);
    /// Functional access without time, whether a job runs or not. `address` is a device address of this core. False: nothing moved.
    bool read(std::uint64_t address, std::span<std::byte> out, Cycles at);
    bool write(std::uint64_t address, std::span<const std::byte> in);

private:
    void b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    std::span<std::byte> sram(std::uint64_t address, std::uint64_t bytes);

    const Cycles latency_;
    simkernel::LocalMemory& memory_;
    SemaphoreFile& semaphores_;
    const std::function<bool()> busy_;
};

}  // namespace assay::chip
