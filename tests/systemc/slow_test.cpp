#include "tests/systemc/reset_cases.hpp"

namespace assay::chip::testing {
namespace {

TEST(ResetSlow, AThousandChipResetsInMidJobEachLeaveAFreshChip) { expect_fresh_after_resets(1000, 2); }

}  // namespace
}  // namespace assay::chip::testing
