#include "tests/systemc/reset_cases.hpp"

namespace assay::chip::testing {
namespace {

TEST(Reset, ChipResetInMidJobLeavesAFreshChip) { expect_fresh_after_resets(200, 2); }
TEST(Reset, CoreResetInMidJobLeavesAFreshCore) { expect_fresh_after_resets(200, 1); }

TEST(Reset, CoreResetZeroesSemaphoresAndCountersAndKeepsRegisters) {
    Bench bench;
    put_tiled_operands(bench, 2);
    (void)bench.run(tiled_program(2));
    ASSERT_GT(bench.counter(Engine::load, simkernel::Counter::retired), 0u);
    bench.reset(1);
    EXPECT_EQ(bench.counter(Engine::load, simkernel::Counter::retired), 0u);
    EXPECT_EQ(bench.counter(Engine::load, simkernel::Counter::idle), 0u);
    std::vector<std::byte> semaphores(64 * 4);
    ASSERT_TRUE(bench.chip.read_memory({region::semaphores}, semaphores));
    EXPECT_EQ(semaphores, std::vector<std::byte>(64 * 4));
    EXPECT_EQ(bench.chip.read_register(reg::program_count), 10u);
    EXPECT_EQ(bench.chip.read_register(reg::completed_sequence), 0u);
}

}  // namespace
}  // namespace assay::chip::testing
