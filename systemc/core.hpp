#pragma once
// One core: local memories, semaphores, five engines, a command processor and a watchdog, wired together and to the NoC.
#include <memory>
#include <vector>

#include "systemc/command_processor.hpp"
#include "systemc/local_memory_port.hpp"
#include "systemc/noc.hpp"
#include "systemc/watchdog.hpp"

namespace assay::chip {

class Core final : public sc_core::sc_module {
public:
    Core(sc_core::sc_module_name name, Timeline& timeline, const simkernel::ChipConfig& config, const ChipOptions& options,
         std::uint32_t number, SemaphoreFile& shared_semaphores, simkernel::ExternalMemory& external, simkernel::ValueQueue& values, Noc& noc);

    CommandProcessor& processor() { return processor_; }
    const CommandProcessor& processor() const { return processor_; }
    Watchdog& watchdog() { return watchdog_; }
    LocalMemoryPort& memory_port() { return memory_port_; }
    EngineProcess& engine(simkernel::Engine engine) { return *engines_[static_cast<std::size_t>(engine)]; }
    /// Core reset: the job is dropped; semaphores, counters, error and sequence numbers are zero. SRAM contents stay.
    void reset();
    /// Contents of the SRAMs after power-on or a chip reset: zero, or pseudo-random from a seed that is not zero.
    void scramble(std::uint64_t seed);
    /// Counter of the present or last job as of `at`; idle is what the other states leave of the job's cycles.
    std::uint64_t counter(simkernel::Engine engine, simkernel::Counter counter, Cycles at) const;

private:
    static constexpr Phase kPhases = simkernel::kAllEngine.size() + 2;  ///< engines, command processor, watchdog
    /// Phase 0 is the host's; cores follow each other.
    static Phase phase(std::uint32_t core, std::size_t process) { return static_cast<Phase>(1 + core * kPhases + process); }
    static constexpr std::uint64_t kMostCores = (Clock::kUnitsPerCycle - 1) / kPhases;

    const std::uint32_t number_;
    simkernel::LocalMemory memory_;
    SemaphoreFile semaphores_;
    std::vector<std::unique_ptr<EngineProcess>> engines_;
    CommandProcessor processor_;
    Watchdog watchdog_;
    LocalMemoryPort memory_port_;
};

}  // namespace assay::chip
