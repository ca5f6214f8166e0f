#include <gtest/gtest.h>

#include "tests/systemc/chip_bench.hpp"

namespace assay::chip::testing {
namespace {

using simkernel::Access;

TEST(Registers, EveryRegisterOfTheContractKeepsItsAccessClass) {
    Bench bench;
    Chip& chip = bench.chip;
    int checked = 0;
    for (const auto& info : simkernel::kRegisters) {
        if (info.offset == reg::core_select || info.offset == reg::doorbell || info.offset == reg::job_doorbell || info.offset == reg::reset_control) continue;
        SCOPED_TRACE(std::string(info.name));
        const std::uint32_t before = chip.read_register(info.offset);
        if (info.has_reset) {
            EXPECT_EQ(before, info.access == Access::wo ? 0 : info.reset);
        }
        chip.write_register(info.offset, 0xA5A5'A5A0);
        const std::uint32_t after = chip.read_register(info.offset);
        if (info.access == Access::rw) {
            EXPECT_EQ(after, 0xA5A5'A5A0);
        }
        if (info.access == Access::wo || info.access == Access::w1c) {
            EXPECT_EQ(after, 0u);
        }
        if (info.access == Access::ro && info.offset != reg::heartbeat_lo) {
            EXPECT_EQ(after, before);
        }
        ++checked;
    }
    EXPECT_EQ(checked, static_cast<int>(simkernel::kRegisters.size()) - 4);
    EXPECT_EQ(chip.read_register(reg::bus_error_count), 0u);
    bench.reset(2);
    for (const auto& info : simkernel::kRegisters)
        if (info.access == Access::rw) {
            EXPECT_EQ(chip.read_register(info.offset), info.reset) << info.name;
        }
}

TEST(Registers, IdentityIsThatOfTheConfiguration) {
    Bench bench;
    Chip& chip = bench.chip;
    EXPECT_EQ(chip.read_register(reg::magic), 0x4D525541u);
    EXPECT_EQ(chip.read_register(reg::config_hash), simkernel::config_hash(bench.config));
    EXPECT_EQ(chip.read_register(reg::mxu_rows), 8u);
    EXPECT_EQ(chip.read_register(reg::spm_bytes), 65536u);
    EXPECT_EQ(chip.read_register(reg::hbm_bytes_lo), 268435456u);
    EXPECT_EQ(chip.read_register(reg::semaphore_count), 64u);
    EXPECT_EQ(chip.unit_implementation(0, Engine::matrix), "behavioural");
    EXPECT_EQ(chip.unit_implementation(0, Engine::collective), "behavioural");
}

TEST(Registers, UnmappedAndMisalignedOffsetsReadZeroAndAreCounted) {
    Bench bench;
    Chip& chip = bench.chip;
    std::uint32_t errors = 0;
    for (const std::uint32_t offset : {0x030u, 0x03Cu, 0x0B9u, 0x002u, 0x0FCu, 0x230u, 0x340u, 0xFFCu, 0x1000u, 0xFFFF'FFFCu}) {
        EXPECT_EQ(chip.read_register(offset), 0u) << std::hex << offset;
        chip.write_register(offset, 0xFFFF'FFFF);
        errors += 2;
    }
    EXPECT_EQ(chip.read_register(reg::bus_error_count), errors);
}

TEST(Registers, ACoreThatIsNotThereReadsZeroAndIsCounted) {
    Bench bench;
    bench.chip.write_register(reg::core_select, 7);
    EXPECT_EQ(bench.chip.read_register(reg::program_count), 0u);
    EXPECT_EQ(bench.chip.read_register(reg::counters), 0u);
    bench.chip.write_register(reg::doorbell, 1);
    bench.chip.write_register(reg::reset_control, 1);
    EXPECT_EQ(bench.chip.read_register(reg::bus_error_count), 4u);
    bench.reset(2);
    EXPECT_EQ(bench.chip.read_register(reg::core_select), 0u);
    EXPECT_EQ(bench.chip.read_register(reg::bus_error_count), 0u);
}

TEST(Registers, AnAccessTakesTheLatencyOfTheLinkAndTheHeartbeatShowsIt) {
    Bench bench;
    const std::uint32_t first = bench.chip.read_register(reg::heartbeat_lo);
    const std::uint32_t second = bench.chip.read_register(reg::heartbeat_lo);
    EXPECT_EQ(second - first, static_cast<std::uint32_t>(bench.config.host_latency_cycles));
    EXPECT_EQ(bench.chip.advance({123}).count, 123u);
    EXPECT_EQ(bench.chip.now().count, second + 123u);
}

TEST(Registers, InterruptStatusIsClearedByWritingOne) {
    Bench bench;
    (void)bench.run({});
    EXPECT_EQ(bench.chip.read_register(reg::interrupt_status), 1u);
    bench.chip.write_register(reg::interrupt_status, 2);
    EXPECT_EQ(bench.chip.read_register(reg::interrupt_status), 1u);
    bench.chip.write_register(reg::interrupt_status, 1);
    EXPECT_EQ(bench.chip.read_register(reg::interrupt_status), 0u);
}

TEST(FrontDoor, EveryRegionRoundTripsAndItsEndIsAnError) {
    Bench bench;
    (void)bench.chip.host_memory(0, 0x1000);
    struct Region {
        std::uint64_t base, size;
    };
    const auto size = [](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); };
    const std::vector<Region> regions{{region::hbm, size(bench.config.hbm_bytes)},
                                      {region::spm, size(bench.config.spm_bytes)},
                                      {region::acc, size(bench.config.acc_bytes)},
                                      {region::semaphores, size(bench.config.semaphores) * 4},
                                      {region::host, 0x1000}};
    std::uint32_t errors = 0;
    for (const Region& r : regions) {
        const std::vector<std::byte> sent{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
        for (const std::uint64_t offset : {std::uint64_t{0}, r.size - 4}) {
            ASSERT_TRUE(bench.chip.write_memory({r.base + offset}, sent)) << std::hex << r.base + offset;
            std::vector<std::byte> got(4);
            ASSERT_TRUE(bench.chip.read_memory({r.base + offset}, got));
            EXPECT_EQ(got, sent);
            std::vector<std::byte> back(4);
            ASSERT_TRUE(bench.chip.backdoor_read({r.base + offset}, back));
            EXPECT_EQ(back, sent);
        }
        EXPECT_FALSE(bench.chip.write_memory({r.base + r.size - 2}, sent)) << std::hex << r.base;
        EXPECT_FALSE(bench.chip.write_memory({r.base + r.size}, sent)) << std::hex << r.base;
        errors += 2;
    }
    std::vector<std::byte> word(4);
    EXPECT_FALSE(bench.chip.read_memory({region::spm + region::spm_core_stride}, word)) << "there is one core";
    EXPECT_FALSE(bench.chip.read_memory({~std::uint64_t{0} - 1}, word));
    EXPECT_EQ(bench.chip.read_register(reg::bus_error_count), errors + 2);
}

TEST(FrontDoor, BulkTransfersTakeTheBandwidthOfTheLink) {
    Bench bench;
    const std::vector<std::byte> bytes(1 << 16);
    const Cycles before = bench.chip.now();
    ASSERT_TRUE(bench.chip.write_memory({0x4000}, bytes));
    const std::uint64_t took = (bench.chip.now() - before).count;
    EXPECT_GE(took, bytes.size() / static_cast<std::uint64_t>(bench.config.host_bytes_per_cycle) + static_cast<std::uint64_t>(bench.config.host_latency_cycles));
}

}  // namespace
}  // namespace assay::chip::testing
