#pragma once
// BAR0: what each register of the contract reads and does. Job, error, counter, watchdog and sequence registers exist once a core and are
// chosen by core_select; the others once a chip. Reserved, unmapped and misaligned offsets, and per-core registers of a core that is not
// there, read as zero, ignore writes and count in bus_error_count.
#include <functional>
#include <map>
#include <vector>

#include "systemc/core.hpp"

namespace assay::chip {

class RegisterFile {
public:
    struct Actions {
        std::function<void()> before_first_job;  ///< a doorbell while no core runs a job
        std::function<void()> chip_reset;        ///< everything but the registers
    };
    RegisterFile(const simkernel::ChipConfig& config, std::vector<Core*> cores, SemaphoreFile& shared_semaphores, Actions actions);

    std::uint32_t read(std::uint32_t offset, Cycles at);
    void write(std::uint32_t offset, std::uint32_t value, Cycles at);
    void count_bus_error() { ++bus_errors_; }
    void job_completed() { interrupt_status_ |= 1u; }
    /// Level of the interrupt pin: enabled and pending.
    bool interrupt() const { return (stored(simkernel::reg::interrupt_enable) & interrupt_status_ & 1u) != 0; }

private:
    const simkernel::RegisterInfo* find(std::uint32_t offset) const;
    std::uint32_t read_constant(std::uint32_t offset) const;
    std::uint32_t read_core(Core& core, std::uint32_t offset, Cycles at) const;
    std::uint32_t read_counter(Core& core, std::uint32_t offset, Cycles at) const;
    void write_control(std::uint32_t offset, std::uint32_t value, Cycles at);
    void ring(const std::vector<std::uint32_t>& cores, Cycles at);
    void ring_several(std::uint32_t value, Cycles at);
    JobRequest request_of(std::uint32_t core) const;
    void reset_core(Core& core, Cycles at);
    void reset_storage();
    Core* selected();
    std::uint32_t stored(std::uint32_t offset) const;
    std::map<std::uint32_t, std::uint32_t>& storage_of(std::uint32_t offset);

    const simkernel::ChipConfig config_;
    const std::vector<Core*> cores_;
    SemaphoreFile& shared_semaphores_;
    const Actions actions_;
    std::map<std::uint32_t, std::uint32_t> chip_storage_;                ///< rw registers of the chip, by offset
    std::vector<std::map<std::uint32_t, std::uint32_t>> core_storage_;  ///< rw registers of each core
    std::uint32_t bus_errors_ = 0;
    std::uint32_t interrupt_status_ = 0;
};

}  // namespace assay::chip
