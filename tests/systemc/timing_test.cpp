// Cycles: the same at every quantum and number of worker threads, values the same at every depth, seed and shape of time.
#include <gtest/gtest.h>

#include <set>

#include "simkernel/numerics/workers.hpp"
#include "systemc/hbm_controller.hpp"
#include "systemc/timing/vpu_timing.hpp"
#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {
namespace {

namespace p = simkernel::testing;
using simkernel::Counter;

/// Cycles, every counter, every trace record and the result of a run, as numbers.
std::vector<std::uint64_t> measure(const ChipOptions& options, simkernel::ChipConfig config = p::nano(), unsigned threads = 1) {
    simkernel::set_worker_count(threads);
    Bench bench(config, options);
    const std::uint32_t tiles = 10;
    put_tiled_operands(bench, tiles);
    const Program program = tiled_program(tiles);
    std::vector<std::uint64_t> numbers;
    for (int job = 0; job < 2; ++job) {
        const auto record = bench.run(program, {.trace = job == 1});
        EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
        numbers.push_back(bench.cycles(record));
        for (const Engine engine : simkernel::kAllEngine)
            for (std::uint32_t c = 0; c < simkernel::kCounterCount; ++c) numbers.push_back(bench.counter(engine, static_cast<Counter>(c)));
    }
    for (std::uint32_t i = 0; i < program.size(); ++i) {
        const auto trace = bench.trace(i);
        numbers.insert(numbers.end(), {trace.queued, trace.start, trace.end, trace.stall_memory});
    }
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, tiles * 128), tiled_expected(tiles));
    return numbers;
}

ChipOptions quantum(std::uint64_t cycles) {
    ChipOptions options;
    options.quantum_cycles = cycles;
    return options;
}

TEST(Timing, EveryQuantumGivesTheSameCyclesCountersAndTrace) {
    const auto expected = in_child([] { return measure(quantum(1000)); });
    ASSERT_FALSE(expected.empty());
    for (const std::uint64_t q : {1, 2, 7, 100, 10'000, 1'000'000})
        EXPECT_EQ(in_child([&] { return measure(quantum(q)); }), expected) << "quantum " << q;
}

TEST(Timing, EveryNumberOfThreadsGivesTheSameCycles) {
    const auto expected = in_child([] { return measure({}, p::nano(), 1); });
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(in_child([] { return measure({}, p::nano(), 3); }), expected);
}

TEST(Timing, QueueDepthChangesCyclesOnly) {
    std::vector<std::uint64_t> cycles;
    for (const std::int64_t depth : {1, 2, 8}) {
        const auto numbers = in_child([&] {
            simkernel::ChipConfig config = p::nano();
            config.queue_depth = depth;
            return measure({}, config);  // checks the values
        });
        ASSERT_FALSE(numbers.empty()) << "depth " << depth;
        cycles.push_back(numbers.front());
    }
    EXPECT_GT(cycles[0], cycles[2]) << "a deeper queue lets engines run further apart";
}

TEST(Timing, JitterChangesCyclesWithTheSeedAndNeverValues) {
    std::set<std::uint64_t> cycles;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
        ChipOptions options;
        options.jitter = true;
        options.seed = seed;
        const auto first = in_child([&] { return measure(options); });
        ASSERT_FALSE(first.empty()) << "seed " << seed;
        options.quantum_cycles = 1;
        EXPECT_EQ(in_child([&] { return measure(options); }), first) << "the same seed gives the same cycles at any quantum";
        cycles.insert(first.front());
    }
    EXPECT_GT(cycles.size(), 1u);
    EXPECT_EQ(cycles.count(in_child([] { return measure({}); }).front()), 0u);
}

TEST(Timing, SiliconShapedChipHasNoBackDoorAndRandomContents) {
    ChipOptions options;
    options.silicon_shaped = true;
    options.seed = 5;
    Bench bench(p::nano(), options);
    std::vector<std::byte> bytes(256);
    EXPECT_FALSE(bench.chip.backdoor_read({0x1000}, bytes));
    EXPECT_FALSE(bench.chip.backdoor_write({0x1000}, bytes));
    for (const std::uint64_t address : {region::hbm, region::spm, region::acc}) {
        ASSERT_TRUE(bench.chip.read_memory({address}, bytes));
        EXPECT_GT(std::set<std::byte>(bytes.begin(), bytes.end()).size(), 50u) << std::hex << address;
    }
    const auto before = bytes;
    bench.reset(2);
    ASSERT_TRUE(bench.chip.read_memory({region::acc}, bytes));
    EXPECT_NE(bytes, before) << "contents after a reset are not those before";
    put_tiled_operands(bench, 4);
    EXPECT_EQ(bench.run(tiled_program(4)).status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 4 * 128), tiled_expected(4));
}

