#include <gtest/gtest.h>

#include <random>

#include "support/error.hpp"
#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {
namespace {

namespace p = simkernel::testing;
using simkernel::Counter;

/// The record, the registers and recovery by `reset_kind` of one failing job.
void expect_failure(Bench& bench, const Program& program, ErrorCode code, std::uint32_t engine, std::uint32_t descriptor, std::uint64_t address,
                    const Job& job = {}, std::uint32_t reset_kind = 1) {
    const auto record = bench.run(program, job);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::failed));
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(code)) << name_of(static_cast<ErrorCode>(record.error_code));
    EXPECT_EQ(record.engine, engine);
    EXPECT_EQ(record.descriptor, descriptor);
    EXPECT_EQ(bench.chip.read_register(reg::error_code), static_cast<std::uint32_t>(code));
    EXPECT_EQ(bench.chip.read_register(reg::error_engine), engine);
    EXPECT_EQ(bench.chip.read_register(reg::error_descriptor), descriptor);
    EXPECT_EQ(bench.chip.read_register(reg::error_address_lo) | std::uint64_t{bench.chip.read_register(reg::error_address_hi)} << 32, address);
    std::uint64_t balance = 0;
    for (const Counter c : {Counter::busy, Counter::stall_semaphore, Counter::stall_memory, Counter::idle}) balance += bench.counter(Engine::load, c);
    EXPECT_EQ(balance, bench.cycles(record));
    bench.reset(reset_kind);
    EXPECT_EQ(bench.chip.read_register(reg::error_code), 0u);
    put_gemm_operands(bench, 4, 8, 8);
    EXPECT_EQ(bench.run(p::gemm_program(4, 8, 8)).status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.get_values<std::int32_t>(0x3000, 32), gemm_expected(4, 8, 8));
}

TEST(ChipError, ReservedBitIsMalformed) {
    Bench bench;
    Program program = p::gemm_program(4, 8, 8);
    program[3][63] = 0;
    program[3][9] |= 1u << 31;
    expect_failure(bench, program, ErrorCode::malformed_descriptor, static_cast<std::uint32_t>(Engine::vector), 3, 0);
}

TEST(ChipError, UnknownOpcodeIsOfNoEngine) {
    Bench bench;
    Program program = p::gemm_program(4, 8, 8);
    program[2] = {};
    program[2][0] = 0x77;
    expect_failure(bench, program, ErrorCode::malformed_descriptor, 0xFF, 2, 0, {}, 2);
}

TEST(ChipError, LocalAddressOutOfRangeNamesIt) {
    Bench bench;
    Program program = p::gemm_program(4, 8, 8);
    program[1] = p::load(0x2000, 0xFFF0, 64);
    expect_failure(bench, program, ErrorCode::illegal_address, static_cast<std::uint32_t>(Engine::load), 1, 0xFFF0);
}

TEST(ChipError, LoadFromNowhereNamesTheDeviceAddress) {
    Bench bench;
    Program program = p::gemm_program(4, 8, 8);
    program[1] = p::load(region::acc, 0x4000, 64);
    expect_failure(bench, program, ErrorCode::illegal_address, static_cast<std::uint32_t>(Engine::load), 1, region::acc);
}

TEST(ChipError, ProgramOutsideMemoryNamesTheDescriptorThatIs) {
    Bench bench;
    const Program program = tiled_program(2);
    const auto end = static_cast<std::uint64_t>(bench.config.hbm_bytes);
    bench.load_program({program.begin(), program.begin() + 3}, end - 3 * 256);
    bench.ring(program, {.program = end - 3 * 256});
    const auto record = bench.finish();
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::bus_error));
    EXPECT_EQ(record.descriptor, 3u);
    EXPECT_EQ(bench.chip.read_register(reg::error_address_lo), end);
}

TEST(ChipError, MisalignedProgramIsRefused) {
    Bench bench;
    expect_failure(bench, p::gemm_program(4, 8, 8), ErrorCode::misaligned, 0xFF, 0, kProgramAddress + 4, {.program = kProgramAddress + 4});
}

