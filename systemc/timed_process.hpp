#pragma once
// A process of the chip that acts at cycles of its choosing, with exact local time; the timeline calls it. No process has a stack of its own, so
// a chip reset can drop its work at any instant without kill(), and sanitizers see ordinary calls.
#include <optional>

#include "systemc/timeline.hpp"

namespace assay::chip {

class TimedProcess : public sc_core::sc_module {
public:
    TimedProcess(sc_core::sc_module_name name, Timeline& timeline, Phase phase);

    /// Asks for a step at cycle `at` (or the earlier one already asked for). Callers act in global time order, so `at` is never past.
    void wake_at(Cycles at);
    /// True while a step is asked for: the process will act without anyone's help.
    bool due() const { return due_.has_value(); }

protected:
    /// Acts at local cycle now(). May move now() on with synchronise() and ask for a further step with wake_at().
    virtual void step() = 0;
    /// Local time: exact during step().
    Cycles now() const { return now_; }
    /// Makes `at` the local time if the process may act there at once (Timeline::may_run_ahead). False: wake_at(at) and return.
    bool synchronise(Cycles at);
    /// The kernel delay that puts a transport call at the local time.
    sc_core::sc_time local_delay() const { return Clock::span(now_, phase_) - sc_core::sc_time_stamp(); }
    /// Drops what was asked for. Only from outside step().
    void cancel() { due_.reset(); }
    const Timeline& timeline() const { return timeline_; }

private:
    friend class Timeline;
    /// True if this is the instant that was asked for last.
    bool is_due(std::uint64_t units) const { return due_ && due_->count * Clock::kUnitsPerCycle + phase_ == units; }
    void act();

    Timeline& timeline_;
    const Phase phase_;
    std::optional<Cycles> due_;
    Cycles now_;
    bool stepping_ = false;
};

}  // namespace assay::chip
