#include "systemc/timed_process.hpp"

namespace assay::chip {

TimedProcess::TimedProcess(sc_core::sc_module_name name, Timeline& timeline, Phase phase)
    : sc_module(name), timeline_(timeline), phase_(phase) {
    SC_HAS_PROCESS(TimedProcess);
    SC_METHOD(run);
    sensitive << wake_;
    dont_initialize();
}

void TimedProcess::wake_at(Cycles at) {
    if (due_ && *due_ <= at) return;
    due_ = at;
    // During its own step the process asks the kernel only when it cannot run ahead. A notification for an earlier time replaces a later
    // one (IEEE 1666-2011 §5.10.5).
    if (stepping_) return;
    wake_.notify(Clock::span(at, phase_) - sc_core::sc_time_stamp());
    timeline_.notified(at, phase_);
}

bool TimedProcess::synchronise(Cycles at) {
    if (at <= now_) return true;
    if (!timeline_.may_run_ahead(at, phase_)) return false;
    now_ = at;
    return true;
}

void TimedProcess::cancel() {
    due_.reset();
    wake_.cancel();
}

void TimedProcess::run() {
    if (!due_) return;
    now_ = *due_;
    stepping_ = true;
    timeline_.activated();
    try {
        do {
            due_.reset();
            step();
        } while (due_ && synchronise(*due_));
    } catch (const sc_core::sc_unwind_exception&) {
        throw;
    } catch (...) {
        due_.reset();
        timeline_.fail(std::current_exception());
    }
    stepping_ = false;
    if (due_) wake_.notify(Clock::span(*due_, phase_) - sc_core::sc_time_stamp());
}

}  // namespace assay::chip