TEST(Timing, ALongLoadReachesTheBandwidthOfItsNarrowestPart) {
    simkernel::ChipConfig config = p::nano();
    config.dma_outstanding = 32;  // enough to cover the round trip
    Bench bench(config);
    const std::uint32_t bytes = 0x8000;
    const auto record = bench.run({p::load(0x10000, 0, bytes)});
    // 16 bytes a cycle, both of the HBM channel and of the NoC port; a little is start and end.
    EXPECT_GE(bench.cycles(record), bytes / 16u);
    EXPECT_LE(bench.cycles(record), bytes / 16u + 400u);
}

TEST(Hbm, OpenRowsClosedRowsAndTheBusByHand) {
    simkernel::ChipConfig config = p::nano();  // one channel, 16 banks, rows of 1024 bytes, 16 bytes a cycle, all timings 14
    HbmController hbm("hbm", config);
    EXPECT_EQ(hbm.serve(0, 64, {100}).count, 100u + 14 + 14 + 4) << "closed bank: activate, column, 4 beats";
    EXPECT_EQ(hbm.serve(64, 64, {1000}).count, 1000u + 14 + 4) << "open row";
    EXPECT_EQ(hbm.serve(16 * 1024, 64, {2000}).count, 2000u + 14 + 14 + 14 + 4) << "another row of bank 0: precharge first";
    EXPECT_EQ(hbm.serve(1024, 64, {3000}).count, 3000u + 14 + 14 + 4) << "bank 1 was closed";
    EXPECT_EQ(hbm.serve(16 * 1024, 64, {3000}).count, 3000u + 14 + 14 + 4 + 4) << "its data waits for the bus, not for its own row";
    EXPECT_EQ(hbm.serve(16 * 1024 + 64, 128, {5000}).count, 5000u + 14 + 8);
    EXPECT_EQ(hbm.serve(16 * 1024 + 192, 64, {5000}).count, 5000u + 14 + 8 + 4) << "row hits stream";
    hbm.reset();
    EXPECT_EQ(hbm.serve(0, 64, {9000}).count, 9000u + 14 + 14 + 4);
}

TEST(Hbm, ChannelsServeTheirStripesAtOnce) {
    simkernel::ChipConfig config = p::nano();
    config.hbm_channels = 4;  // stripes of 256 bytes
    HbmController hbm("hbm", config);
    EXPECT_EQ(hbm.serve(0, 1024, {0}).count, 14u + 14 + 16) << "four stripes side by side";
    EXPECT_EQ(hbm.serve(1024, 256, {100}).count, 100u + 14 + 16) << "channel 0 again, same row";
}

TEST(VpuTiming, CountsVectorsSlotsAndTheTree) {
    simkernel::VectorFields f;
    f.count = {20, 3, 1, 1, 1};
    f.pre_count = 2;
    f.uop[0] = simkernel::encode_uop(simkernel::Uop::mul_f32, 0, 0);
    f.uop[1] = simkernel::encode_uop(simkernel::Uop::div_f32, 0, 0);
    EXPECT_EQ(vector_cycles(f, 8).count, 3u * 3 * (1 + 12) + 8) << "20 elements are 3 vectors of 8 lanes, 3 rows";
    f.reduce = static_cast<std::uint32_t>(simkernel::Reduce::add_f32);
    f.reduce_lanes = 1;
    EXPECT_EQ(vector_cycles(f, 8).count, 3u * 3 * 13 + 3 * (1 + 2 * 3) + 8) << "and 3 results through a tree of 3 levels";
    f.count = {~0u, ~0u, ~0u, ~0u, ~0u};
    EXPECT_EQ(vector_cycles(f, 8).count, std::uint64_t{1} << 62) << "absurd extents saturate";
}

}  // namespace
}  // namespace assay::chip::testing
