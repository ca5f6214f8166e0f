#pragma once
// What all processes of the chip share about time: how far the present sc_start goes, how far a process may run ahead of the kernel, and
// why the simulation was interrupted.
#include <algorithm>
#include <exception>

#include "systemc/clock.hpp"

namespace assay::chip {

class Timeline {
public:
    explicit Timeline(Cycles quantum) : quantum_(quantum) {}

    Cycles quantum() const { return quantum_; }
    /// True when acting at (`to`, `phase`) now, without giving control back to the kernel, cannot be told from having waited until then:
    /// no other process is due before, the host does not act before, and the quantum is kept. Exact, so results never depend on it.
    /// Within a process's activation only: the kernel was asked once, when it began.
    bool may_run_ahead(Cycles to, Phase phase) const {
        return to < horizon_ && to.count <= stamp_.count + quantum_.count && to.count * Clock::kUnitsPerCycle + phase < frontier_units_;
    }
    /// The kernel has activated a process: asks when the next other one is due.
    void activated();
    /// A process asked the kernel for an activation at this instant, during another's.
    void notified(Cycles at, Phase phase) { frontier_units_ = std::min(frontier_units_, at.count * Clock::kUnitsPerCycle + phase); }

    /// Runs the kernel until cycle `target`, phase 0 (the host's turn). With `stop_at_completion` it returns at the first cycle boundary
    /// after a job completed. Rethrows what a process threw.
    void run_until(Cycles target, bool stop_at_completion);
    static Cycles now() { return Clock::cycle_of(sc_core::sc_time_stamp()); }

    /// Called by a command processor at the local cycle of a job's completion.
    void job_completed(Cycles at);
    /// Called by a process that caught an exception which is not the kernel's own.
    void fail(std::exception_ptr error);

private:
    const Cycles quantum_;
    Cycles stamp_;                      ///< kernel time at the present activation
    std::uint64_t frontier_units_ = 0;  ///< kernel time (Clock units) at which another process is due
    Cycles horizon_;  ///< the host acts at this cycle: no process may run ahead to it
    bool completed_ = false;
    Cycles completed_at_;
    std::exception_ptr error_;
};

}  // namespace assay::chip