TEST(ChipError, SemaphoreOverflowLeavesTheValueAndStops) {
    Bench bench;
    Program program(2);
    for (auto& nop : program) p::add_signal(nop, 5, 0xFFFF);
    const std::uint32_t nearly = 0xFFFF'FFFFu - 0xFFFF - 10;
    ASSERT_TRUE(bench.chip.write_memory({region::semaphores + 20}, std::as_bytes(std::span(&nearly, 1))));
    Program padded(1);  // a start that is not zero keeps the values
    padded.insert(padded.end(), program.begin(), program.end());
    bench.load_program(padded);
    bench.ring(padded, {.start = 1});
    const auto record = bench.finish();
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::semaphore_overflow));
    EXPECT_EQ(record.descriptor, 2u);
    std::uint32_t value = 0;
    ASSERT_TRUE(bench.chip.read_memory({region::semaphores + 20}, std::as_writable_bytes(std::span(&value, 1))));
    EXPECT_EQ(value, nearly + 0xFFFF);
}

TEST(ChipError, DeadlockIsFoundAtOnceWithItsWaitGraph) {
    Bench bench;
    Program program = p::gemm_program(4, 8, 8);
    p::add_waits(program[2], {{0, 1}, {7, 3}});
    const auto record = bench.run(program);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::failed));
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::deadlock));
    EXPECT_EQ(record.engine, static_cast<std::uint32_t>(Engine::store)) << "the lowest engine that waits";
    EXPECT_EQ(record.descriptor, 4u);
    EXPECT_LT(bench.cycles(record), 5000u) << "long before the watchdog";
    const std::string graph = bench.chip.wait_graph();
    EXPECT_NE(graph.find("store: descriptor 4 awaits semaphore 3 >= 1 (is 0)"), std::string::npos) << graph;
    EXPECT_NE(graph.find("matrix: descriptor 2 awaits semaphore 7 >= 3 (is 0)"), std::string::npos) << graph;
    EXPECT_NE(graph.find("vector: descriptor 3 awaits semaphore 2 >= 1 (is 0)"), std::string::npos) << graph;
    bench.reset(1);
    EXPECT_EQ(bench.chip.wait_graph(), "");
}

TEST(ChipError, DeadlockBehindAFullQueueNamesTheQueue) {
    Bench bench;
    Program program(20, DescriptorWords{});
    for (auto& nop : program) p::add_waits(nop, {{9, 1}});
    const auto record = bench.run(program);
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::deadlock));
    EXPECT_EQ(record.descriptor, 0u);
    EXPECT_NE(bench.chip.wait_graph().find("command processor: descriptor 4 awaits room in the queue of vector"), std::string::npos)
        << bench.chip.wait_graph();
}

/// Takes a descriptor and never retires it: the watchdog's business.
class HangingUnit final : public Unit {
public:
    bool offer(std::uint32_t, const simkernel::Decoded&, const DescriptorWords&, Cycles) override { return true; }
    Advance advance(Cycles limit) override { return {limit, UnitState::running, 0, {}, {}, false}; }
    void reset() override {}
    std::string_view implementation() const override { return "hanging"; }
};

