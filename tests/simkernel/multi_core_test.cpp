// Programs of several cores: their meaning, legality and races, by hand-written streams.
#include <gtest/gtest.h>

#include "simkernel/exec/core_streams.hpp"
#include "simkernel/exec/interpreter.hpp"
#include "simkernel/exec/legality.hpp"
#include "simkernel/exec/sanitizer.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel {
namespace {

using namespace testing;

ChipConfig two_cores() {
    ChipConfig chip = nano();
    chip.cores = 2;
    return chip;
}

/// Core 0 copies 64 bytes from 0x1000 to 0x2000, core 1 from there to 0x3000.
std::vector<DescriptorWords> relay() {
    std::vector<DescriptorWords> program{load(0x1000, 0, 64), store(0x2000, 0, 64), load(0x2000, 0, 64), store(0x3000, 0, 64)};
    add_signal(program[0], 0);
    add_waits(program[1], {{0, 1}});
    add_signal(program[1], 5);
    share_signal(program[1]);
    for (std::size_t i : {2u, 3u}) set_core(program[i], 1);
    add_waits(program[2], {{5, 1}});
    share_wait(program[2], 0);
    add_signal(program[2], 0);  // semaphore 0 of core 1, not of core 0
    add_waits(program[3], {{0, 1}});
    return program;
}

std::vector<std::byte> bytes_64() {
    std::vector<std::byte> bytes(64);
    for (std::size_t i = 0; i < 64; ++i) bytes[i] = static_cast<std::byte>(7 * i + 1);
    return bytes;
}

TEST(MultiCore, ARelayThroughDeviceMemoryIsLegalAndMovesItsBytes) {
    const ChipConfig chip = two_cores();
    ASSERT_TRUE(check_program(relay(), chip).empty());
    SparseMemory memory(1 << 20);
    ASSERT_TRUE(memory.write(0x1000, bytes_64()));
    HbmOnly hbm(memory);
    Interpreter interpreter(chip, hbm);
    EXPECT_EQ(interpreter.run(relay()).status, JobStatus::done);
    std::vector<std::byte> got(64);
    ASSERT_TRUE(memory.read(0x3000, got));
    EXPECT_EQ(got, bytes_64());
    EXPECT_EQ(interpreter.semaphores(SemaphoreId::kShared)[5], 1u);
    EXPECT_EQ(interpreter.semaphores(1)[0], 1u);
    EXPECT_EQ(interpreter.semaphores(1)[5], 0u);
}

TEST(MultiCore, ScratchpadsAreEachCoresOwn) {
    const ChipConfig chip = two_cores();
    std::vector<DescriptorWords> program{load(0x1000, 0, 64), store(0x3000, 0, 64)};
    set_core(program[1], 1);
    SparseMemory memory(1 << 20);
    ASSERT_TRUE(memory.write(0x1000, bytes_64()));
    ASSERT_TRUE(memory.write(0x3000, bytes_64()));
    HbmOnly hbm(memory);
    Interpreter interpreter(chip, hbm);
    ASSERT_EQ(interpreter.run(program).status, JobStatus::done);
    std::vector<std::byte> got(64);
    ASSERT_TRUE(memory.read(0x3000, got));
    EXPECT_EQ(got, std::vector<std::byte>(64)) << "core 1 stored core 0's scratchpad";
}

TEST(MultiCore, WhatIsNotLegalIsNamedWithItsCore) {
    const ChipConfig chip = two_cores();
    const auto only_problem = [&](const std::vector<DescriptorWords>& program) {
        const auto problems = check_program(program, chip);
        EXPECT_EQ(problems.size(), 1u);
        return problems.empty() ? std::string() : problems[0].text;
    };
    auto program = relay();
    std::swap(program[1], program[2]);
    EXPECT_EQ(only_problem(program), "waits for shared semaphore 5 >= 1, but earlier descriptors bring it to 0 only");

    program = relay();
    add_waits(program[2], {{5, 1}});
    unshare_wait(program[2], 0);  // core 1's own semaphore 5, which nobody signals
    EXPECT_EQ(only_problem(program), "waits for semaphore 5 of core 1 >= 1, but earlier descriptors bring it to 0 only");

    program = relay();
    add_signal(program[3], 5);
    share_signal(program[3]);
    EXPECT_EQ(only_problem(program), "shared semaphore 5 is signalled by engine core 0 store and by engine core 1 store");

    program = relay();
    set_core(program[3], 2);
    EXPECT_EQ(only_problem(program), "core = 2: must be less than cores = 2");
}

std::vector<Finding> findings(const std::vector<DescriptorWords>& program) {
    const ChipConfig chip = two_cores();
    Sanitizer sanitizer(chip);
    sanitizer.host_wrote(0x1000, 64);
    for (std::uint32_t i = 0; i < program.size(); ++i) {
        Decoded decoded;
        EXPECT_FALSE(decode(program[i], chip, decoded));
        sanitizer.dispatched(decoded.common.core, i, decoded);
    }
    return sanitizer.findings();
}

TEST(MultiCore, TheRelayHasNoRaceAndWithoutItsSharedWaitIsOne) {
    EXPECT_TRUE(findings(relay()).empty());
    auto program = relay();
    add_waits(program[2], {{5, 0}});
    const auto found = findings(program);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, FindingKind::race);
    EXPECT_EQ(found[0].descriptor, 2u);
    EXPECT_EQ(found[0].other, 1u);
    EXPECT_EQ(found[0].address, 0x2000u);
    EXPECT_NE(found[0].text.find("a wait on engine core 0 store is missing"), std::string::npos) << found[0].text;
}

