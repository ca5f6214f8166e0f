#include <gtest/gtest.h>

#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {
namespace {

namespace p = simkernel::testing;
using simkernel::Counter;

TEST(Job, GemmLeavesThePlainLoopsProductInHbm) {
    Bench bench;
    put_gemm_operands(bench, 5, 8, 7);
    const auto record = bench.run(p::gemm_program(5, 8, 7));
    EXPECT_EQ(record.sequence, 1u);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(record.error_code, 0u);
    EXPECT_GT(bench.cycles(record), 0u);
    EXPECT_EQ(bench.get_values<std::int32_t>(0x3000, 35), gemm_expected(5, 8, 7));
    EXPECT_EQ(bench.chip.read_register(reg::completed_sequence), 1u);
    EXPECT_EQ(bench.chip.read_register(reg::interrupt_status), 1u);
}

TEST(Job, OverlappedTilesLeaveThePlainLoopsProducts) {
    Bench bench;
    put_tiled_operands(bench, 12);
    const auto record = bench.run(tiled_program(12));
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 12 * 128), tiled_expected(12));
}

/// A table of 64 rows of 256 bytes, gathered by a list of 32 words; the product is stored at 0x40000.
Program gather_program(bool indexed) {
    simkernel::LoadFields f;
    f.index_enable = indexed;
    f.index_addr = indexed ? 0x100 : 0;
    f.index_limit = indexed ? 64 : 0;
    f.ext_addr = 0x20000;
    f.local_addr = 0x1000;
    f.run_bytes = 256;
    f.count = {32, 1, 1, 1};
    f.ext_stride = {256, 0, 0, 0};
    f.local_stride = {256, 0, 0, 0};
    Program program{p::load(0x1000, 0x100, 128), p::descriptor(simkernel::Opcode::load, f), p::store(0x40000, 0x1000, 32 * 256)};
    p::add_signal(program[1], 0);
    p::add_waits(program[2], {{0, 1}});
    return program;
}

TEST(Job, AnIndexedLoadGathersRowsAndPaysForItsList) {
    Bench bench;
    const auto table = pattern(64 * 256, 3);
    std::vector<std::int32_t> list;
    for (int i = 0; i < 32; ++i) list.push_back(i % 3 == 0 ? -1 - i : (i * 29) % 64);
    bench.put_values(0x20000, table);
    bench.put_values(0x1000, list);
    const auto record = bench.run(gather_program(true));
    ASSERT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    const auto got = bench.get_values<std::int8_t>(0x40000, 32 * 256);
    for (std::size_t i = 0; i < 32; ++i)
        for (std::size_t b = 0; b < 256; ++b)
            ASSERT_EQ(got[i * 256 + b], table[static_cast<std::size_t>(list[i] < 0 ? list[i] + 64 : list[i]) * 256 + b]) << "row " << i << " byte " << b;

    // Rows in order cost what one long run costs, and the list on top: the scratchpad's latency and a port width a cycle.
    for (std::size_t i = 0; i < 32; ++i) list[i] = static_cast<std::int32_t>(i);
    bench.put_values(0x1000, list);
    std::uint64_t indexed = 0, plain = 0;
    for (int warm = 0; warm < 2; ++warm) indexed = bench.cycles(bench.run(gather_program(true)));
    for (int warm = 0; warm < 2; ++warm) plain = bench.cycles(bench.run(gather_program(false)));
    const auto width = static_cast<std::uint64_t>(bench.config.noc_bytes_per_cycle);
    EXPECT_EQ(indexed, plain + static_cast<std::uint64_t>(bench.config.spm_latency_cycles) + (128 + width - 1) / width);
}

TEST(Job, AnIndexPastTheTableFailsTheJobAndTheNextOneRuns) {
    Bench bench;
    bench.put_values(0x20000, pattern(64 * 256, 3));
    std::vector<std::int32_t> list(32, 7);
    list[5] = 64;
    bench.put_values(0x1000, list);
    const auto failed = bench.run(gather_program(true));
    EXPECT_EQ(failed.status, static_cast<std::uint32_t>(JobStatus::failed));
    EXPECT_EQ(failed.error_code, static_cast<std::uint32_t>(ErrorCode::illegal_address));
    EXPECT_EQ(failed.descriptor, 1u);
}

TEST(Job, EmptyProgramCompletesAtOnce) {
    Bench bench;
    const auto record = bench.run({});
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.cycles(record), 0u);
}

