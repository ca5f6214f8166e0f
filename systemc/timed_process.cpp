#include "systemc/timed_process.hpp"

namespace assay::chip {

TimedProcess::TimedProcess(sc_core::sc_module_name name, Timeline& timeline, Phase phase) : sc_module(name), timeline_(timeline), phase_(phase) {}

void TimedProcess::wake_at(Cycles at) {
    if (due_ && *due_ <= at) return;
    due_ = at;
    if (!stepping_) timeline_.schedule(*this, at, phase_);  // its own step asks only when it cannot run ahead
}

bool TimedProcess::synchronise(Cycles at) {
    if (at <= now_) return true;
    if (!timeline_.may_run_ahead(at, phase_)) return false;
    now_ = at;
    return true;
}

void TimedProcess::act() {
    now_ = *due_;
    stepping_ = true;
    try {
        do {
            due_.reset();
            step();
        } while (due_ && synchronise(*due_));
    } catch (...) {
        due_.reset();
        timeline_.fail(std::current_exception());
    }
    stepping_ = false;
    if (due_) timeline_.schedule(*this, *due_, phase_);
}

}  // namespace assay::chip
