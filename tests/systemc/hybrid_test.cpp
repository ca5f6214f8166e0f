// The matrix unit in RTL behind the seam of the SystemC chip: the same bytes and the same cycles as the behavioural unit.
#include <gtest/gtest.h>

#include "rtl_models/rtl_units.hpp"
#include "tests/systemc/random_program.hpp"

namespace assay::chip::testing {
namespace {

ChipOptions with_rtl(const simkernel::ChipConfig& config, std::uint64_t quantum) {
    ChipOptions options;
    options.quantum_cycles = quantum;
    options.units[{0, Engine::matrix}] = [config](UnitPorts& ports) { return rtl::make_mxu(config, ports, {}); };
    return options;
}

TEST(Hybrid, RandomProgramsLeaveTheInterpretersBytesInTheCyclesOfTheBehaviouralChip) {
    const simkernel::ChipConfig config = simkernel::testing::nano();
    const auto behavioural = in_child([&] { return expect_interpreters_bytes(40, 9, config, {}); });
    ASSERT_EQ(behavioural.size(), 40u);
    for (const std::uint64_t quantum : {1, 33, 1000})
        EXPECT_EQ(in_child([&] { return expect_interpreters_bytes(40, 9, config, with_rtl(config, quantum)); }), behavioural) << "quantum " << quantum;
}

TEST(Hybrid, ResetInMidJobLeavesAFreshChip) {
    const simkernel::ChipConfig config = simkernel::testing::nano();
    Bench bench(config, with_rtl(config, 100));
    const Program program = tiled_program(6);
    put_tiled_operands(bench, 6);
    const std::uint64_t fresh = bench.cycles(bench.run(program));
    std::mt19937_64 random(1);
    for (int i = 0; i < 30; ++i) {
        bench.load_program(program);
        bench.ring(program);
        (void)bench.chip.advance({random() % fresh});
        bench.reset(2);
        put_tiled_operands(bench, 6);
        ASSERT_EQ(bench.cycles(bench.run(program)), fresh) << i;
        ASSERT_EQ(bench.get_values<std::int32_t>(0x40000, 6 * 128), tiled_expected(6)) << i;
    }
}

}  // namespace
}  // namespace assay::chip::testing
