#pragma once
// Watchdog of one core: fails a job in which no descriptor retired for watchdog_cycles cycles. Costs an event only each watchdog_cycles.
#include <functional>

#include "systemc/timed_process.hpp"

namespace assay::chip {

class Watchdog final : public TimedProcess {
public:
    Watchdog(sc_core::sc_module_name name, Timeline& timeline, Phase phase) : TimedProcess(name, timeline, phase) {}
    void on_expiry(std::function<void(Cycles)> callback) { expired_ = std::move(callback); }

    void set_limit(Cycles limit, Cycles at);  ///< zero: off. Holds at once, for a running job too.
    Cycles limit() const { return limit_; }
    void start(Cycles at);
    void retired(Cycles at) { last_ = at; }
    void stop() { armed_ = false; }
    void reset(Cycles limit);

private:
    void step() override;
    std::function<void(Cycles)> expired_;
    Cycles limit_;
    Cycles last_;  ///< doorbell or last retirement
    bool armed_ = false;
};

}  // namespace assay::chip
