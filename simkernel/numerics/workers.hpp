#pragma once
// Worker threads for values. Work is split by index only, so results never depend on the number of threads.
#include <cstddef>
#include <functional>

namespace assay::simkernel {

/// Calls body(begin, end) over a partition of [0, count) in pieces of at least `grain`, on the workers and the caller; returns when all are
/// done. FTZ|DAZ is set by FtzScope inside body where needed (each thread has its own MXCSR). Not reentrant from inside body.
void parallel_for(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);
/// While it lives, parallel_for calls of this thread run here: other threads have work of their own.
class AloneScope {
public:
    AloneScope();
    ~AloneScope();
    AloneScope(const AloneScope&) = delete;
    AloneScope& operator=(const AloneScope&) = delete;

private:
    bool saved_;
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
