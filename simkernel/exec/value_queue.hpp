#pragma once
// Values behind the back of the timing model. A timing model starts descriptors in an order that is right for their values too: whoever runs
// them one after another in that order computes what the chip would. So the model hands them over and goes on counting cycles; threads of the
// queue's own compute, and the model joins them before anyone can look: at a job's end, at an access by the host, before a descriptor whose
// time depends on values. While it joins, the model's thread computes too.
//
// A descriptor runs when no earlier one that is still to finish touches the same bytes (at least one of the two writing them), so every byte
// sees the order of submission, whatever the program: racy ones leave the same values for any number of threads. Members of a chain of
// matmuls (matrix.hpp) run as one.
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/memory.hpp"
#include "simkernel/exec/touch_map.hpp"

namespace assay::simkernel {

class ValueQueue {
public:
    /// As many threads as the host has to give beside the model's (worker_count). With none, or not enabled, it takes nothing.
    ValueQueue(const ChipConfig& config, bool enabled);
    ~ValueQueue();
    ValueQueue(const ValueQueue&) = delete;
    ValueQueue& operator=(const ValueQueue&) = delete;

    /// Device addresses [begin, begin + bytes) that the timing model itself reads or writes while jobs run.
    struct Window {
        std::uint64_t begin = 0, bytes = 0;
    };
    /// Replaces the windows of one core: transfers that meet any are not for the queue.
    void protect(std::uint32_t core, std::vector<Window> windows);

    /// True if the descriptor was taken: nothing of its timing depends on values, it cannot fail, and it meets no protected window. Its values are
    /// there after join(). Throws what an earlier one threw.
    [[nodiscard]] bool submit(std::uint32_t core, const Decoded& descriptor, LocalMemory& local, ExternalMemory& external);
    /// Returns when everything submitted is computed. Throws what a descriptor threw.
    void join();
    /// True if a joined descriptor of the core saturated since the last call.
    bool take_saturated(std::uint32_t core);

private:
    using Id = std::uint64_t;  ///< descriptors in order of submission
    enum class State : std::uint8_t { waiting, running, done };
    struct Item {
        Decoded decoded;
        LocalMemory* local = nullptr;
        ExternalMemory* external = nullptr;
        std::uint32_t core = 0;
        // Under mutex_:
        State state = State::done;
        std::uint32_t pending = 0;      ///< unfinished ones that it follows
        bool queued = false;            ///< in ready_
        std::vector<Id> followers;      ///< what may run after it
        std::vector<Id> chain;          ///< later members of the chain that it heads
    };
    static constexpr std::size_t kCapacity = 1024;
    static constexpr std::size_t kLongestChain = 64;

    bool may_lag(const Decoded& descriptor, const std::vector<AccessRange>& ranges) const;
    void await_room();
    bool join_chain(Id id, const std::vector<Id>& before);
    void link(Id id, const std::vector<Id>& before);
    void make_ready(Id id, std::size_t thread);

    void serve(std::size_t thread);
    bool run_one(std::size_t thread);
    void compute(Item& head);
    void finish(Id id, std::size_t thread);
    void help_until(const std::function<bool()>& done);
    Item& item(Id id) { return ring_[id % kCapacity]; }
    bool unfinished(Id id) { return id >= finished_.load(std::memory_order_relaxed) && item(id).state != State::done; }

    const ChipConfig config_;
    std::vector<std::vector<Window>> windows_;
    std::vector<Item> ring_;
    TouchMap touches_;                                ///< of the submitting thread
    std::vector<Id> open_chain_;                      ///< by core: head of the chain that the core's next matmul may join
    std::unique_ptr<std::atomic<bool>[]> saturated_;  ///< by core

    std::mutex mutex_;
    /// Under mutex_; by thread that made it ready (the model's is 0), oldest first. May hold one that waits again: its chain took in a member that does.
    std::vector<std::priority_queue<Id, std::vector<Id>, std::greater<>>> ready_;
    std::atomic<std::size_t> ready_count_{0};
    std::atomic<Id> submitted_{0}, finished_{0};  ///< all before finished_ are done
    std::atomic<std::uint32_t> epoch_{0};         ///< changes when something becomes ready; idle threads wait on it
    std::atomic<bool> stop_{false}, failed_{false};
    std::exception_ptr failure_;  ///< under mutex_
    std::vector<std::thread> threads_;
};

}  // namespace assay::simkernel
