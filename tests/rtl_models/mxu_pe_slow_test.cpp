#include <gtest/gtest.h>

#include "tests/rtl_models/verilated_pe.hpp"

namespace assay::test {
namespace {

TEST(MxuPeBf16Slow, TwentyMillionDirectedRandomCasesEqualHostFma) {
    if (!host_has_fma()) GTEST_SKIP() << "the oracle needs a host with FMA instructions";
    VerilatedPe pe;
    PeCases cases(1);
    const FlushScope flush;
    int checked = 0;
    for (; checked < 20'000'000; ++checked) {
        const PeCase c = cases.next();
        pe.drive(c);
        ASSERT_EQ(pe.bf16(), oracle_bf16(c.psum, c.act, c.weight))
            << std::hex << "case " << checked << ": act " << c.act << ", weight " << c.weight << ", psum " << c.psum;
    }
    EXPECT_EQ(checked, 20'000'000);
}

/// Every bf16 activation against every exponent and both mantissa ends of the weight, with a partial sum from each side of the product.
TEST(MxuPeBf16Slow, EveryActivationMeetsEveryExponent) {
    if (!host_has_fma()) GTEST_SKIP() << "the oracle needs a host with FMA instructions";
    VerilatedPe pe;
    std::mt19937 random(2);
    const FlushScope flush;
    std::uint64_t checked = 0;
    for (std::uint32_t act = 0; act < 0x1'0000; ++act)
        for (std::uint32_t weight_exponent = 0; weight_exponent < 256; ++weight_exponent, ++checked) {
            const auto mantissa = static_cast<std::uint32_t>(random() & 0x7Fu);
            const PeCase c{static_cast<std::uint32_t>(random()), static_cast<std::uint16_t>(act),
                           static_cast<std::uint16_t>(weight_exponent << 7 | mantissa)};
            pe.drive(c);
            ASSERT_EQ(pe.bf16(), oracle_bf16(c.psum, c.act, c.weight))
                << std::hex << "act " << c.act << ", weight " << c.weight << ", psum " << c.psum;
        }
    EXPECT_EQ(checked, std::uint64_t{1} << 24);
}

}  // namespace
}  // namespace assay::test
