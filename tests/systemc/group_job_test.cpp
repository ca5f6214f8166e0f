// Jobs of several cores on the SystemC chip: hand-written streams, dealt out as the runtime does.
#include <gtest/gtest.h>

#include "simkernel/exec/core_streams.hpp"
#include "simkernel/exec/legality.hpp"
#include "simkernel/exec/sanitizer.hpp"
#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {
namespace {

namespace p = simkernel::testing;
using simkernel::CoreStreams;
using simkernel::Counter;

simkernel::ChipConfig chip_of(std::int64_t cores) {
    simkernel::ChipConfig config = p::nano();
    config.cores = cores;
    return config;
}

std::uint64_t program_at(std::uint32_t core) { return kProgramAddress + core * 0x10000; }

/// Rings one job of every core that the stream names; descriptors up to stream index `last`.
void ring(Bench& bench, const Program& stream, std::uint32_t first = 0, std::uint32_t last = UINT32_MAX) {
    const CoreStreams streams(stream);
    for (std::uint32_t core = streams.cores(); core-- > 0;) {
        Program own;
        for (const std::uint32_t i : streams.of(core)) own.push_back(stream[i]);
        bench.load_program(own, program_at(core));
        const std::uint32_t end = streams.before(core, last);
        bench.chip.write_register(reg::core_select, core);
        bench.chip.write_register(reg::program_lo, static_cast<std::uint32_t>(program_at(core)));
        bench.chip.write_register(reg::completion_lo, static_cast<std::uint32_t>(kCompletionAddress));
        bench.chip.write_register(reg::program_count, end == 0 ? 0 : static_cast<std::uint32_t>(own.size()));
        bench.chip.write_register(reg::program_start, streams.before(core, first));
        bench.chip.write_register(reg::stop_after, end == own.size() || end == 0 ? UINT32_MAX : end - 1);
    }
    bench.chip.write_register(reg::job_cores_lo, (1u << streams.cores()) - 1);
    bench.chip.write_register(reg::job_doorbell, first == 0 ? 0 : 1);
}

simkernel::CompletionRecord run(Bench& bench, const Program& stream) {
    ring(bench, stream);
    return bench.finish();
}

/// `cores` cores hand 256 bytes on in turn, `laps` times round: each loads what the one before stored, and stores it one place on.
Program relay(std::uint32_t cores, std::uint32_t laps) {
    Program stream;
    for (std::uint32_t leg = 0; leg < cores * laps; ++leg) {
        const std::uint32_t core = leg % cores, lap = leg / cores;
        DescriptorWords in = p::load(0x1000 + leg * 0x100, 0, 256), out = p::store(0x1100 + leg * 0x100, 0, 256);
        if (leg > 0) {
            p::add_waits(in, {{(leg - 1) % cores, (leg - 1) / cores + 1}});
            p::share_wait(in, 0);
        }
        p::add_signal(in, 0);
        p::add_waits(out, {{0, lap + 1}});
        p::add_signal(out, core);
        p::share_signal(out);
        p::set_core(in, core);
        p::set_core(out, core);
        stream.push_back(in);
        stream.push_back(out);
    }
    return stream;
}

TEST(GroupJob, ARelayRoundFourCoresArrivesAndEveryLegPaysTheNoc) {
    Bench bench(chip_of(4));
    const auto bytes = pattern(256, 9);
    bench.put_values(0x1000, bytes);
    const Program stream = relay(4, 3);
    ASSERT_TRUE(simkernel::check_program(stream, bench.config).empty());
    const auto record = run(bench, stream);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.get_values<std::int8_t>(0x1000 + 12 * 0x100, 256), bytes);
    // Shared semaphores are seen by the host when the job is over.
    EXPECT_EQ(bench.get_values<std::uint32_t>(region::shared_semaphores, 4), std::vector<std::uint32_t>(4, 3));
    // The same legs on one core, with its own semaphores: only the hops of eleven shared signals are less.
    const std::uint64_t round = bench.cycles(record);
    for (std::uint32_t core = 0; core < 4; ++core) {
        bench.chip.write_register(reg::core_select, core);
        EXPECT_EQ(bench.chip.read_register(reg::completed_sequence), 1u) << core;
        for (const Engine engine : simkernel::kAllEngine) {
            std::uint64_t sum = 0;
            for (const Counter c : {Counter::busy, Counter::stall_memory, Counter::stall_semaphore, Counter::idle}) sum += bench.counter(engine, c);
            EXPECT_EQ(sum, round) << "accounts of core " << core << " balance";
        }
        EXPECT_EQ(bench.counter(Engine::load, Counter::retired), 3u);
    }
    EXPECT_EQ(bench.chip.read_register(reg::interrupt_status), 1u);
    const auto again = run(bench, stream);
    EXPECT_EQ(bench.cycles(again), round) << "a job's cycles do not depend on the one before";
}

