#include "simkernel/exec/value_queue.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "simkernel/exec/semantics.hpp"
#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/workers.hpp"
#include "support/error.hpp"

namespace assay::simkernel {
namespace {

/// An idle thread polls for so long before it sleeps: longer than a timing model takes from one descriptor to the next.
constexpr std::chrono::microseconds kPatience{50};

/// Polls that end when patience does.
class Spin {
public:
    /// False: it is time to sleep.
    bool again() {
        for (int i = 0; i < kPausesALook; ++i) pause_briefly();
        return std::chrono::steady_clock::now() < end_;
    }

private:
    static constexpr int kPausesALook = 8;
    static void pause_briefly() {
#if defined(__x86_64__)
        _mm_pause();
#endif
    }
    const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kPatience;
};

}  // namespace

ValueQueue::ValueQueue(const ChipConfig& config, bool enabled)
    : config_(config),
      windows_(static_cast<std::size_t>(config.cores)),
      touches_(config, kCapacity),
      open_chain_(static_cast<std::size_t>(config.cores)),
      saturated_(new std::atomic<bool>[static_cast<std::size_t>(config.cores)]()) {
    if (!enabled || worker_count() < 2) return;
    ring_.resize(kCapacity);
    ready_.resize(worker_count());
    for (unsigned i = 1; i < worker_count(); ++i) {
        threads_.emplace_back([this, i] { serve(i); });
#if defined(__linux__)
        pthread_setname_np(threads_.back().native_handle(), "assay-values");  // as profilers and debuggers show it
#endif
    }
}

ValueQueue::~ValueQueue() {
    stop_.store(true);
    epoch_.fetch_add(1);
    epoch_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ValueQueue::protect(std::uint32_t core, std::vector<Window> windows) { windows_[core] = std::move(windows); }

bool ValueQueue::may_lag(const Decoded& descriptor, const std::vector<AccessRange>& ranges) const {
    if (is_indexed(descriptor)) return false;
    for (const AccessRange& range : ranges) {
        if (range.space != AccessRange::Space::ext) continue;
        const auto [low, high] = bounds(range);
        if (high > static_cast<std::uint64_t>(config_.hbm_bytes)) return false;
        for (const auto& of_core : windows_)
            for (const Window& window : of_core)
                if (low < window.begin + window.bytes && window.begin < high) return false;
    }
    return true;
}

bool ValueQueue::submit(std::uint32_t core, const Decoded& descriptor, LocalMemory& local, ExternalMemory& external) {
    if (threads_.empty()) return false;
    const std::vector<AccessRange> ranges = accesses(descriptor, config_);
    if (!may_lag(descriptor, ranges)) return false;
    if (failed_.load(std::memory_order_acquire)) join();
    await_room();
    const Id id = submitted_.load(std::memory_order_relaxed), oldest = finished_.load(std::memory_order_acquire);
    Item& slot = item(id);
    slot.decoded = descriptor;
    slot.local = &local;
    slot.external = &external;
    slot.core = core;
    std::vector<Id> before;
    touches_.followed(core, ranges, id, oldest, before);
    Id task = id;
    {
        const std::lock_guard lock(mutex_);
        slot.state = State::waiting;
        slot.pending = 0;
        slot.queued = false;
        slot.followers.clear();
        slot.chain.clear();
        submitted_.store(id + 1, std::memory_order_release);
        if (std::holds_alternative<MatmulFields>(descriptor.op)) {
            if (join_chain(id, before)) task = open_chain_[core];
            else open_chain_[core] = id;
        }
        link(task, before);
        if (task == id && slot.pending == 0) make_ready(id, 0);
    }
    touches_.note(core, ranges, task, oldest);
    return true;
}

/// Waits, computing, while the ring is full. A chain's members keep their places until it is done.
void ValueQueue::await_room() {
    const auto room = [&] { return submitted_.load(std::memory_order_relaxed) - finished_.load(std::memory_order_acquire) < kCapacity; };
    if (!room()) help_until(room);
}

/// Makes the matmul `id` a member of its core's open chain, if it continues it and follows nobody who could follow the chain's head: only what was
/// submitted before the head, and the chain itself.
bool ValueQueue::join_chain(Id id, const std::vector<Id>& before) {
    const Item& next = item(id);
    const Id head_id = open_chain_[next.core];
    if (head_id >= id || !unfinished(head_id)) return false;
    Item& head = item(head_id);
    const auto* fields = std::get_if<MatmulFields>(&head.decoded.op);
    if (head.state != State::waiting || head.core != next.core || fields == nullptr || head.chain.size() >= kLongestChain) return false;
    if (!continues(*fields, std::get<MatmulFields>(next.decoded.op))) return false;
    if (std::any_of(before.begin(), before.end(), [&](Id other) { return other > head_id && unfinished(other); })) return false;
    head.chain.push_back(id);
    return true;
}

/// `id` waits for what is unfinished of `before`. A head that was ready waits again when a new member must.
void ValueQueue::link(Id id, const std::vector<Id>& before) {
    for (const Id other : before) {
        if (other == id || !unfinished(other)) continue;
        item(other).followers.push_back(id);
        ++item(id).pending;
    }
}

void ValueQueue::make_ready(Id id, std::size_t thread) {
    if (std::exchange(item(id).queued, true)) return;
    ready_[thread].push(id);
    ready_count_.fetch_add(1, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_one();
}

void ValueQueue::join() {
    const Id end = submitted_.load(std::memory_order_relaxed);
    if (finished_.load(std::memory_order_acquire) != end) help_until([&] { return finished_.load(std::memory_order_acquire) == end; });
    if (!failed_.load(std::memory_order_acquire)) return;
    failed_.store(false);
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool ValueQueue::take_saturated(std::uint32_t core) { return saturated_[core].exchange(false, std::memory_order_acq_rel); }

void ValueQueue::serve(std::size_t thread) {
    const AloneScope alone;
    while (!stop_.load(std::memory_order_relaxed)) {
        const std::uint32_t seen = epoch_.load(std::memory_order_acquire);
        if (run_one(thread)) continue;
        Spin spin;
        while (epoch_.load(std::memory_order_acquire) == seen)
            if (!spin.again()) epoch_.wait(seen, std::memory_order_acquire);
    }
}

void ValueQueue::help_until(const std::function<bool()>& done) {
    const AloneScope alone;
    while (!done()) {
        if (run_one(0)) continue;
        Spin spin;
        while (!done() && ready_count_.load(std::memory_order_acquire) == 0)
            if (!spin.again()) std::this_thread::yield();
    }
}

/// Computes a descriptor that is ready, with its chain. False: none is.
bool ValueQueue::run_one(std::size_t thread) {
    if (ready_count_.load(std::memory_order_acquire) == 0) return false;
    Id id = 0;
    {
        const std::lock_guard lock(mutex_);
        // What its own last work made ready comes first: the bytes are near. Then the oldest of all.
        std::size_t from = thread;
        for (std::size_t other = 0; ready_[thread].empty() && other < ready_.size(); ++other)
            if (!ready_[other].empty() && (ready_[from].empty() || ready_[other].top() < ready_[from].top())) from = other;
        if (ready_[from].empty()) return false;
        id = ready_[from].top();
        ready_[from].pop();
        ready_count_.fetch_sub(1, std::memory_order_relaxed);
        item(id).queued = false;
        if (item(id).pending != 0) return true;  // it took in a member that waits; it comes back
        item(id).state = State::running;
    }
    try {
        if (!failed_.load(std::memory_order_relaxed)) compute(item(id));
    } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_.store(true, std::memory_order_release);
    }
    finish(id, thread);
    return true;
}

void ValueQueue::compute(Item& head) {
    if (head.chain.empty()) {
        const Effect effect = execute(head.decoded, *head.local, *head.external, config_);
        ASSAY_CHECK(!effect.fault, "a descriptor that can fail is not taken");
        if (effect.saturated) saturated_[head.core].store(true, std::memory_order_release);
        return;
    }
    const auto bytes_at = [&](std::uint32_t addr) { return head.local->range(addr, 1).data(); };
    std::vector<MatmulCall> calls;
    const auto add = [&](const Item& member) {
        const auto& f = std::get<MatmulFields>(member.decoded.op);
        calls.push_back({&f, bytes_at(f.a_addr), bytes_at(f.w_addr)});
    };
    add(head);
    for (const Id member : head.chain) add(item(member));
    run_matmul_chain(calls, bytes_at(std::get<MatmulFields>(head.decoded.op).acc_addr));
}

void ValueQueue::finish(Id id, std::size_t thread) {
    const std::lock_guard lock(mutex_);
    Item& head = item(id);
    head.state = State::done;
    for (const Id member : head.chain) item(member).state = State::done;
    for (const Id follower : head.followers)
        if (--item(follower).pending == 0) make_ready(follower, thread);
    Id at = finished_.load(std::memory_order_relaxed);
    const Id end = submitted_.load(std::memory_order_relaxed);
    while (at < end && item(at).state == State::done) ++at;
    finished_.store(at, std::memory_order_release);
}

}  // namespace assay::simkernel
