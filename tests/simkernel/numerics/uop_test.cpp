// Micro-operations: the definition against the host's arithmetic and worked values, and every path against the definition.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "oracle.hpp"
#include "paths.hpp"
#include "samples.hpp"
#include "simkernel/numerics/kernels.hpp"
#include "simkernel/numerics/vector.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel::test {
namespace {

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
/// A host result under FTZ|DAZ in the chip's form.
std::uint32_t chip_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits;
}

struct Operands {
    std::vector<std::uint32_t> a, b, c;
};
/// All pairs of corners (c runs through them), then directed-random triples.
Operands operands(std::size_t random) {
    Operands o;
    const auto corners = corner_f32();
    std::size_t i = 0;
    for (const auto a : corners)
        for (const auto b : corners) o.a.push_back(a), o.b.push_back(b), o.c.push_back(corners[i++ * 7 % corners.size()]);
    Rng rng(4711);
    for (std::size_t n = 0; n < random; ++n) o.a.push_back(directed_f32(rng)), o.b.push_back(directed_f32(rng)), o.c.push_back(directed_f32(rng));
    while (o.a.size() % 16 != 0) o.a.push_back(0), o.b.push_back(0), o.c.push_back(0);
    return o;
}

TEST(Uop, ArithmeticEqualsTheHostUnderFlushToZero) {
#if !defined(__x86_64__)
    GTEST_SKIP() << "FTZ|DAZ is x86";
#endif
    const Operands o = operands(200'000);
    for (std::size_t i = 0; i < o.a.size(); ++i) {
        const std::uint32_t a = o.a[i], b = o.b[i];
        volatile float sum, difference, product, quotient, root;
        {
            const FtzScope ftz;
            const volatile float x = as_float(a), y = as_float(b);
            sum = x + y;
            difference = x - y;
            product = x * y;
            quotient = x / y;
            root = std::sqrt(x);
        }
        ASSERT_EQ(run_uop(Uop::add_f32, a, b, 0), chip_bits(sum)) << std::hex << a << " + " << b;
        ASSERT_EQ(run_uop(Uop::sub_f32, a, b, 0), chip_bits(difference)) << std::hex << a << " - " << b;
        ASSERT_EQ(run_uop(Uop::mul_f32, a, b, 0), chip_bits(product)) << std::hex << a << " * " << b;
        ASSERT_EQ(run_uop(Uop::div_f32, a, b, 0), chip_bits(quotient)) << std::hex << a << " / " << b;
        ASSERT_EQ(run_uop(Uop::sqrt_f32, a, 0, 0), chip_bits(root)) << std::hex << "sqrt " << a;
        ASSERT_EQ(run_uop(Uop::add_f32, a, b, 0), exact_fma(a, 0x3F800000u, b)) << std::hex << a << " + " << b;
    }
}

TEST(Uop, ComparisonsAndSelectionFollowTheirTables) {
    constexpr std::uint32_t one = 0x3F800000u, two = 0x40000000u, zero = 0, minus_zero = 0x80000000u, tiny = 1, nan = 0x7F800001u, all = 0xFFFFFFFFu;
    struct Case {
        Uop op;
        std::uint32_t a, b, c, expected;
    };
    const std::vector<Case> cases{
        {Uop::min_f32, zero, minus_zero, 0, minus_zero}, {Uop::min_f32, minus_zero, zero, 0, minus_zero},
        {Uop::max_f32, zero, minus_zero, 0, zero},       {Uop::max_f32, minus_zero, zero, 0, zero},
        {Uop::max_f32, one, nan, 0, 0x7FC00000u},        {Uop::min_f32, nan, one, 0, 0x7FC00000u},
        {Uop::max_f32, tiny, minus_zero, 0, zero},       {Uop::min_f32, one, two, 0, one},
        {Uop::max_f32, one, two, 0, two},                {Uop::lt_f32, one, two, 0, all},
        {Uop::lt_f32, two, one, 0, 0},                   {Uop::lt_f32, nan, one, 0, 0},
        {Uop::le_f32, one, one, 0, all},                 {Uop::le_f32, nan, nan, 0, 0},
        {Uop::eq_f32, zero, minus_zero, 0, all},         {Uop::eq_f32, tiny, minus_zero, 0, all},
        {Uop::eq_f32, nan, nan, 0, 0},                   {Uop::select, minus_zero, 5, 6, 5},
        {Uop::select, 0, 5, 6, 6},                       {Uop::mov, tiny, 0, 0, tiny},
        {Uop::floor_f32, 0xBF000000u, 0, 0, 0xBF800000u}, {Uop::floor_f32, minus_zero, 0, 0, minus_zero},
        {Uop::floor_f32, 0x80000001u, 0, 0, minus_zero}, {Uop::round_f32, 0x3F000000u, 0, 0, zero},
        {Uop::round_f32, 0xBF000000u, 0, 0, minus_zero}, {Uop::round_f32, 0x3FC00000u, 0, 0, two},
        {Uop::round_f32, 0x40200000u, 0, 0, two},        {Uop::f32_to_i32, nan, 0, 0, 0},
        {Uop::f32_to_i32, 0x4F000000u, 0, 0, 0x7FFFFFFFu}, {Uop::f32_to_i32, 0xCF000000u, 0, 0, 0x80000000u},
        {Uop::f32_to_i32, 0xCF000001u, 0, 0, 0x80000000u}, {Uop::f32_to_i32, 0x4EFFFFFFu, 0, 0, 0x7FFFFF80u},
        {Uop::f32_to_i32, 0xFF800000u, 0, 0, 0x80000000u}, {Uop::f32_to_i32, 0xC0200000u, 0, 0, 0xFFFFFFFEu},
        {Uop::i32_to_f32, 0x01000001u, 0, 0, 0x4B800000u}, {Uop::i32_to_f32, 0x01000003u, 0, 0, 0x4B800002u},
        {Uop::i32_to_f32, 0x80000000u, 0, 0, 0xCF000000u}, {Uop::i32_to_f32, 0x7FFFFFFFu, 0, 0, 0x4F000000u},
        {Uop::add_i32, 0x7FFFFFFFu, 1, 0, 0x80000000u},  {Uop::sub_i32, 0x80000000u, 1, 0, 0x7FFFFFFFu},
        {Uop::mul_i32, 0x10001u, 0x10001u, 0, 0x20001u}, {Uop::shl_i32, 1, 33, 0, 2},
        {Uop::shr_i32, 0x80000000u, 31, 0, all},         {Uop::shr_i32, 0x80000000u, 32, 0, 0x80000000u},
        {Uop::lt_i32, all, 0, 0, all},                   {Uop::min_i32, all, 0, 0, all},
        {Uop::max_i32, all, 0, 0, 0},                    {Uop::eq_i32, minus_zero, zero, 0, 0},
        {Uop::to_bf16, 0x3F808000u, 0, 0, one},          {Uop::to_bf16, 0x7F7F8000u, 0, 0, 0x7F800000u},
        {Uop::and_i32, 0xF0F0u, 0xFF00u, 0, 0xF000u},    {Uop::or_i32, 0xF0F0u, 0xFF00u, 0, 0xFFF0u},
        {Uop::xor_i32, 0xF0F0u, 0xFF00u, 0, 0x0FF0u},    {Uop::recip_f32, minus_zero, 0, 0, 0xFF800000u},
        {Uop::recip_f32, 0xFF800000u, 0, 0, minus_zero}, {Uop::recip_f32, one, 0, 0, one},
        {Uop::recip_f32, 0x7E800001u, 0, 0, zero},       {Uop::rsqrt_f32, minus_zero, 0, 0, 0xFF800000u},
        {Uop::rsqrt_f32, 0xBF800000u, 0, 0, 0x7FC00000u}, {Uop::rsqrt_f32, 0x7F800000u, 0, 0, zero},
        {Uop::exp2_f32, 0x43000000u, 0, 0, 0x7F800000u}, {Uop::exp2_f32, 0xC2FC0001u, 0, 0, zero},
        {Uop::exp2_f32, 0xC2FC0000u, 0, 0, 0x00800000u}, {Uop::exp2_f32, 0x40400000u, 0, 0, 0x41000000u},
        {Uop::log2_f32, one, 0, 0, zero},                {Uop::log2_f32, minus_zero, 0, 0, 0xFF800000u},
        {Uop::log2_f32, 0xBF800000u, 0, 0, 0x7FC00000u}, {Uop::log2_f32, 0x41000000u, 0, 0, 0x40400000u},
    };
    for (const Case& t : cases)
        EXPECT_EQ(run_uop(t.op, t.a, t.b, t.c), t.expected) << name_of(t.op) << std::hex << " of " << t.a << ", " << t.b << ", " << t.c;
}

TEST(Uop, RoundingsEqualTheWideReference) {
    Rng rng(99);
    for (int i = 0; i < 300'000; ++i) {
        const std::uint32_t a = i % 2 != 0 ? directed_f32(rng) : (rng() % 0x0F000000u + 0x3E000000u) | (rng() & 1u) << 31;
        const bool subnormal = (a & 0x7F800000u) == 0;
        const double x = subnormal ? std::copysign(0.0, as_float(a)) : as_float(a);
        if (x != x) continue;
        ASSERT_EQ(run_uop(Uop::round_f32, a, 0, 0), std::bit_cast<std::uint32_t>(static_cast<float>(std::nearbyint(x)))) << std::hex << a;
        ASSERT_EQ(run_uop(Uop::floor_f32, a, 0, 0), std::bit_cast<std::uint32_t>(static_cast<float>(std::floor(x)))) << std::hex << a;
        const double whole = std::min(std::max(std::nearbyint(x), -0x1p31), 0x1p31 - 1);
        ASSERT_EQ(run_uop(Uop::f32_to_i32, a, 0, 0), static_cast<std::uint32_t>(static_cast<std::int32_t>(whole))) << std::hex << a;
        const auto integer = static_cast<std::int32_t>(rng());
        ASSERT_EQ(run_uop(Uop::i32_to_f32, static_cast<std::uint32_t>(integer), 0, 0), std::bit_cast<std::uint32_t>(static_cast<float>(integer)));
    }
}

TEST(Uop, EveryPathEqualsTheDefinitionOnEveryOperation) {
    const Operands o = operands(20'000);
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        const KernelTable* kernel = kernels();
        if (kernel == nullptr) continue;  // only the definitions exist here
        std::vector<std::uint32_t> got(o.a.size());
        for (const Uop op : kAllUop) {
            {
                const FtzScope ftz;
                kernel->uop(op, o.a.data(), o.b.data(), o.c.data(), got.data(), got.size());
            }
            for (std::size_t i = 0; i < got.size(); ++i)
                ASSERT_EQ(got[i], run_uop(op, o.a[i], o.b[i], o.c[i]))
                    << path << " " << name_of(op) << std::hex << " of " << o.a[i] << ", " << o.b[i] << ", " << o.c[i];
        }
    }
}

}  // namespace
}  // namespace assay::simkernel::test
