// Values behind the timing model: whatever the program, racy or not, the bytes are those of one descriptor after another.
#include "simkernel/exec/value_queue.hpp"

#include <random>

#include <gtest/gtest.h>

#include "simkernel/exec/interpreter.hpp"
#include "simkernel/exec/semantics.hpp"
#include "simkernel/numerics/workers.hpp"
#include "tests/simkernel/random_descriptors.hpp"

namespace assay::simkernel {
namespace {

using namespace testing;

class ValueQueueTest : public ::testing::Test {
protected:
    ~ValueQueueTest() override { set_worker_count(before_); }
    /// Threads beside the caller's, whatever this machine has.
    static void give_threads(unsigned threads) { set_worker_count(threads + 1); }

private:
    const unsigned before_ = worker_count();
};

/// Two cores with local memories of their own before one HBM of random contents.
struct Machine {
    explicit Machine(const ChipConfig& chip, std::uint64_t seed) : config(chip), hbm(static_cast<std::uint64_t>(chip.hbm_bytes)) {
        std::mt19937_64 random(seed);
        const auto fill = [&](std::span<std::byte> bytes) {
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        };
        std::vector<std::byte> contents(RandomDescriptors::kHbmBytes);
        fill(contents);
        EXPECT_TRUE(hbm.write(RandomDescriptors::kHbmBase, contents));
        for (LocalMemory& local : locals) {
            fill(local.scratchpad().first(0x2000));
            fill(local.accumulator().first(0x2000));
        }
    }
    const ChipConfig config;
    SparseMemory hbm;
    HbmOnly external{hbm};
    std::vector<LocalMemory> locals{LocalMemory(config), LocalMemory(config)};
    std::vector<bool> saturated{false, false};

    std::vector<std::byte> hbm_bytes() {
        std::vector<std::byte> bytes(RandomDescriptors::kHbmBytes);
        EXPECT_TRUE(hbm.read(RandomDescriptors::kHbmBase, bytes));
        return bytes;
    }
};

ChipConfig two_cores() {
    ChipConfig config = nano();
    config.cores = 2;
    return config;
}

Decoded decoded(const DescriptorWords& words, const ChipConfig& config) {
    Decoded out;
    const Fault fault = decode(words, config, out);
    EXPECT_FALSE(fault) << fault.text;
    return out;
}

struct Step {
    std::uint32_t core;
    Decoded descriptor;
};

/// Random descriptors; every few, a run of matmuls that add to one sum, as a long K makes them, now and then of other operands or sums.
std::vector<Step> random_steps(std::uint64_t seed, std::size_t count, const ChipConfig& config) {
    std::mt19937_64 random(seed);
    RandomDescriptors source(random, config);
    std::vector<Step> steps;
    while (steps.size() < count) {
        const auto core = static_cast<std::uint32_t>(random() % 2);
        if (random() % 4 != 0) {
            steps.push_back({core, decoded(source.next(), config)});
            continue;
        }
        const std::uint32_t m = 1 + random() % 8, n = 1 + random() % 8;
        const std::uint32_t acc = 4 * (random() % 64);
        bool first = true;
        for (std::size_t i = 0; i < 1 + random() % 80; ++i) {
            const std::uint32_t k = 1 + random() % 8;
            auto words = matmul(m, k, n, random() % 512, 512 + random() % 512, random() % 16 == 0 ? acc + 4 : acc);
            if (!first) words[9] |= 1u << 4;  // accumulate
            first = false;
            steps.push_back({core, decoded(words, config)});
            if (random() % 16 == 0) steps.push_back({static_cast<std::uint32_t>(random() % 2), decoded(source.next(), config)});
        }
    }
    return steps;
}

void run_in_order(Machine& machine, const std::vector<Step>& steps) {
    for (const Step& step : steps) {
        const Effect effect = execute(step.descriptor, machine.locals[step.core], machine.external, machine.config);
        ASSERT_FALSE(effect.fault) << effect.fault.text;
        if (effect.saturated) machine.saturated[step.core] = true;
    }
}

void run_behind(Machine& machine, const std::vector<Step>& steps, ValueQueue& queue) {
    for (const Step& step : steps) ASSERT_TRUE(queue.submit(step.core, step.descriptor, machine.locals[step.core], machine.external));
    queue.join();
    for (std::uint32_t core = 0; core < 2; ++core) machine.saturated[core] = queue.take_saturated(core);
}

void expect_same(Machine& a, Machine& b) {
    EXPECT_TRUE(a.hbm_bytes() == b.hbm_bytes()) << "HBM";
    for (std::size_t core = 0; core < 2; ++core) {
        EXPECT_TRUE(std::ranges::equal(a.locals[core].scratchpad(), b.locals[core].scratchpad())) << "scratchpad of core " << core;
        EXPECT_TRUE(std::ranges::equal(a.locals[core].accumulator(), b.locals[core].accumulator())) << "accumulator of core " << core;
        EXPECT_EQ(a.saturated[core], b.saturated[core]) << "core " << core;
    }
}

TEST_F(ValueQueueTest, RacyProgramsLeaveTheBytesOfTheirOrder) {
    const ChipConfig config = two_cores();
    for (const unsigned threads : {1u, 2u, 5u}) {
        give_threads(threads);
        ValueQueue queue(config, true);
        for (std::uint64_t seed = 0; seed < 25 && !HasFailure(); ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed) + ", threads " + std::to_string(threads));
            const std::vector<Step> steps = random_steps(seed, seed % 5 == 0 ? 3000 : 200, config);  // 3,000: more than the queue holds
            Machine ordered(config, seed), behind(config, seed);
            run_in_order(ordered, steps);
            run_behind(behind, steps, queue);
            expect_same(ordered, behind);
        }
    }
}

