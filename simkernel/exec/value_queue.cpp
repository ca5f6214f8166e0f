#include "simkernel/exec/value_queue.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "simkernel/exec/semantics.hpp"
#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/workers.hpp"
#include "support/error.hpp"

namespace assay::simkernel {
namespace {

/// Polls before the queue's thread sleeps: some 30 us, longer than a timing model takes from one descriptor to the next.
constexpr int kSpins = 600;

void pause_briefly() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/// Bytes [low, high) of one memory of one core (external: of all).
struct Interval {
    AccessRange::Space space;
    bool write;
    std::uint64_t low, high;
};

/// Bounding interval; the whole space when strides wrap.
Interval interval_of(const AccessRange& range) {
    __extension__ typedef __int128 Wide;
    Wide low = range.base, high = low + static_cast<Wide>(range.run);
    for (const auto& [count, stride] : range.dims) {
        const Wide reach = static_cast<Wide>(stride) * (static_cast<Wide>(count) - 1);
        (reach < 0 ? low : high) += reach;
    }
    if (low < 0 || high > static_cast<Wide>(UINT64_MAX)) return {range.space, range.write, 0, UINT64_MAX};
    return {range.space, range.write, static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)};
}

std::vector<Interval> intervals_of(const Decoded& decoded, const ChipConfig& config) {
    std::vector<Interval> all;
    for (const AccessRange& range : accesses(decoded, config)) all.push_back(interval_of(range));
    return all;
}

/// True when the order of two descriptors of one core matters to some byte.
bool conflict(const std::vector<Interval>& x, const std::vector<Interval>& y) {
    for (const Interval& a : x)
        for (const Interval& b : y)
            if (a.space == b.space && (a.write || b.write) && a.low < b.high && b.low < a.high) return true;
    return false;
}

}  // namespace

ValueQueue::ValueQueue(const ChipConfig& config, bool enabled)
    : config_(config), windows_(static_cast<std::size_t>(config.cores)), saturated_(new std::atomic<bool>[static_cast<std::size_t>(config.cores)]()) {
    if (!enabled || worker_count() < 2) return;
    ring_.resize(kCapacity);
    lent_ = std::make_unique<LentThread>();
    thread_ = std::thread([this] { serve(); });
}

ValueQueue::~ValueQueue() {
    if (!thread_.joinable()) return;
    stop_.store(true);
    submitted_.fetch_add(1);  // wakes the thread; nothing is read any more
    submitted_.notify_all();
    thread_.join();
}

void ValueQueue::protect(std::uint32_t core, std::vector<Window> windows) { windows_[core] = std::move(windows); }

bool ValueQueue::takes(const Decoded& descriptor) const {
    if (!thread_.joinable()) return false;
    if (!std::holds_alternative<LoadFields>(descriptor.op) && !std::holds_alternative<StoreFields>(descriptor.op)) return true;
    if (is_indexed(descriptor)) return false;
    for (const AccessRange& range : accesses(descriptor, config_)) {
        if (range.space != AccessRange::Space::ext) continue;
        const Interval ext = interval_of(range);
        if (ext.high > static_cast<std::uint64_t>(config_.hbm_bytes)) return false;
        for (const auto& of_core : windows_)
            for (const Window& window : of_core)
                if (ext.low < window.begin + window.bytes && window.begin < ext.high) return false;
    }
    return true;
}

void ValueQueue::submit(std::uint32_t core, const Decoded& descriptor, LocalMemory& local, ExternalMemory& external) {
    if (failed_.load(std::memory_order_acquire)) join();
    const std::uint64_t at = submitted_.load(std::memory_order_relaxed);
    if (at - finished_.load(std::memory_order_acquire) == kCapacity) help_until([&] { return at - finished_.load(std::memory_order_acquire) < kCapacity; });
    Item& slot = item(at);
    slot.decoded = descriptor;
    slot.local = &local;
    slot.external = &external;
    slot.core = core;
    slot.done = false;
    submitted_.store(at + 1, std::memory_order_release);
    submitted_.notify_one();
}

void ValueQueue::join() {
    if (!thread_.joinable()) return;
    const std::uint64_t end = submitted_.load(std::memory_order_relaxed);
    if (finished_.load(std::memory_order_acquire) != end) help_until([&] { return finished_.load(std::memory_order_acquire) == end; });
    if (failed_.load(std::memory_order_acquire)) rethrow();
}

void ValueQueue::rethrow() {
    failed_.store(false);
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool ValueQueue::take_saturated(std::uint32_t core) { return saturated_[core].exchange(false, std::memory_order_acq_rel); }

void ValueQueue::serve() {
    for (std::uint64_t at = 0;;) {
        for (int spin = 0; submitted_.load(std::memory_order_acquire) == at && spin < kSpins; ++spin) pause_briefly();
        submitted_.wait(at, std::memory_order_acquire);
        if (stop_.load()) return;
        const std::uint64_t end = submitted_.load(std::memory_order_acquire);
        for (; at < end; finished_.store(++at, std::memory_order_release)) {
            if (item(at).done || failed_.load(std::memory_order_relaxed)) continue;
            try {
                run(at, submitted_.load(std::memory_order_acquire));
            } catch (...) {
                failure_ = std::current_exception();
                failed_.store(true, std::memory_order_release);
            }
        }
    }
}

void ValueQueue::run(std::uint64_t at, std::uint64_t end) {
    if (run_chain(at, end)) return;
    Item& now = item(at);
    const Effect effect = execute(now.decoded, *now.local, *now.external, config_);
    ASSAY_CHECK(!effect.fault, "takes() admits no descriptor that can fail");
    if (effect.saturated) saturated_[now.core].store(true, std::memory_order_release);
}

/// Computes the matmul at `at` with the members of its chain before `end` that nothing in between keeps from it. False: it has none.
bool ValueQueue::run_chain(std::uint64_t at, std::uint64_t end) {
    Item& first = item(at);
    const auto* head = std::get_if<MatmulFields>(&first.decoded.op);
    if (head == nullptr) return false;
    std::vector<Item*> members{&first};
    std::vector<std::vector<Interval>> passed;  // accesses of what stands between and stays behind
    for (std::uint64_t i = at + 1; i < std::min(end, at + kLookAhead); ++i) {
        Item& next = item(i);
        if (next.done || next.core != first.core) continue;  // cores share external memory only, which a matmul does not touch
        const std::vector<Interval> touched = intervals_of(next.decoded, config_);
        const auto* f = std::get_if<MatmulFields>(&next.decoded.op);
        if (f == nullptr) {
            passed.push_back(touched);
            continue;
        }
        if (!continues(*head, *f)) break;
        if (std::any_of(passed.begin(), passed.end(), [&](const auto& other) { return conflict(other, touched); })) break;
        members.push_back(&next);
    }
    if (members.size() == 1) return false;
    std::vector<MatmulCall> calls;
    const auto bytes_at = [&](std::uint32_t addr) { return first.local->range(addr, 1).data(); };
    for (Item* member : members) {
        const auto& f = std::get<MatmulFields>(member->decoded.op);
        calls.push_back({&f, bytes_at(f.a_addr), bytes_at(f.w_addr)});
        member->done = true;
    }
    run_matmul_chain(calls, bytes_at(head->acc_addr));
    return true;
}

}  // namespace assay::simkernel
