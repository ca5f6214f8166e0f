#include <gtest/gtest.h>

#include "rtl_models/mxu_registry.hpp"
#include "tests/rtl_models/mxu_random_jobs.hpp"

namespace assay::test {
namespace {

TEST(MxuUnitSlow, ManyRandomDescriptorsGiveTheReferenceBitsInTheFormulasCycles) {
    ASSERT_FALSE(rtl::mxu_registry().empty());
    for (const auto& g : rtl::mxu_registry())
        for (std::uint32_t seed = 100; seed < 110; ++seed) random_jobs(g.rows, g.cols, 1000, seed);
}

}  // namespace
}  // namespace assay::test
