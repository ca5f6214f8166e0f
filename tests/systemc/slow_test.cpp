#include "tests/systemc/random_program.hpp"
#include "tests/systemc/reset_cases.hpp"

namespace assay::chip::testing {
namespace {

TEST(ResetSlow, AThousandChipResetsInMidJobEachLeaveAFreshChip) { expect_fresh_after_resets(1000, 2); }

TEST(RandomProgramsSlow, ThousandsLeaveTheInterpretersBytesUnderJitter) {
    ChipOptions options;
    options.jitter = true;
    options.seed = 11;
    (void)expect_interpreters_bytes(5000, 4, simkernel::testing::nano(), options);
}

}  // namespace
}  // namespace assay::chip::testing
