#include "golden/reference/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::golden {
namespace {

constexpr double kWorthThreads = 2e6;  ///< about a millisecond, fifty times what starting a thread takes
constexpr unsigned kMaxThreads = 16;

thread_local bool inside = false;

}  // namespace

void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body) {
    const auto threads = static_cast<std::int64_t>(std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads));
    if (inside || count < 2 || threads < 2 || work < kWorthThreads) {
        for (std::int64_t i = 0; i < count; ++i) body(i);
        return;
    }
    std::atomic<std::int64_t> next{0};
    std::exception_ptr first;
    std::mutex mutex;
    const auto run = [&] {
        inside = true;
        try {
            for (std::int64_t i = next++; i < count; i = next++) body(i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!first) first = std::current_exception();
            next = count;
        }
        inside = false;
    };
    std::vector<std::thread> others;
    for (std::int64_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(run);
    run();
    for (std::thread& thread : others) thread.join();
    if (first) std::rethrow_exception(first);
}

}  // namespace assay::golden
