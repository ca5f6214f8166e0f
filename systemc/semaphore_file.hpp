#pragma once
// Counting semaphores: those of one core, or those that the chip shares. A signal made at cycle t is seen by everyone from cycle t + 1 + delay, so
// nothing depends on the order of the engines within a cycle. The delay is 0 within a core, and a hop of the NoC between cores.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "systemc/timed_process.hpp"

namespace assay::chip {

class SemaphoreFile {
public:
    explicit SemaphoreFile(std::size_t count, Cycles delay = {}) : delay_(delay), cells_(count) {}

    std::size_t size() const { return cells_.size(); }
    /// Value seen at cycle `at`.
    std::uint32_t value(std::uint32_t index, Cycles at);
    /// The next cycle after `at` in which a signal already made will change the value.
    std::optional<Cycles> next_change(std::uint32_t index, Cycles at) const;
    /// Adds at cycle `at` and wakes who awaits this semaphore when they can see it. False, and nothing changes, past 2^32 - 1.
    [[nodiscard]] bool signal(std::uint32_t index, std::uint32_t add, Cycles at);
    /// `who` is woken by signals of semaphore `index` until forget(who).
    void await(std::uint32_t index, TimedProcess& who) { waiters_.push_back({index, &who}); }
    void forget(const TimedProcess& who);
    void clear();  ///< to zero; who waits goes on waiting

    /// Host access while no job runs, by byte offset; whole words only. False: nothing moved.
    bool read(std::uint64_t offset, std::span<std::byte> out, Cycles at);
    bool write(std::uint64_t offset, std::span<const std::byte> in);

private:
    struct Signal {
        std::uint32_t add;
        Cycles seen_at;
    };
    struct Cell {
        std::uint32_t seen = 0;
        std::vector<Signal> pending;  ///< in order of time
    };
    struct Waiter {
        std::uint32_t index;
        TimedProcess* who;
    };
    bool whole_words(std::uint64_t offset, std::uint64_t bytes) const;
    const Cycles delay_;
    std::vector<Cell> cells_;
    std::vector<Waiter> waiters_;  ///< at most one an engine
};

}  // namespace assay::chip