TEST(ChipError, WatchdogEndsAUnitThatNeverRetires) {
    ChipOptions options;
    options.units[{0, Engine::matrix}] = [](UnitPorts&) { return std::make_unique<HangingUnit>(); };
    Bench bench(p::nano(), std::move(options));
    EXPECT_EQ(bench.chip.unit_implementation(0, Engine::matrix), "hanging");
    bench.chip.write_register(reg::watchdog_cycles, 20'000);
    const auto record = bench.run(p::gemm_program(4, 8, 8));
    EXPECT_EQ(record.error_code, static_cast<std::uint32_t>(ErrorCode::watchdog));
    EXPECT_EQ(record.descriptor, 2u) << "the running descriptor, of the lowest engine that has one";
    EXPECT_GE(bench.cycles(record), 20'000u);
    EXPECT_LE(bench.cycles(record), 25'000u);
    bench.chip.write_register(reg::watchdog_cycles, 0);
    bench.load_program(p::gemm_program(4, 8, 8));
    bench.ring(p::gemm_program(4, 8, 8));
    EXPECT_EQ(bench.chip.advance({1'000'000}).count, 1'000'000u) << "turned off, nothing ends it";
    bench.reset(1);
    EXPECT_EQ(bench.run({}).status, static_cast<std::uint32_t>(JobStatus::done));
}

class ThrowingUnit final : public Unit {
public:
    bool offer(std::uint32_t, const simkernel::Decoded&, const DescriptorWords&, Cycles) override { throw std::runtime_error("unit broke"); }
    Advance advance(Cycles) override { return {}; }
    void reset() override {}
    std::string_view implementation() const override { return "throwing"; }
};

TEST(ChipError, AnExceptionInAProcessReachesTheCallerAndAResetRecovers) {
    ChipOptions options;
    options.units[{0, Engine::matrix}] = [](UnitPorts&) { return std::make_unique<ThrowingUnit>(); };
    Bench bench(p::nano(), std::move(options));
    bench.load_program(p::gemm_program(4, 8, 8));
    bench.ring(p::gemm_program(4, 8, 8));
    EXPECT_THROW((void)bench.chip.advance({100'000}), std::runtime_error);
    bench.reset(2);
    EXPECT_EQ(bench.run({}).status, static_cast<std::uint32_t>(JobStatus::done));
}

TEST(ChipError, CompletionRecordOutsideMemoryStillCompletesInTheRegisters) {
    Bench bench;
    bench.load_program({});
    bench.ring({}, {.completion = region::acc});
    (void)bench.chip.advance({100'000});
    EXPECT_EQ(bench.chip.read_register(reg::completed_sequence), 1u);
    EXPECT_EQ(bench.chip.read_register(reg::error_code), static_cast<std::uint32_t>(ErrorCode::bus_error));
}

TEST(ChipError, SecondChipOfAProcessIsRefusedWithAReason) {
    Bench bench;
    EXPECT_THROW(Chip(p::nano(), {}), Error);
}

/// Descriptors of random bits, and legal ones with bits flipped: every job ends, and the chip works afterwards.
TEST(ChipError, MalformedDescriptorsNeverCrash) {
    Bench bench;
    bench.chip.write_register(reg::watchdog_cycles, 1'000'000);
    std::mt19937_64 random(20261130);
    const Program legal = tiled_program(3);
    put_tiled_operands(bench, 3);
    std::map<std::uint32_t, int> statuses;
    for (int round = 0; round < 600; ++round) {
        Program program = legal;
        if (round % 4 == 0)
            for (auto& word : program[random() % program.size()]) word = static_cast<std::uint32_t>(random());
        for (int flips = static_cast<int>(random() % 3) + 1; flips > 0; --flips) {
            // Past the addresses come extents and strides: high bits of extents are legal programs of minutes, which is not this test.
            const std::size_t word = random() % simkernel::kDescriptorWords;
            program[random() % program.size()][word] ^= 1u << random() % (word < 13 ? 32 : 10);
        }
        const auto record = bench.run(program);
        ++statuses[record.status];
        ASSERT_GE(record.status, 1u) << "round " << round;
        ASSERT_LE(record.status, 3u) << "round " << round;
        if (record.status == static_cast<std::uint32_t>(JobStatus::failed)) bench.reset(1);
    }
    EXPECT_GT(statuses[static_cast<std::uint32_t>(JobStatus::failed)], 100);
    EXPECT_GT(statuses[static_cast<std::uint32_t>(JobStatus::done)], 10);
    put_tiled_operands(bench, 3);
    EXPECT_EQ(bench.run(legal).status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(bench.get_values<std::int32_t>(0x40000, 3 * 128), tiled_expected(3));
}

}  // namespace
}  // namespace assay::chip::testing
