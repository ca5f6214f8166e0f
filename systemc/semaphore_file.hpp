#pragma once
// Counting semaphores of one core. A signal made at cycle t is seen by everyone from cycle t + 1, so nothing depends on the order of the
// engines within a cycle.
#include <cstdint>
#include <vector>

#include "systemc/timed_process.hpp"

namespace assay::chip {

class SemaphoreFile {
public:
    explicit SemaphoreFile(std::size_t count) : cells_(count) {}

    std::size_t size() const { return cells_.size(); }
    /// Value seen at cycle `at`.
    std::uint32_t value(std::uint32_t index, Cycles at);
    /// True when a signal made at cycle `at` will change the value in the next one.
    bool signalled(std::uint32_t index, Cycles at) const { return cells_[index].pending != 0 && cells_[index].pending_at == at; }
    /// Adds at cycle `at` and wakes at the next cycle who awaits this semaphore. False, and nothing changes, past 2^32 - 1.
    [[nodiscard]] bool signal(std::uint32_t index, std::uint32_t add, Cycles at);
    /// `who` is woken by signals of semaphore `index` until forget(who).
    void await(std::uint32_t index, TimedProcess& who) { waiters_.push_back({index, &who}); }
    void forget(const TimedProcess& who);
    /// Host access while no job runs.
    void set(std::uint32_t index, std::uint32_t value) { cells_[index] = {value, 0, {}}; }
    void clear();

private:
    struct Cell {
        std::uint32_t seen = 0;      ///< by everyone, at pending_at
        std::uint32_t pending = 0;   ///< added at cycle pending_at
        Cycles pending_at;
    };
    struct Waiter {
        std::uint32_t index;
        TimedProcess* who;
    };
    std::vector<Cell> cells_;
    std::vector<Waiter> waiters_;  ///< at most one an engine
};

}  // namespace assay::chip
