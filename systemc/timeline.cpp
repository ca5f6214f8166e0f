#include "systemc/timeline.hpp"

#include <utility>

namespace assay::chip {

bool Timeline::may_run_ahead(Cycles to, Phase phase) const {
    if (to >= horizon_ || to.count > now().count + quantum_.count) return false;
    if (sc_core::sc_pending_activity_at_current_time()) return false;
    return Clock::span(to, phase) < sc_core::sc_time_stamp() + sc_core::sc_time_to_pending_activity();
}

void Timeline::run_until(Cycles target, bool stop_at_completion) {
    horizon_ = target;
    completed_ = false;
    while (sc_core::sc_time_stamp() < Clock::span(target)) {
        sc_core::sc_start(Clock::span(target) - sc_core::sc_time_stamp());
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
        if (completed_ && stop_at_completion) {
            // Processes with later phases of the completing cycle still act; the host's turn comes after them.
            target = completed_at_ + Cycles{1};
            horizon_ = target;
        }
    }
}

void Timeline::job_completed(Cycles at) {
    if (!completed_) completed_at_ = at;
    completed_ = true;
    sc_core::sc_pause();
}

void Timeline::fail(std::exception_ptr error) {
    if (!error_) error_ = std::move(error);
    sc_core::sc_pause();
}

}  // namespace assay::chip
