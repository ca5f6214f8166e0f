// Observers of a job: every descriptor at dispatch in stream order, every retirement, lost signals, changed memory.
#include <gtest/gtest.h>

#include <set>

#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {
namespace {

class Recorder final : public simkernel::JobHooks {
public:
    void dispatched(std::uint32_t core, std::uint32_t index, const simkernel::Decoded& descriptor) override {
        EXPECT_EQ(core, 0u);
        order.push_back(index);
        engines.push_back(descriptor.engine);
    }
    bool drops_signal(std::uint32_t, std::uint32_t index) override { return dropped.count(index) != 0; }
    void retired(std::uint32_t, std::uint32_t index, simkernel::ExternalMemory& memory) override {
        done.insert(index);
        if (index == flipped_after) {
            std::array<std::byte, 1> byte{};
            EXPECT_TRUE(memory.read(0x3000, byte));
            byte[0] ^= std::byte{0x40};
            EXPECT_TRUE(memory.write(0x3000, byte));
        }
    }
    std::vector<std::uint32_t> order;
    std::vector<Engine> engines;
    std::set<std::uint32_t> done, dropped;
    std::uint32_t flipped_after = ~0u;
};

TEST(Hooks, SeeEveryDescriptorInStreamOrderAndEveryRetirement) {
    Bench bench;
    Recorder recorder;
    bench.chip.set_hooks(&recorder);
    put_tiled_operands(bench, 6);
    (void)bench.run(tiled_program(6));
    ASSERT_EQ(recorder.order.size(), 30u);
    for (std::uint32_t i = 0; i < 30; ++i) EXPECT_EQ(recorder.order[i], i);
    EXPECT_EQ(recorder.engines[2], Engine::matrix);
    EXPECT_EQ(recorder.done.size(), 30u);
    bench.chip.set_hooks(nullptr);
    (void)bench.run(tiled_program(6));
    EXPECT_EQ(recorder.order.size(), 30u) << "no longer called";
}

TEST(Hooks, ALostSignalDeadlocksAndAFlippedBitIsSeenInMemory) {
    Bench bench;
    Recorder recorder;
    bench.chip.set_hooks(&recorder);
    recorder.dropped = {2};
    put_gemm_operands(bench, 4, 8, 8);
    const Program program = simkernel::testing::gemm_program(4, 8, 8);
    EXPECT_EQ(bench.run(program).error_code, static_cast<std::uint32_t>(ErrorCode::deadlock));
    EXPECT_NE(bench.chip.wait_graph().find("vector: descriptor 3 awaits semaphore 2 >= 1 (is 0)"), std::string::npos) << bench.chip.wait_graph();
    bench.reset(1);
    recorder.dropped.clear();
    recorder.flipped_after = 4;
    EXPECT_EQ(bench.run(program).error_code, 0u);
    auto expected = gemm_expected(4, 8, 8);
    expected[0] ^= 0x40;
    EXPECT_EQ(bench.get_values<std::int32_t>(0x3000, 32), expected);
}

}  // namespace
}  // namespace assay::chip::testing
