// The order of reductions, worked out by hand from docs/numerics.md §4, and carried partials.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "paths.hpp"
#include "samples.hpp"
#include "simkernel/numerics/vector.hpp"

namespace assay::simkernel::test {
namespace {

/// A dense f32 array of count[0] x count[1] elements, reduced with `op`, written as f32.
VectorFields reduction(std::uint32_t columns, std::uint32_t rows, Reduce op, bool lanes, std::uint32_t dims) {
    VectorFields f;
    f.count = {columns, rows, 1, 1, 1};
    f.in_used = 1;
    f.in_type[0] = f.out_type = static_cast<std::uint32_t>(Dtype::f32);
    f.in0_stride = {4, static_cast<std::int32_t>(4 * columns), 0, 0, 0};
    f.reduce = static_cast<std::uint32_t>(op);
    f.reduce_lanes = lanes;
    f.reduce_dims = dims;
    f.uop[0] = encode_uop(Uop::mov, 0, kUopIn);
    f.pre_count = 1;
    return f;
}
std::vector<std::uint32_t> run(const VectorFields& f, const std::vector<std::uint32_t>& x, std::size_t results, int lanes,
                               const std::vector<std::uint32_t>& carried = {}) {
    std::vector<std::uint32_t> out(results, 0xDEADBEEFu);
    run_vector(f, {reinterpret_cast<const std::byte*>(x.data()), nullptr, reinterpret_cast<const std::byte*>(carried.data())},
               reinterpret_cast<std::byte*>(out.data()), lanes);
    return out;
}
std::vector<std::uint32_t> floats(std::initializer_list<float> values) {
    std::vector<std::uint32_t> bits;
    for (const float v : values) bits.push_back(std::bit_cast<std::uint32_t>(v));
    return bits;
}
std::vector<std::uint32_t> random_floats(std::size_t count, unsigned seed) {
    Rng rng(seed);
    std::vector<std::uint32_t> x(count);
    for (auto& v : x) v = (rng() & 0x83FFFFFFu) | 0x3C000000u;
    return x;
}

TEST(VectorReduce, LaneSumsAreStridedPartialsThenABinaryTree) {
    // 2^24 + 1 + 1 depends on the order: 2^24 absorbs a lone 1, but not a 2.
    const float big = 0x1p24F;
    const auto x = floats({big, 1, 0, 1, 1, 1, 0, 1, 0, 1});  // L = 4: p0 = big+1+0 = big, p1 = 3, p2 = 0, p3 = 2; (p0+p2)+(p1+p3) = big+5
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        EXPECT_EQ(run(reduction(10, 1, Reduce::add_f32, true, 0), x, 1, 4), floats({0x1p24F + 4})) << path << ": 2^24 + 5 is a tie, to even";
        EXPECT_EQ(run(reduction(10, 1, Reduce::add_f32, true, 0), x, 1, 1), floats({big})) << path << ": one lane adds in order";
    }
}

TEST(VectorReduce, ASumOfNegativeZeroStaysNegative) {
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        EXPECT_EQ(run(reduction(1, 1, Reduce::add_f32, true, 0), {0x80000000u}, 1, 32), std::vector{0x80000000u}) << path;
        EXPECT_EQ(run(reduction(3, 1, Reduce::add_f32, true, 0), {0x80000000u, 0x80000000u, 0x80000000u}, 1, 2), std::vector{0x80000000u}) << path;
        EXPECT_EQ(run(reduction(2, 1, Reduce::max_f32, true, 0), {0x80000000u, 0x00000000u}, 1, 32), std::vector{0x00000000u}) << path;
    }
}

TEST(VectorReduce, WithoutLanesEachColumnAddsItsRowsInOrder) {
    const float big = 0x1p24F;
    const auto x = floats({big, 1, 1, 1, 1, big});  // columns: ((big+1)+1), ((1+1)+big)
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        VectorFields f = reduction(2, 3, Reduce::add_f32, false, 1);
        f.out_stride[0] = 4;
        EXPECT_EQ(run(f, x, 2, 32), floats({big, big + 2})) << path;
    }
}

