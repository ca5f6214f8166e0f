#pragma once
// Reset at a random cycle in mid-job, then a job that must not be told from a fresh chip's.
#include <gtest/gtest.h>

#include <random>

#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {

inline void expect_fresh_after_resets(int resets, std::uint32_t kind) {
    Bench bench;
    const Program program = tiled_program(10);
    const auto fresh_job = [&] {
        put_tiled_operands(bench, 10);
        bench.put(0x40000, std::vector<std::byte>(10 * 512, std::byte{0xEE}));
        const auto record = bench.run(program);
        EXPECT_EQ(record.sequence, 1u);
        EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
        EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 10 * 128), tiled_expected(10));
        std::vector<std::uint64_t> numbers{bench.cycles(record)};
        for (const Engine engine : simkernel::kAllEngine)
            for (std::uint32_t c = 0; c < simkernel::kCounterCount; ++c) numbers.push_back(bench.counter(engine, static_cast<simkernel::Counter>(c)));
        return numbers;
    };
    const std::vector<std::uint64_t> fresh = fresh_job();  // of a process that has reset nothing
    std::mt19937_64 random(kind);
    std::uint32_t in_mid_job = 0;
    for (int i = 0; i < resets; ++i) {
        bench.reset(kind);
        bench.load_program(program);
        bench.ring(program);
        const std::uint64_t cycle = random() % (fresh.front() + 100);
        (void)bench.chip.advance({cycle});
        // The reset itself arrives host.latency_cycles later: pull it forward so that the first cycles are reached too.
        if (bench.chip.read_register(reg::completed_sequence) == 0) ++in_mid_job;
        bench.reset(kind);
        ASSERT_EQ(bench.chip.read_register(reg::last_sequence), 0u);
        ASSERT_EQ(fresh_job(), fresh) << "reset " << i << " after " << cycle << " cycles";
    }
    EXPECT_GT(in_mid_job, static_cast<std::uint32_t>(resets) / 4) << "most resets must hit a running job";
}

}  // namespace assay::chip::testing
