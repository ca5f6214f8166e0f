#include "systemc/timeline.hpp"

#include <utility>

namespace assay::chip {

void Timeline::activated() {
    const sc_core::sc_time& stamp = sc_core::sc_time_stamp();
    stamp_ = Clock::cycle_of(stamp);
    frontier_units_ = stamp.value();
    if (!sc_core::sc_pending_activity_at_current_time()) {
        const std::uint64_t pending = sc_core::sc_time_to_pending_activity().value();
        frontier_units_ = pending > UINT64_MAX - frontier_units_ ? UINT64_MAX : frontier_units_ + pending;
    }
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
