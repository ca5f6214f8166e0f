#include "simkernel/numerics/workers.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay::simkernel {
namespace {

/// Polls before a thread sleeps: about 20 us, the length of a small descriptor, so that a stream of them pays no wake-up.
constexpr int kSpins = 600;

void pause_briefly() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

struct Job {
    std::size_t count = 0;
    std::size_t piece = 1;
    const std::function<void(std::size_t, std::size_t)>* body = nullptr;
    std::atomic<std::size_t> next{0};
    std::mutex failure_mutex;
    std::exception_ptr failure;

    void run_pieces() {
        for (;;) {
            const std::size_t begin = next.fetch_add(piece);
            if (begin >= count) return;
            try {
                (*body)(begin, std::min(count, begin + piece));
            } catch (...) {
                const std::lock_guard lock(failure_mutex);
                if (!failure) failure = std::current_exception();
            }
        }
    }
};

/// Persistent threads. A job is published through `current_`; a worker announces itself in `inside_` before it looks, so that the caller, having
/// taken the job back, knows when the last one has left. A worker that is still asleep takes no part and is not waited for.
class Pool {
public:
    explicit Pool(unsigned workers) : owner_(getpid()) {
        for (unsigned i = 0; i < workers; ++i) threads_.emplace_back([this] { serve(); });
    }
    ~Pool() {
        if (orphaned()) {
            for (auto& thread : threads_) thread.detach();
            return;
        }
        stop_.store(true);
        wake();
        for (auto& thread : threads_) thread.join();
    }
    /// A forked child has the object but not its threads.
    bool orphaned() const { return getpid() != owner_; }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    void run(Job& job) {
        current_.store(&job);
        wake();
        job.run_pieces();
        current_.store(nullptr);
        for (int spin = 0; inside_.load() != 0; ++spin) {
            if (spin < kSpins) pause_briefly();
            else std::this_thread::yield();
        }
    }

private:
    void wake() {
        epoch_.fetch_add(1);
        epoch_.notify_all();
    }
    void serve() {
        std::uint32_t seen = 0;
        for (;;) {
            for (int spin = 0; epoch_.load() == seen && spin < kSpins; ++spin) pause_briefly();
            epoch_.wait(seen);
            seen = epoch_.load();
            if (stop_.load()) return;
            inside_.fetch_add(1);
            if (Job* job = current_.load()) job->run_pieces();
            inside_.fetch_sub(1);
        }
    }

    std::atomic<Job*> current_{nullptr};
    std::atomic<int> inside_{0};
    std::atomic<std::uint32_t> epoch_{0};
    std::atomic<bool> stop_{false};
    const pid_t owner_;
    std::vector<std::thread> threads_;
};

thread_local bool alone = false;

struct Workers {
    std::mutex mutex;  ///< held by the one caller whose job is on the pool
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::unique_ptr<Pool> pool;
};
Workers& workers() {
    static Workers instance;
    return instance;
}

}  // namespace

void parallel_for(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body) {
    if (count == 0) return;
    if (alone) {
        body(0, count);
        return;
    }
    grain = std::max<std::size_t>(grain, 1);
    Workers& w = workers();
    std::unique_lock lock(w.mutex, std::try_to_lock);
    // Small work, one thread, or a pool that serves another caller: here and now. The values are the same.
    if (!lock.owns_lock() || w.threads == 1 || count < 2 * grain) {
        body(0, count);
        return;
    }
    if (!w.pool || w.pool->orphaned()) w.pool = std::make_unique<Pool>(w.threads - 1);
    Job job;
    job.count = count;
    // Four pieces a thread even out threads that start late, without pieces below the grain.
    job.piece = std::max(grain, (count + 4 * w.threads - 1) / (std::size_t{4} * w.threads));
    job.body = &body;
    w.pool->run(job);
    if (job.failure) std::rethrow_exception(job.failure);
}

void set_worker_count(unsigned threads) {
    Workers& w = workers();
    const std::lock_guard lock(w.mutex);
    w.threads = std::max(1u, threads);
    w.pool.reset();
}

unsigned worker_count() {
    Workers& w = workers();
    const std::lock_guard lock(w.mutex);
    return w.threads;
}

AloneScope::AloneScope() : saved_(alone) { alone = true; }
AloneScope::~AloneScope() { alone = saved_; }

FtzScope::FtzScope() : saved_(0) {
#if defined(__x86_64__)
    saved_ = _mm_getcsr();
    _mm_setcsr(0x9FC0u);  // FTZ (bit 15) | DAZ (bit 6) | all exceptions masked, round to nearest even, flags clear
#endif
}

FtzScope::~FtzScope() {
#if defined(__x86_64__)
    _mm_setcsr(saved_);
#endif
}

}  // namespace assay::simkernel
