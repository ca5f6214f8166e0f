#pragma once
// Values behind the back of the timing model. A timing model starts descriptors in an order that is right for their values too: whoever runs
// them one after another in that order computes what the chip would. So the model hands them over and goes on counting cycles; a thread of the
// queue's own computes, and the model joins it before anyone can look: at a job's end, at an access by the host, before a descriptor whose time
// depends on values.
//
// Descriptors run in the order of their submission, except that consecutive members of a chain of matmuls (matrix.hpp) are computed together
// when nothing between them touches the same bytes: the values are the same for every program, racy ones included.
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/memory.hpp"

namespace assay::simkernel {

class LentThread;

class ValueQueue {
public:
    /// One thread of its own where the host has two or more to give (worker_count); otherwise lags() is false.
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

    /// True if the descriptor may be submitted: nothing of its timing depends on values, it cannot fail, and it meets no protected window.
    bool takes(const Decoded& descriptor) const;
    /// Hands over one descriptor of `core`; its values are there after join(). Throws what an earlier one threw.
    void submit(std::uint32_t core, const Decoded& descriptor, LocalMemory& local, ExternalMemory& external);
    /// Returns when everything submitted is computed; the calling thread takes part. Throws what a descriptor threw.
    void join();
    /// True if a joined descriptor of the core saturated since the last call.
    bool take_saturated(std::uint32_t core);

private:
    struct Item {
        Decoded decoded;
        LocalMemory* local = nullptr;
        ExternalMemory* external = nullptr;
        std::uint32_t core = 0;
        bool done = false;
    };
    static constexpr std::size_t kCapacity = 1024;
    /// Descriptors that are looked at for members of a chain.
    static constexpr std::size_t kLookAhead = 64;

    void serve();
    void run(std::uint64_t at, std::uint64_t end);
    bool run_chain(std::uint64_t at, std::uint64_t end);
    Item& item(std::uint64_t at) { return ring_[at % kCapacity]; }
    void rethrow();

    const ChipConfig config_;
    std::vector<std::vector<Window>> windows_;
    std::vector<Item> ring_;
    std::unique_ptr<std::atomic<bool>[]> saturated_;  ///< by core
    std::atomic<std::uint64_t> submitted_{0}, finished_{0};
    std::atomic<bool> stop_{false}, failed_{false};
    std::exception_ptr failure_;
    std::unique_ptr<LentThread> lent_;
    std::thread thread_;
};

}  // namespace assay::simkernel