TEST(Job, TwoJobsInARowTakeTheSameCycles) {
    Bench bench;
    put_tiled_operands(bench, 6);
    const auto first = bench.run(tiled_program(6));
    const auto second = bench.run(tiled_program(6));
    EXPECT_EQ(first.sequence, 1u);
    EXPECT_EQ(second.sequence, 2u);
    EXPECT_EQ(bench.cycles(first), bench.cycles(second));
}

TEST(Job, StopAfterAndResumeAtEveryDescriptorEqualsOneRun) {
    Bench bench;
    const Program program = tiled_program(4);
    put_tiled_operands(bench, 4);
    int checked = 0;
    for (std::uint32_t stop = 0; stop + 1 < program.size(); ++stop, ++checked) {
        bench.put(0x40000, std::vector<std::byte>(4 * 512, std::byte{0xEE}));
        const auto stopped = bench.run(program, {.stop_after = stop});
        ASSERT_EQ(stopped.status, static_cast<std::uint32_t>(JobStatus::stopped)) << "stop " << stop;
        std::uint64_t retired = 0;
        for (const Engine engine : simkernel::kAllEngine) retired += bench.counter(engine, Counter::retired);
        ASSERT_EQ(retired, stop + 1);
        // Local memory and semaphores are readable while no job runs.
        std::vector<std::byte> semaphores(16);
        ASSERT_TRUE(bench.chip.read_memory({region::semaphores}, semaphores));
        const auto resumed = bench.run(program, {.start = stop + 1});
        ASSERT_EQ(resumed.status, static_cast<std::uint32_t>(JobStatus::done)) << "stop " << stop;
        ASSERT_EQ(bench.get_values<std::int32_t>(0x40000, 4 * 128), tiled_expected(4)) << "stop " << stop;
    }
    EXPECT_EQ(checked, 19);
}

TEST(Job, ResumeFromRestoredLocalStateAfterResetEqualsOneRun) {
    Bench bench;
    const Program program = tiled_program(4);
    put_tiled_operands(bench, 4);
    (void)bench.run(program, {.stop_after = 9});
    const auto hbm = bench.get(0, 0x50000);
    std::vector<std::byte> spm(0x8000), acc(0x400), semaphores(16);
    ASSERT_TRUE(bench.chip.read_memory({region::spm}, spm));
    ASSERT_TRUE(bench.chip.read_memory({region::acc}, acc));
    ASSERT_TRUE(bench.chip.read_memory({region::semaphores}, semaphores));
    bench.reset(2);
    bench.put(0, hbm);
    ASSERT_TRUE(bench.chip.write_memory({region::spm}, spm));
    ASSERT_TRUE(bench.chip.write_memory({region::acc}, acc));
    ASSERT_TRUE(bench.chip.write_memory({region::semaphores}, semaphores));
    const auto record = bench.run(program, {.start = 10});
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 4 * 128), tiled_expected(4));
}

TEST(Job, CountersOfEveryEngineBalanceAndTraceTellsTheSame) {
    Bench bench;
    const Program program = tiled_program(8);
    put_tiled_operands(bench, 8);
    const auto record = bench.run(program, {.trace = true});
    std::array<std::uint64_t, 5> executing{}, stalled{}, retired{};
    std::uint64_t last_end = 0;
    for (std::uint32_t i = 0; i < program.size(); ++i) {
        const auto trace = bench.trace(i);
        ASSERT_LT(trace.engine, 5u) << i;
        EXPECT_LE(trace.queued, trace.start) << i;
        EXPECT_LT(trace.start, trace.end) << i;
        executing[trace.engine] += trace.end - trace.start;
        stalled[trace.engine] += trace.stall_memory;
        ++retired[trace.engine];
        last_end = std::max(last_end, trace.end);
    }
    EXPECT_LE(last_end, bench.cycles(record));
    for (const Engine engine : simkernel::kAllEngine) {
        const auto e = static_cast<std::size_t>(engine);
        const std::uint64_t busy = bench.counter(engine, Counter::busy), memory = bench.counter(engine, Counter::stall_memory);
        EXPECT_EQ(busy + memory + bench.counter(engine, Counter::stall_semaphore) + bench.counter(engine, Counter::idle), bench.cycles(record)) << e;
        EXPECT_EQ(busy + memory, executing[e]) << e;
        EXPECT_EQ(memory, stalled[e]) << e;
        EXPECT_EQ(bench.counter(engine, Counter::retired), retired[e]) << e;
    }
    EXPECT_EQ(bench.counter(Engine::matrix, Counter::work), 8u * 16 * 8 * 8);
    EXPECT_EQ(bench.counter(Engine::store, Counter::work), 8u * 16 * 8 * 4);
    EXPECT_GT(bench.counter(Engine::matrix, Counter::stall_semaphore), 0u);
    EXPECT_GT(bench.counter(Engine::load, Counter::stall_memory), 0u);
}

