#include "systemc/watchdog.hpp"

#include <algorithm>

namespace assay::chip {

void Watchdog::set_limit(Cycles limit, Cycles at) {
    limit_ = limit;
    if (armed_ && limit_.count != 0) wake_at(std::max(at, last_ + limit_));
}

void Watchdog::start(Cycles at) {
    last_ = at;
    armed_ = true;
    if (limit_.count != 0) wake_at(at + limit_);
}

void Watchdog::reset(Cycles limit) {
    cancel();
    armed_ = false;
    limit_ = limit;
}

void Watchdog::step() {
    if (!armed_ || limit_.count == 0) return;
    if (now() < last_ + limit_) {
        wake_at(last_ + limit_);
        return;
    }
    armed_ = false;
    expired_(now());
}

}  // namespace assay::chip
