#include "simkernel/exec/interpreter.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "simkernel/exec/legality.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel {
namespace {

using namespace testing;

struct Machine {
    ChipConfig chip = nano();
    SparseMemory hbm{static_cast<std::uint64_t>(chip.hbm_bytes)};
    HbmOnly external{hbm};
    Interpreter interpreter{chip, external};
    void put(std::uint64_t addr, const std::vector<std::int8_t>& bytes) { ASSERT_TRUE(hbm.write(addr, std::as_bytes(std::span(bytes)))); }
};

std::vector<std::int8_t> random_bytes(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::int8_t> bytes(count);
    for (std::int8_t& byte : bytes) byte = static_cast<std::int8_t>(random());
    return bytes;
}

TEST(Interpreter, GemmProgramLeavesTheProductInHbm) {
    for (const std::uint32_t m : {1u, 3u, 16u})
        for (const std::uint32_t k : {1u, 5u, 8u})
            for (const std::uint32_t n : {1u, 4u, 8u}) {
                Machine machine;
                const auto a = random_bytes(m * k, m), w = random_bytes(k * n, n);
                machine.put(0x1000, a);
                machine.put(0x2000, w);
                const auto program = gemm_program(m, k, n);
                const JobResult result = machine.interpreter.run(program);
                ASSERT_EQ(result.status, JobStatus::done) << result.text;
                std::vector<std::int32_t> out(m * n);
                machine.hbm.read(0x3000, std::as_writable_bytes(std::span(out)));
                for (std::uint32_t i = 0; i < m; ++i)
                    for (std::uint32_t j = 0; j < n; ++j) {
                        std::int32_t sum = 0;
                        for (std::uint32_t x = 0; x < k; ++x) sum += a[i * k + x] * w[x * n + j];
                        ASSERT_EQ(out[i * n + j], sum) << m << "x" << k << "x" << n << " at " << i << "," << j;
                    }
            }
}

TEST(Interpreter, StopAfterThenResumeEqualsOneRun) {
    const auto program = gemm_program(4, 8, 8);
    Machine whole, parts;
    for (Machine* machine : {&whole, &parts}) {
        machine->put(0x1000, random_bytes(32, 1));
        machine->put(0x2000, random_bytes(64, 2));
    }
    ASSERT_EQ(whole.interpreter.run(program).status, JobStatus::done);
    for (std::uint32_t i = 0; i + 1 < program.size(); ++i)
        ASSERT_EQ(parts.interpreter.run(program, i, i).status, JobStatus::stopped) << "descriptor " << i;
    ASSERT_EQ(parts.interpreter.run(program, static_cast<std::uint32_t>(program.size()) - 1).status, JobStatus::done);
    std::vector<std::byte> a(128), b(128);
    whole.hbm.read(0x3000, a);
    parts.hbm.read(0x3000, b);
    EXPECT_EQ(a, b);
}

TEST(Interpreter, StridedLoadGathersInIndexOrder) {
    Machine machine;
    std::vector<std::int8_t> source(64);
    for (std::size_t i = 0; i < 64; ++i) source[i] = static_cast<std::int8_t>(i);
    machine.put(0x1000, source);
    LoadFields f;
    f.ext_addr = 0x1000;
    f.local_addr = 100;
    f.run_bytes = 1;
    f.count = {8, 8, 1, 1};
    f.ext_stride = {8, 1, 0, 0};   // transpose 8x8
    f.local_stride = {1, 8, 0, 0};
    const std::vector<DescriptorWords> program{descriptor(Opcode::load, f)};
    ASSERT_EQ(machine.interpreter.run(program).status, JobStatus::done);
    const auto got = machine.interpreter.local().range(100, 64);
    for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 8; ++c) ASSERT_EQ(static_cast<int>(got[static_cast<std::size_t>(r * 8 + c)]), c * 8 + r);
}

