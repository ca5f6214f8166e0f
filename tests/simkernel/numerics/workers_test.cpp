#include "simkernel/numerics/workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace assay::simkernel::test {
namespace {

TEST(Workers, EveryIndexIsVisitedOnceForAnyNumberOfThreadsAndGrain) {
    for (const unsigned threads : {1u, 2u, 3u, 7u}) {
        set_worker_count(threads);
        EXPECT_EQ(worker_count(), threads);
        for (const std::size_t count : {0u, 1u, 2u, 5u, 64u, 1000u})
            for (const std::size_t grain : {0u, 1u, 3u, 100u}) {
                std::vector<std::atomic<int>> visits(count);
                parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) ++visits[i];
                });
                for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(visits[i], 1) << i << " of " << count << ", grain " << grain << ", threads " << threads;
            }
    }
    set_worker_count(2);
}

TEST(Workers, ManySmallJobsInARowAllComplete) {
    set_worker_count(3);
    std::atomic<long> sum{0};
    for (int job = 0; job < 20'000; ++job) parallel_for(4, 1, [&](std::size_t begin, std::size_t end) { sum += static_cast<long>(end - begin); });
    EXPECT_EQ(sum, 80'000);
}

TEST(Workers, CallersOnSeveralThreadsDoNotDisturbEachOther) {
    set_worker_count(3);
    std::atomic<long> sum{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; ++t)
        callers.emplace_back([&] {
            for (int job = 0; job < 500; ++job)
                parallel_for(100, 1, [&](std::size_t begin, std::size_t end) { sum += static_cast<long>(end - begin); });
        });
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(sum, 3 * 500 * 100);
}

TEST(Workers, AnExceptionOfTheBodyReachesTheCallerAndThePoolSurvives) {
    set_worker_count(2);
    EXPECT_THROW(parallel_for(100, 1, [](std::size_t, std::size_t) { throw std::runtime_error("body"); }), std::runtime_error);
    std::atomic<int> visits{0};
    parallel_for(100, 1, [&](std::size_t begin, std::size_t end) { visits += static_cast<int>(end - begin); });
    EXPECT_EQ(visits, 100);
}

TEST(Workers, FlushModeEndsWithItsScope) {
    const volatile float least = 0x1p-126F, half = 0.5F;
    {
        const FtzScope ftz;
        const volatile float flushed = least * half;
#if defined(__x86_64__)
        EXPECT_TRUE(flushed == 0.0F);
#endif
    }
    const volatile float kept = least * half;
    EXPECT_EQ(kept, 0x1p-127F);
}

}  // namespace
}  // namespace assay::simkernel::test