TEST(GroupJob, ASharedSignalIsSeenANocHopLater) {
    std::vector<std::uint64_t> cycles;
    for (const std::int64_t latency : {0, 50}) {
        const auto got = in_child([&] {
            simkernel::ChipConfig config = chip_of(2);
            config.noc_latency_cycles = latency;
            Bench bench(config);
            // A fill, which knows no NoC, long enough for the other core to wait for it.
            simkernel::FillFields f;
            f.run_bytes = 32768;
            f.count = {1, 1, 1, 1};
            f.pattern_bytes = 4;
            DescriptorWords first = p::descriptor(simkernel::Opcode::fill, f), second{};
            second[0] = static_cast<std::uint32_t>(simkernel::Opcode::sync);
            p::add_signal(first, 7);
            p::share_signal(first);
            p::add_waits(second, {{7, 1}});
            p::share_wait(second, 0);
            p::set_core(second, 1);
            ring(bench, {first, second});
            const auto record = bench.finish();
            bench.chip.write_register(reg::core_select, 1);
            return std::vector<std::uint64_t>{record.status, bench.counter(Engine::collective, Counter::stall_semaphore)};
        });
        ASSERT_EQ(got.size(), 2u);
        EXPECT_EQ(got[0], static_cast<std::uint64_t>(JobStatus::done));
        cycles.push_back(got[1]);
    }
    EXPECT_EQ(cycles[1] - cycles[0], 50u);
}

TEST(GroupJob, QuantumAndJitterNeverChangeValuesAndQuantumNeverCycles) {
    std::vector<std::vector<std::uint64_t>> results;
    for (const auto& [quantum, jitter] : {std::pair{1000u, false}, {1u, false}, {10'000u, false}, {1000u, true}}) {
        results.push_back(in_child([&] {
            ChipOptions options;
            options.quantum_cycles = quantum;
            options.jitter = jitter;
            options.seed = 5;
            Bench bench(chip_of(3), options);
            bench.put_values(0x1000, pattern(256, 4));
            const auto record = run(bench, relay(3, 4));
            return std::vector<std::uint64_t>{bench.cycles(record), record.status, digest(bench.get(0x1000, 13 * 0x100))};
        }));
        ASSERT_EQ(results.back().size(), 3u);
    }
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
    EXPECT_NE(results[3][0], results[0][0]);
    EXPECT_EQ(results[3][2], results[0][2]);
}

TEST(GroupJob, StoppedAtEveryDescriptorAndResumedLeavesTheSameBytes) {
    Bench bench(chip_of(3));
    const Program stream = relay(3, 2);
    const auto bytes = pattern(256, 2);
    int checked = 0;
    for (std::uint32_t stop = 1; stop < stream.size(); ++stop, ++checked) {
        bench.put(0x1000, std::vector<std::byte>(7 * 0x100));
        bench.put_values(0x1000, bytes);
        ring(bench, stream, 0, stop);
        ASSERT_EQ(bench.finish().status, static_cast<std::uint32_t>(JobStatus::stopped)) << stop;
        ring(bench, stream, stop, static_cast<std::uint32_t>(stream.size()));
        ASSERT_EQ(bench.finish().status, static_cast<std::uint32_t>(JobStatus::done)) << stop;
        ASSERT_EQ(bench.get_values<std::int8_t>(0x1600, 256), bytes) << stop;
    }
    EXPECT_EQ(checked, 11);
}

TEST(GroupJob, ADeadlockOverTwoCoresIsFoundAtOnceWithItsGraph) {
    Bench bench(chip_of(2));
    Program stream = relay(2, 1);
    p::add_signal(stream[1], 0, 0);  // core 0's store signals nobody
    const auto record = run(bench, stream);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::failed));
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::deadlock));
    EXPECT_EQ(record.core, 1u);
    EXPECT_EQ(record.engine, static_cast<std::uint32_t>(Engine::load));
    EXPECT_EQ(record.descriptor, 0u);
    EXPECT_NE(bench.chip.wait_graph().find("core 1 load: descriptor 0 awaits shared semaphore 0 >= 1 (is 0)"), std::string::npos) << bench.chip.wait_graph();
    EXPECT_LT(bench.cycles(record), 2000u);
    EXPECT_EQ(bench.chip.read_register(reg::error_core), 1u);
    bench.put_values(0x1000, pattern(256, 3));
    EXPECT_EQ(run(bench, relay(2, 1)).status, static_cast<std::uint32_t>(JobStatus::done)) << "a failed job leaves the chip able";
}