TEST(VectorReduce, AfterwardsMicroOperationsSeeOnlyTheResult) {
    VectorFields f = reduction(4, 2, Reduce::add_f32, true, 1);
    f.uop[0] = encode_uop(Uop::mov, 3, kUopIn);  // v3 must be zero again after the reduction
    f.uop[1] = encode_uop(Uop::mov, 0, 3);
    f.uop[2] = encode_uop(Uop::mul_f32, 1, 0, kUopImm);
    f.uop[3] = encode_uop(Uop::fma_f32, 0, 1, kUopImm + 1, 3);
    f.pre_count = 2;
    f.post_count = 2;
    f.imm[0] = std::bit_cast<std::uint32_t>(0.125F);
    f.imm[1] = std::bit_cast<std::uint32_t>(2.0F);
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        EXPECT_EQ(run(f, floats({1, 2, 3, 4, 5, 6, 7, 8}), 1, 4), floats({9})) << path;
    }
}

TEST(VectorReduce, CarriedPartialsGiveTheBitsOfOneDescriptorForAnyCutOfTheRows) {
    constexpr std::uint32_t kColumns = 45, kRows = 12;
    const auto x = random_floats(kColumns * kRows, 17);
    for (const std::string& path : all_paths())
        for (const bool lanes : {true, false})
            for (const std::uint32_t first : {1u, 5u, 11u}) {
                const PathScope scope(path);
                const std::size_t results = lanes ? 1 : kColumns, partials = lanes ? 16 : kColumns;
                VectorFields whole = reduction(kColumns, kRows, Reduce::add_f32, lanes, 1);
                if (!lanes) whole.out_stride[0] = 4;
                VectorFields head = whole, tail = whole;
                head.count[1] = first;
                head.carry_out = 1;
                head.out_stride[0] = 0;
                tail.count[1] = kRows - first;
                tail.carry_in = 1;
                const auto carried = run(head, x, partials, 16);
                const std::vector<std::uint32_t> rest(x.begin() + first * kColumns, x.end());
                EXPECT_EQ(run(tail, rest, results, 16, carried), run(whole, x, results, 16)) << path << ", lanes " << lanes << ", cut at " << first;
            }
}

TEST(VectorReduce, CarriedPartialsMayBeUpdatedInPlace) {
    const auto x = random_floats(64 * 4, 3);
    VectorFields f = reduction(64, 4, Reduce::add_f32, true, 1);
    const auto expected = run(f, x, 1, 32);
    f.carry_out = 1;
    f.count[1] = 1;
    std::vector<std::uint32_t> partials(32);
    for (std::size_t row = 0; row < 3; ++row) {
        f.carry_in = row != 0;
        run_vector(f, {reinterpret_cast<const std::byte*>(&x[row * 64]), nullptr, reinterpret_cast<const std::byte*>(partials.data())},
                   reinterpret_cast<std::byte*>(partials.data()), 32);
    }
    f.carry_out = 0;
    f.carry_in = 1;
    EXPECT_EQ(run(f, {x.begin() + 192, x.end()}, 1, 32, partials), expected);
}

TEST(VectorReduce, OutputsSaturateAndSaySo) {
    VectorFields f;
    f.count = {4, 1, 1, 1, 1};
    f.in_used = 1;
    f.in_type[0] = static_cast<std::uint32_t>(Dtype::i32);
    f.in0_stride[0] = 4;
    f.out_stride[0] = 1;
    f.uop[0] = encode_uop(Uop::mov, 0, kUopIn);
    f.pre_count = 1;
    const std::array<std::int32_t, 4> inside{-128, 127, 0, 1}, outside{-129, 128, 256, -1};
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        std::array<std::uint8_t, 4> out{};
        const auto go = [&](const std::array<std::int32_t, 4>& x, Dtype type) {
            f.out_type = static_cast<std::uint32_t>(type);
            return run_vector(f, {reinterpret_cast<const std::byte*>(x.data()), nullptr, nullptr}, reinterpret_cast<std::byte*>(out.data()), 32).saturated;
        };
        EXPECT_FALSE(go(inside, Dtype::i8)) << path;
        EXPECT_EQ(out, (std::array<std::uint8_t, 4>{0x80, 0x7F, 0, 1})) << path;
        EXPECT_TRUE(go(outside, Dtype::i8)) << path;
        EXPECT_EQ(out, (std::array<std::uint8_t, 4>{0x80, 0x7F, 0x7F, 0xFF})) << path;
        EXPECT_TRUE(go(outside, Dtype::u8)) << path;
        EXPECT_EQ(out, (std::array<std::uint8_t, 4>{0, 128, 255, 0})) << path;
    }
}

}  // namespace
}  // namespace assay::simkernel::test