TEST(MultiCore, AWriteUnorderedAfterAnotherCoresReadIsARace) {
    auto program = relay();
    // Core 0 writes what core 1 reads, after it in the stream and ordered by nothing.
    program.push_back(store(0x2000, 0, 64));
    const auto found = findings(program);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].descriptor, 4u);
    EXPECT_EQ(found[0].other, 2u);
    EXPECT_NE(found[0].text.find("core 1 load"), std::string::npos) << found[0].text;
}

TEST(MultiCore, OrderThroughASyncOfAThirdEngineCounts) {
    auto program = relay();
    // Core 1's load waits for a sync of its own collective engine, which waits for core 0.
    DescriptorWords sync{};
    sync[0] = static_cast<std::uint32_t>(Opcode::sync);
    set_core(sync, 1);
    add_waits(sync, {{5, 1}});
    share_wait(sync, 0);
    add_signal(sync, 9);
    add_waits(program[2], {{9, 1}});
    unshare_wait(program[2], 0);
    program.insert(program.begin() + 2, sync);
    EXPECT_TRUE(check_program(program, two_cores()).empty());
    EXPECT_TRUE(findings(program).empty());
}

/// Notes what it is told.
struct Log final : JobHooks {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> seen, retirements;
    void dispatched(std::uint32_t core, std::uint32_t index, const Decoded&) override { seen.emplace_back(core, index); }
    void retired(std::uint32_t core, std::uint32_t index, ExternalMemory&) override { retirements.emplace_back(core, index); }
    bool drops_signal(std::uint32_t, std::uint32_t index) override { return index == 3; }
};

TEST(MultiCore, StreamHooksPutDispatchesInStreamOrderWhateverTheCoresOrder) {
    const auto program = relay();
    const CoreStreams streams(program);
    ASSERT_EQ(streams.cores(), 2u);
    EXPECT_EQ(streams.of(1), (std::vector<std::uint32_t>{2, 3}));
    EXPECT_EQ(streams.before(1, 3), 1u);
    EXPECT_EQ(streams.before(0, 3), 2u);
    const std::vector<std::pair<std::uint32_t, std::uint32_t>> in_order{{0, 0}, {0, 1}, {1, 2}, {1, 3}};
    int orders = 0;
    // Every interleaving that keeps each core's order: where core 0's two stand among the four.
    for (int a = 0; a < 4; ++a)
        for (int b = a + 1; b < 4; ++b, ++orders) {
            Log log;
            StreamHooks hooks(streams, log);
            std::array<std::uint32_t, 2> next{};
            for (int i = 0; i < 4; ++i) {
                const std::uint32_t core = i == a || i == b ? 0 : 1;
                const std::uint32_t local = next[core]++;
                Decoded decoded;
                ASSERT_FALSE(decode(program[streams.of(core)[local]], two_cores(), decoded));
                hooks.dispatched(core, local, decoded);
            }
            EXPECT_EQ(log.seen, in_order) << a << ' ' << b;
            EXPECT_TRUE(hooks.drops_signal(1, 1));
            EXPECT_FALSE(hooks.drops_signal(0, 1));
        }
    EXPECT_EQ(orders, 6);
}

}  // namespace
}  // namespace assay::simkernel
