#pragma once
// The chip as its host sees it: BAR0 registers, BAR2 window, host memory, time. Elaborated once a process (SystemC allows one elaboration),
// fully resettable, runs many programs. Every call is made from one thread, outside SystemC processes.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/exec/hooks.hpp"
#include "simkernel/types.hpp"
#include "systemc/unit.hpp"

namespace assay::chip {

/// Makes the unit of one engine of one core. Empty function: the behavioural unit.
using UnitFactory = std::function<std::unique_ptr<Unit>(UnitPorts&)>;

struct ChipOptions {
    std::uint64_t seed = 0;
    std::uint64_t quantum_cycles = 1000;   ///< decoupling of private work; results and cycles never depend on it
    bool silicon_shaped = false;           ///< no backdoor, random memory after reset, jittered latencies
    bool jitter = false;                   ///< random extra latencies from `seed`: changes cycles, never values
    /// Values are computed on another thread while time goes on (simkernel/exec/value_queue.hpp). Ignored where hooks or Verilated units must see
    /// them as they come. Results never depend on it.
    bool lag_values = true;
    std::map<std::pair<std::uint32_t, simkernel::Engine>, UnitFactory> units;  ///< by (core, engine)
};

class Chip {
public:
    /// Throws Error(internal) for a second chip of the process, and what a unit's factory throws.
    Chip(const simkernel::ChipConfig& config, ChipOptions options);
    ~Chip();

    /// One BAR0 transaction: takes host.latency_cycles of device time. Unmapped offsets read as zero.
    std::uint32_t read_register(std::uint32_t offset);
    void write_register(std::uint32_t offset, std::uint32_t value);
    /// BAR2 window / host DMA front door: the link's latency and bandwidth. False, counted in bus_error_count: some byte is outside every
    /// region, or in a local memory of a core that runs a job (nothing moves; of a transfer past 64 MiB, earlier pieces of 64 MiB have).
    bool read_memory(simkernel::DeviceAddr addr, std::span<std::byte> out);
    bool write_memory(simkernel::DeviceAddr addr, std::span<const std::byte> in);
    /// Loading and post-mortem without time, also while a job runs. False outside memory, and always on a silicon-shaped chip.
    bool backdoor_read(simkernel::DeviceAddr addr, std::span<std::byte> out);
    bool backdoor_write(simkernel::DeviceAddr addr, std::span<const std::byte> in);
    /// Host memory visible to DMA at region::host + offset: makes [0, offset + bytes) visible; the span stays valid as it grows. Empty past
    /// 64 GiB.
    std::span<std::byte> host_memory(std::uint64_t offset, std::uint64_t bytes);

    /// Runs at most `limit` cycles; returns early, a cycle after, when a job completes. Returns the cycles run. As every call that takes
    /// time, it rethrows what a process of the chip threw; the chip must then be reset.
    simkernel::Cycles advance(simkernel::Cycles limit);
    simkernel::Cycles now() const;
    void set_hooks(simkernel::JobHooks* hooks);  ///< not owned; nullptr: none; only between jobs
    /// Text of the wait graph when the last job ended in a deadlock (each engine: descriptor, semaphore, value, awaited); else empty.
    std::string wait_graph() const;
    std::string unit_implementation(std::uint32_t core, simkernel::Engine engine) const;
    std::uint64_t touched_bytes() const;  ///< host bytes behind HBM

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace assay::chip