TEST(Interpreter, FaultsNameDescriptorEngineAndAddress) {
    Machine machine;
    auto program = gemm_program(1, 8, 8);
    program[4] = store(static_cast<std::uint64_t>(machine.chip.hbm_bytes) - 16, 0x8000, 32);
    add_waits(program[4], {{3, 1}});
    const JobResult result = machine.interpreter.run(program);
    EXPECT_EQ(result.status, JobStatus::failed);
    EXPECT_EQ(result.code, ErrorCode::illegal_address);
    EXPECT_EQ(result.engine, Engine::store);
    EXPECT_EQ(result.descriptor, 4u);
    EXPECT_EQ(result.address, static_cast<std::uint64_t>(machine.chip.hbm_bytes) - 16);
}

TEST(Decode, EveryReservedBitIsRefused) {
    const ChipConfig chip = nano();
    int checked = 0;
    for (const DescriptorWords& good : gemm_program(4, 8, 8)) {
        Decoded decoded;
        ASSERT_FALSE(decode(good, chip, decoded)) << decode(good, chip, decoded).text;
        const OpcodeInfo& info = *std::find_if(kOpcodes.begin(), kOpcodes.end(), [&](const OpcodeInfo& i) { return i.opcode == decoded.opcode; });
        for (std::size_t w = 0; w < kDescriptorWords; ++w)
            for (unsigned bit = 0; bit < 32; ++bit)
                if (info.reserved[w] >> bit & 1) {
                    DescriptorWords bad = good;
                    bad[w] |= 1u << bit;
                    ASSERT_EQ(decode(bad, chip, decoded).code, ErrorCode::malformed_descriptor) << "word " << w << " bit " << bit;
                    ++checked;
                }
    }
    EXPECT_GT(checked, 1000);
}

TEST(Decode, RandomDescriptorsNeverReachOutsideLocalMemory) {
    // Whatever decode() admits must execute without touching anything outside: the sanitizer build proves it here.
    std::mt19937 random(7);
    Machine machine;
    int admitted = 0;
    auto seeds = gemm_program(4, 8, 8);
    LoadFields indexed;
    indexed.index_enable = 1;
    indexed.index_addr = 64;
    indexed.index_limit = 100;
    indexed.run_bytes = 4;
    indexed.count = {8, 2, 1, 1};
    indexed.ext_stride = {16, 4, 0, 0};
    indexed.local_stride = {8, 4, 0, 0};
    seeds.push_back(descriptor(Opcode::load, indexed));
    for (int i = 0; i < 20000; ++i) {
        DescriptorWords words = seeds[random() % seeds.size()];
        for (unsigned flips = random() % 4; flips-- > 0;) words[9 + random() % 55] ^= 1u << random() % 32;
        Decoded decoded;
        if (decode(words, machine.chip, decoded)) continue;
        if (work_of(decoded) > 1 << 22) continue;  // legal but slow
        ++admitted;
        (void)execute(decoded, machine.interpreter.local(), machine.external, machine.chip);
    }
    EXPECT_GT(admitted, 1000);
}

TEST(Legality, AWaitThatNoEarlierSignalMeetsIsIllegal) {
    const ChipConfig chip = nano();
    auto program = gemm_program(4, 8, 8);
    EXPECT_TRUE(check_program(program, chip).empty());
    std::swap(program[2], program[3]);
    const auto problems = check_program(program, chip);
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].descriptor, 2u);
    EXPECT_EQ(problems[0].code, ErrorCode::illegal_program);
}

TEST(Legality, OneSemaphoreHasOneSignallingEngineAndNeverOverflows) {
    const ChipConfig chip = nano();
    auto program = gemm_program(4, 8, 8);
    add_signal(program[3], 2);
    EXPECT_FALSE(check_program(program, chip).empty());
    std::vector<DescriptorWords> many(70000, load(0, 0, 1));
    for (DescriptorWords& words : many) add_signal(words, 1, 0xFFFF);
    const auto problems = check_program(many, chip);
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].code, ErrorCode::semaphore_overflow);
    EXPECT_EQ(problems[0].descriptor, 65537u);  // 65537 * 65535 = 2^32 - 1 exactly
}

}  // namespace
}  // namespace assay::simkernel
