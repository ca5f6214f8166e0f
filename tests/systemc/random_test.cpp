// The chip against the sequential interpreter, which is the meaning of a program.
#include <gtest/gtest.h>

#include "tests/systemc/random_program.hpp"

namespace assay::chip::testing {
namespace {

TEST(RandomPrograms, LeaveTheInterpretersBytes) { (void)expect_interpreters_bytes(150, 1, simkernel::testing::nano(), {}); }

TEST(RandomPrograms, LeaveTheInterpretersBytesWithQueuesOfOneUnderJitter) {
    simkernel::ChipConfig config = simkernel::testing::nano();
    config.queue_depth = 1;
    ChipOptions options;
    options.jitter = true;
    options.seed = 3;
    (void)expect_interpreters_bytes(100, 2, config, options);
}

TEST(RandomPrograms, LeaveTheInterpretersBytesOnAnUnbalancedChip) {
    simkernel::ChipConfig config = simkernel::testing::nano();
    config.queue_depth = 64;
    config.hbm_channels = 4;
    config.noc_latency_cycles = 0;
    config.hbm_t_rcd_cycles = config.hbm_t_rp_cycles = config.hbm_t_cl_cycles = 0;
    config.dma_setup_cycles = config.mxu_setup_cycles = config.vpu_setup_cycles = 0;
    config.dma_outstanding = 1;
    config.dma_burst_bytes = 16;
    config.cp_dispatch_cycles = 1;
    config.cp_fetch_bytes = 256;
    ChipOptions options;
    options.quantum_cycles = 1;
    (void)expect_interpreters_bytes(100, 3, config, options);
}

}  // namespace
}  // namespace assay::chip::testing
