#include "systemc/timeline.hpp"

#include <algorithm>
#include <utility>

#include "systemc/timed_process.hpp"

namespace assay::chip {

Timeline::Timeline(sc_core::sc_module_name name, Cycles quantum) : sc_module(name), quantum_(quantum) {
    SC_HAS_PROCESS(Timeline);
    SC_METHOD(dispatch);
    sensitive << next_;
    dont_initialize();
}

void Timeline::schedule(TimedProcess& process, Cycles at, Phase phase) {
    queue_.push({units(at, phase), &process});
    if (!dispatching_) ask_kernel();
}

/// A notification for an earlier time replaces a later one, and a later one is ignored (IEEE 1666-2011 §5.10.8).
void Timeline::ask_kernel() {
    if (!queue_.empty()) next_.notify(sc_core::sc_time::from_value(queue_.top().units) - sc_core::sc_time_stamp());
}

void Timeline::dispatch() {
    stamp_ = now();
    dispatching_ = true;
    while (!queue_.empty() && !error_) {
        const Due due = queue_.top();
        const Cycles at{due.units / Clock::kUnitsPerCycle};
        if (!in_reach(at)) break;
        queue_.pop();
        if (due.process->is_due(due.units)) due.process->act();
    }
    dispatching_ = false;
    ask_kernel();
}

void Timeline::run_until(Cycles target, bool stop_at_completion) {
    horizon_ = target;
    completed_ = false;
    stop_at_completion_ = stop_at_completion;
    while (sc_core::sc_time_stamp() < Clock::span(target)) {
        sc_core::sc_start(Clock::span(target) - sc_core::sc_time_stamp());
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
        if (completed_ && stop_at_completion) target = horizon_;
    }
}

void Timeline::job_completed(Cycles at) {
    if (!completed_) {
        completed_at_ = at;
        // Processes with later phases of the completing cycle still act; the host's turn comes after them.
        if (stop_at_completion_) horizon_ = std::min(horizon_, at + Cycles{1});
    }
    completed_ = true;
    sc_core::sc_pause();
}

void Timeline::fail(std::exception_ptr error) {
    if (!error_) error_ = std::move(error);
    sc_core::sc_pause();
}

}  // namespace assay::chip
