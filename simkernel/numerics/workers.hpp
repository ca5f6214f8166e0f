#pragma once
// Worker threads for values. Work is split by index only, so results never depend on the number of threads.
#include <cstddef>
#include <functional>

namespace assay::simkernel {

/// Calls body(begin, end) over a partition of [0, count) in pieces of at least `grain`, on the workers and the caller; returns when all are
/// done. FTZ|DAZ is set by FtzScope inside body where needed (each thread has its own MXCSR). Not reentrant from inside body.
void parallel_for(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);
/// Takes part in other threads' parallel_for calls until done() holds, which it polls.
void help_until(const std::function<bool()>& done);
/// While it lives the pool has one thread fewer: its owner runs one of its own that calls parallel_for.
class LentThread {
public:
    LentThread();
    ~LentThread();
    LentThread(const LentThread&) = delete;
    LentThread& operator=(const LentThread&) = delete;
};
void set_worker_count(unsigned threads);  ///< total threads including the caller; default: hardware concurrency
unsigned worker_count();

/// Sets FTZ|DAZ in this thread's MXCSR for its lifetime (x86; elsewhere the arithmetic flushes explicitly). Never alive across a
/// SystemC wait(): processes share MXCSR.
class FtzScope {
public:
    FtzScope();
    ~FtzScope();
    FtzScope(const FtzScope&) = delete;
    FtzScope& operator=(const FtzScope&) = delete;

private:
    unsigned saved_;
};

}  // namespace assay::simkernel
