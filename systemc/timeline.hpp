#pragma once
// What all processes of the chip share about time: who acts next, how far the present sc_start goes, how far processes may run ahead of the
// kernel, and why the simulation was interrupted.
//
// Every process acts at instants (cycle, phase) of its own, and none two at one instant. So the order of all acts is known here, and one
// SC_METHOD makes them, in that order, up to a quantum past the kernel's time: an act costs a place in a queue and no kernel event. It cannot
// be told from a kernel that activates each process by an event of its own.
#include <exception>
#include <functional>
#include <queue>
#include <vector>

#include "systemc/clock.hpp"

namespace assay::chip {

class TimedProcess;

class Timeline : public sc_core::sc_module {
public:
    Timeline(sc_core::sc_module_name name, Cycles quantum);

    Cycles quantum() const { return quantum_; }
    /// True when the acting process may act at (`to`, `phase`) at once: no other process is due before, the host does not act before, and the
    /// quantum is kept. Exact, so results never depend on it.
    bool may_run_ahead(Cycles to, Phase phase) const { return in_reach(to) && (queue_.empty() || units(to, phase) < queue_.top().units); }
    /// `process` is to act at this instant, unless it is asked to act earlier or cancelled.
    void schedule(TimedProcess& process, Cycles at, Phase phase);

    /// Runs the kernel until cycle `target`, phase 0 (the host's turn). With `stop_at_completion` it returns at the first cycle boundary
    /// after a job completed. Rethrows what a process threw.
    void run_until(Cycles target, bool stop_at_completion);
    static Cycles now() { return Clock::cycle_of(sc_core::sc_time_stamp()); }

    /// Called by a command processor at the local cycle of a job's completion.
    void job_completed(Cycles at);
    /// Called by a process that caught an exception which is not the kernel's own.
    void fail(std::exception_ptr error);

private:
    struct Due {
        std::uint64_t units;  ///< kernel time (Clock units)
        TimedProcess* process;
        bool operator>(const Due& other) const { return units > other.units; }
    };

    static std::uint64_t units(Cycles at, Phase phase) { return at.count * Clock::kUnitsPerCycle + phase; }
    bool in_reach(Cycles at) const { return at < horizon_ && at.count <= stamp_.count + quantum_.count; }
    void dispatch();
    void ask_kernel();

    const Cycles quantum_;
    sc_core::sc_event next_{"next"};
    /// What was asked for, and what has been superseded since: a process knows which (TimedProcess::is_due).
    std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
    bool dispatching_ = false;
    Cycles stamp_;    ///< kernel time of the present dispatch
    Cycles horizon_;  ///< the host acts at this cycle: no process may run ahead to it
    bool stop_at_completion_ = false, completed_ = false;
    Cycles completed_at_;
    std::exception_ptr error_;
};

}  // namespace assay::chip