TEST(GroupJob, AnErrorOnOneCoreStopsTheOthersAndNamesItsCore) {
    Bench bench(chip_of(3));
    Program stream = relay(3, 3);
    const CoreStreams streams(stream);
    const std::uint32_t bad = streams.of(2)[2];  // core 2's second load
    stream[bad] = p::load(static_cast<std::uint64_t>(bench.config.hbm_bytes), 0, 256);
    p::set_core(stream[bad], 2);
    const auto record = run(bench, stream);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::failed));
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::illegal_address));
    EXPECT_EQ(record.core, 2u);
    EXPECT_EQ(record.descriptor, 2u) << "counted in the core's own program";
    for (std::uint32_t core = 0; core < 3; ++core) {
        bench.chip.write_register(reg::core_select, core);
        EXPECT_EQ(bench.chip.read_register(reg::completed_sequence), bench.chip.read_register(reg::last_sequence)) << core;
        EXPECT_EQ(bench.chip.read_register(reg::error_core), 2u) << core;
    }
}

TEST(GroupJob, ResettingOneCoreInMidJobDropsItOnAllAndTheNextRunsAsFresh) {
    Bench bench(chip_of(3));
    const Program stream = relay(3, 3);
    bench.put_values(0x1000, pattern(256, 1));
    const std::uint64_t fresh = bench.cycles(run(bench, stream));
    for (const std::uint64_t at : {1u, 40u, 333u, 900u}) {
        ring(bench, stream);
        (void)bench.chip.advance({at});
        bench.chip.write_register(reg::core_select, 1);
        bench.reset(1);
        for (std::uint32_t core = 0; core < 3; ++core) {
            bench.chip.write_register(reg::core_select, core);
            ASSERT_EQ(bench.chip.read_register(reg::last_sequence), 0u) << core;
        }
        bench.put(0x1100, std::vector<std::byte>(9 * 0x100));
        const auto record = run(bench, stream);
        EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done)) << at;
        EXPECT_EQ(bench.cycles(record), fresh) << at;
        EXPECT_EQ(bench.get_values<std::int8_t>(0x1000 + 9 * 0x100, 256), pattern(256, 1)) << at;
    }
}

TEST(GroupJob, TheWatchdogOfTheLowestCoreGuardsAllAndCountsEveryRetirement) {
    Bench bench(chip_of(2));
    bench.put_values(0x1000, pattern(256, 1));
    const Program stream = relay(2, 6);
    const std::uint64_t whole = bench.cycles(run(bench, stream));
    bench.chip.write_register(reg::core_select, 0);
    bench.chip.write_register(reg::watchdog_cycles, static_cast<std::uint32_t>(whole / 4));
    EXPECT_EQ(run(bench, stream).status, static_cast<std::uint32_t>(JobStatus::done)) << "some core retires often enough";
    bench.chip.write_register(reg::core_select, 0);
    bench.chip.write_register(reg::watchdog_cycles, 30);
    const auto record = run(bench, stream);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::failed));
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::watchdog));
}

TEST(GroupJob, ADoorbellForCoresThatAreNotThereIsCountedAndIgnored) {
    Bench bench(chip_of(2));
    for (const std::uint32_t mask : {0u, 4u, 5u}) {
        const std::uint32_t before = bench.chip.read_register(reg::bus_error_count);
        bench.chip.write_register(reg::job_cores_lo, mask);
        bench.chip.write_register(reg::job_doorbell, 0);
        EXPECT_EQ(bench.chip.read_register(reg::bus_error_count), before + 1) << mask;
        EXPECT_EQ(bench.chip.read_register(reg::last_sequence), 0u) << mask;
    }
}

TEST(GroupJob, TheSanitizersReportIsTheSameUnderAnyTiming) {
    Program racy = relay(3, 2);
    p::add_waits(racy[4], {{1, 0}});  // core 2's first load does not wait for core 1's store
    std::vector<std::vector<std::uint64_t>> reports;
    for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        reports.push_back(in_child([&] {
            ChipOptions options;
            options.jitter = seed != 0;
            options.seed = seed;
            Bench bench(chip_of(3), options);
            bench.put_values(0x1000, pattern(256, 1));
            simkernel::Sanitizer sanitizer(bench.config);
            sanitizer.host_wrote(0x1000, 256);
            const CoreStreams streams(racy);
            simkernel::StreamHooks hooks(streams, sanitizer);
            bench.chip.set_hooks(&hooks);
            (void)run(bench, racy);
            std::vector<std::uint64_t> report;
            for (const simkernel::Finding& f : sanitizer.findings())
                for (const std::uint64_t value : {static_cast<std::uint64_t>(f.kind), std::uint64_t{f.descriptor}, std::uint64_t{f.other}, f.address}) report.push_back(value);
            return report;
        }));
        // Kind, descriptor, other, address: what core 1 stored, and the scratchpads of the legs that then follow nothing.
        EXPECT_EQ(reports.back(), (std::vector<std::uint64_t>{0, 4, 3, 0x1200, 0, 6, 1, 0, 0, 8, 3, 0})) << "seed " << seed;
    }
}

}  // namespace
}  // namespace assay::chip::testing