TEST_F(ValueQueueTest, TakesNothingWhenOffOrAlone) {
    const ChipConfig config = two_cores();
    Machine machine(config, 1);
    const Decoded step = decoded(load(0x1000, 0, 16), config);
    give_threads(1);
    ValueQueue off(config, false);
    EXPECT_FALSE(off.submit(0, step, machine.locals[0], machine.external));
    set_worker_count(1);
    ValueQueue alone(config, true);
    EXPECT_FALSE(alone.submit(0, step, machine.locals[0], machine.external));
}

TEST_F(ValueQueueTest, LeavesToTheModelWhatItsTimeMayDependOn) {
    const ChipConfig config = two_cores();
    Machine machine(config, 1);
    give_threads(1);
    ValueQueue queue(config, true);
    const auto taken = [&](const DescriptorWords& words) { return queue.submit(0, decoded(words, config), machine.locals[0], machine.external); };
    queue.protect(1, {{0x2000, 0x100}});
    EXPECT_TRUE(taken(load(0x1F80, 0, 0x80)));
    EXPECT_FALSE(taken(load(0x1F80, 0, 0x81))) << "a window's first byte";
    EXPECT_FALSE(taken(store(0x20FF, 0, 4))) << "a window's last byte";
    EXPECT_TRUE(taken(store(0x2100, 0, 4)));
    queue.protect(1, {});
    EXPECT_TRUE(taken(load(0x2000, 0, 16)));
    EXPECT_FALSE(taken(load(static_cast<std::uint64_t>(config.hbm_bytes) - 8, 0, 16))) << "it may fail";
    EXPECT_FALSE(taken(load(region::host, 0, 16))) << "host memory";
    queue.join();
}

TEST_F(ValueQueueTest, SaturationIsKnownAfterTheJoinAndOnce) {
    const ChipConfig config = two_cores();
    Machine machine(config, 1);
    give_threads(1);
    ValueQueue queue(config, true);
    VectorFields f = decode_vector_fields(drain(8, 0, 0));
    f.out_type = static_cast<std::uint32_t>(Dtype::i8);
    f.out_stride = {1, 0, 0, 0, 0};
    const std::vector<std::int32_t> large(8, 1000);
    std::ranges::copy(std::as_bytes(std::span(large)), machine.locals[1].accumulator().begin());
    ASSERT_TRUE(queue.submit(1, decoded(descriptor(Opcode::vector, f), config), machine.locals[1], machine.external));
    queue.join();
    EXPECT_FALSE(queue.take_saturated(0));
    EXPECT_TRUE(queue.take_saturated(1));
    EXPECT_FALSE(queue.take_saturated(1));
}

/// Memory whose writes throw, as a host out of memory would.
struct Failing final : ExternalMemory {
    bool read(std::uint64_t, std::span<std::byte>) override { return true; }
    bool write(std::uint64_t, std::span<const std::byte>) override { throw std::bad_alloc(); }
};

TEST_F(ValueQueueTest, WhatAThreadThrowsArrivesAtAJoinAndTheQueueLivesOn) {
    const ChipConfig config = two_cores();
    Machine machine(config, 1), ordered(config, 1);
    Failing failing;
    give_threads(2);
    ValueQueue queue(config, true);
    for (int round = 0; round < 20; ++round) {
        ASSERT_TRUE(queue.submit(0, decoded(store(0x1000, 0, 16), config), machine.locals[0], failing));
        EXPECT_THROW(queue.join(), std::bad_alloc);
        queue.join();
    }
    const std::vector<Step> steps = random_steps(3, 100, config);
    run_in_order(ordered, steps);
    run_behind(machine, steps, queue);
    expect_same(ordered, machine);
}

}  // namespace
}  // namespace assay::simkernel