TEST(Job, CountersBalanceWhileTheJobRuns) {
    Bench bench;
    const Program program = tiled_program(40);
    put_tiled_operands(bench, 40);
    bench.load_program(program);
    bench.ring(program);
    (void)bench.chip.advance({900});
    ASSERT_EQ(bench.chip.read_register(reg::completed_sequence), 0u) << "the job must still run";
    for (const Counter counter : {Counter::busy, Counter::stall_semaphore, Counter::stall_memory, Counter::idle})
        EXPECT_LT(bench.counter(Engine::matrix, counter), std::uint64_t{1} << 32) << "no state may go below zero";
    EXPECT_EQ(bench.finish().status, static_cast<std::uint32_t>(JobStatus::done));
}

TEST(Job, LocalMemoriesAreClosedWhileTheJobRunsAndCounted) {
    Bench bench;
    const Program program = tiled_program(40);
    put_tiled_operands(bench, 40);
    bench.load_program(program);
    bench.ring(program);
    std::vector<std::byte> word(4);
    for (const std::uint64_t address : {region::spm, region::acc, region::semaphores}) EXPECT_FALSE(bench.chip.read_memory({address}, word));
    EXPECT_FALSE(bench.chip.write_memory({region::spm}, word));
    EXPECT_EQ(bench.chip.read_register(reg::bus_error_count), 4u);
    EXPECT_EQ(bench.finish().status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_TRUE(bench.chip.read_memory({region::spm}, word));
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 40 * 128), tiled_expected(40));
}

TEST(Job, DoorbellWhileAJobRunsIsIgnored) {
    Bench bench;
    const Program program = tiled_program(40);
    put_tiled_operands(bench, 40);
    bench.load_program(program);
    bench.ring(program);
    bench.chip.write_register(reg::doorbell, 1);
    EXPECT_EQ(bench.chip.read_register(reg::last_sequence), 1u);
    EXPECT_EQ(bench.finish().sequence, 1u);
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 40 * 128), tiled_expected(40));
}

TEST(Job, HostMemoryHoldsProgramOperandsResultAndRecord) {
    Bench bench;
    const auto window = bench.chip.host_memory(0, 0x10000);
    Program program = p::gemm_program(4, 8, 8);
    program[0] = p::load(region::host + 0x1000, 0, 32);
    auto wait = program[4];
    program[4] = p::store(region::host + 0x3000, 0x8000, 128);
    for (const std::size_t word : {1, 2, 3, 4, 5, 6, 7}) program[4][word] = wait[word];
    put_gemm_operands(bench, 4, 8, 8);
    const auto a = pattern(32, 1);
    std::memcpy(window.data() + 0x1000, a.data(), a.size());
    std::memcpy(window.data() + 0x8000, program.data(), program.size() * sizeof(program[0]));
    const Job job{.program = region::host + 0x8000, .completion = region::host + 0x20};
    bench.ring(program, job);
    const auto record = bench.finish(job);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    std::vector<std::int32_t> result(32);
    std::memcpy(result.data(), window.data() + 0x3000, 128);
    EXPECT_EQ(result, gemm_expected(4, 8, 8));
    EXPECT_GT(bench.cycles(record), 2 * static_cast<std::uint64_t>(bench.config.host_latency_cycles)) << "host memory is across the link";
}

TEST(Job, CoresRunJobsOfTheirOwnAtOnce) {
    simkernel::ChipConfig config = p::nano();
    config.cores = 3;
    Bench bench(config);
    put_tiled_operands(bench, 6);
    const Program program = tiled_program(6);
    bench.load_program(program);
    for (const std::uint32_t core : {2u, 0u}) {
        bench.chip.write_register(reg::core_select, core);
        bench.ring(program, {.completion = kCompletionAddress + core * 0x100});
    }
    for (const std::uint32_t core : {0u, 2u}) {
        bench.chip.write_register(reg::core_select, core);
        EXPECT_EQ(bench.finish({.completion = kCompletionAddress + core * 0x100}).status, static_cast<std::uint32_t>(JobStatus::done)) << core;
    }
    bench.chip.write_register(reg::core_select, 1);
    EXPECT_EQ(bench.chip.read_register(reg::last_sequence), 0u);
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 6 * 128), tiled_expected(6));
}

}  // namespace
}  // namespace assay::chip::testing
