// Random and hand-made matmul descriptors: every path writes what the definition writes, and nothing else.
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "paths.hpp"
#include "samples.hpp"
#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel::test {
namespace {

struct Problem {
    MatmulFields f;
    std::vector<std::byte> a, w, acc;
    std::size_t a_origin = 0;  ///< a_addr: strides may be negative
};

std::uint32_t pick(Rng& rng, std::initializer_list<std::uint32_t> values) { return values.begin()[rng() % values.size()]; }

/// Any descriptor that decode accepts, up to about 200 rows and K, N of 300.
Problem random_problem(Rng& rng) {
    Problem p;
    MatmulFields& f = p.f;
    constexpr std::array kTypes{Dtype::i8, Dtype::i8, Dtype::bf16, Dtype::bf16, Dtype::f16, Dtype::f8e4m3, Dtype::f8e5m2};
    const Dtype type = kTypes[rng() % kTypes.size()];
    const std::int32_t size = type == Dtype::bf16 || type == Dtype::f16 ? 2 : 1;
    f.dtype = static_cast<std::uint32_t>(type);
    f.accumulate = rng() % 2;
    f.m_count = {pick(rng, {1, 2, 5, 8, 13, 31}), pick(rng, {1, 1, 2, 3}), pick(rng, {1, 1, 2})};
    f.k_count = {pick(rng, {1, 2, 3, 4, 8, 17, 32}), pick(rng, {1, 1, 2, 3}), pick(rng, {1, 1, 3})};
    f.n_count = pick(rng, {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100});
    if (rng() % 3 == 0) {  // grouped, often with a last period that is not full or with groups that have no columns
        f.group_k = pick(rng, {1, 1, 2, 3, 4});
        f.group_n = pick(rng, {1, 1, 2, 4, 8, 16});
        const std::uint32_t groups = std::max<std::uint32_t>(1, (f.n_count + f.group_n - 1) / f.group_n - rng() % 2);
        f.group_period = f.group_k * groups;
        if (rng() % 2 != 0) f.k_count = {f.group_period, pick(rng, {1, 2, 9}), 1};
    }
    const std::uint32_t depth = f.k_count[0] * f.k_count[1] * f.k_count[2];
    for (auto& s : f.a_m_stride) s = static_cast<std::int32_t>(rng() % 41) * size - 10 * size;
    for (auto& s : f.a_k_stride) s = rng() % 3 == 0 ? static_cast<std::int32_t>(f.k_count[0]) * size : static_cast<std::int32_t>(rng() % 41) * size - 10 * size;
    f.w_stride = (f.n_count + rng() % 4) * static_cast<std::uint32_t>(size);
    f.acc_stride = 4 * (f.n_count + rng() % 3);

    std::ptrdiff_t low = 0, high = size * static_cast<std::ptrdiff_t>(f.k_count[0]);
    const auto extend = [&](std::uint32_t count, std::int32_t stride) {
        const std::ptrdiff_t reach = static_cast<std::ptrdiff_t>(count - 1) * stride;
        (reach < 0 ? low : high) += reach;
    };
    for (std::size_t i = 0; i < 3; ++i) extend(f.m_count[i], f.a_m_stride[i]);
    for (std::size_t i = 0; i < 2; ++i) extend(f.k_count[i + 1], f.a_k_stride[i]);
    p.a_origin = static_cast<std::size_t>(-low);
    p.a.resize(static_cast<std::size_t>(high - low));
    p.w.resize(std::size_t{depth} * f.w_stride);
    p.acc.resize(std::size_t{f.m_count[0]} * f.m_count[1] * f.m_count[2] * f.acc_stride);
    const auto fill = [&](std::vector<std::byte>& to) {
        for (std::size_t i = 0; i + 1 < to.size(); i += 2) {
            const std::uint16_t bits = type == Dtype::bf16 ? directed_bf16(rng) : static_cast<std::uint16_t>(rng());
            std::memcpy(&to[i], &bits, 2);
        }
        if (to.size() % 2 != 0) to.back() = static_cast<std::byte>(rng());
    };
    fill(p.a), fill(p.w);
    static const std::vector<std::uint32_t> corners = corner_f32();
    for (std::size_t i = 0; i + 3 < p.acc.size(); i += 4) {
        // Zeros of both signs and non-finite sums show a pair that was multiplied by zero instead of skipped.
        const std::uint32_t bits = rng() % 3 == 0 ? corners[rng() % corners.size()] : rng() % 4 == 0 ? 0x80000000u : directed_f32(rng);
        std::memcpy(&p.acc[i], &bits, 4);
    }
    return p;
}

std::string describe(const MatmulFields& f) {
    std::ostringstream s;
    s << name_of(static_cast<Dtype>(f.dtype)) << " m";
    for (const auto c : f.m_count) s << ' ' << c;
    s << " k";
    for (const auto c : f.k_count) s << ' ' << c;
    s << " n " << f.n_count << " group_k " << f.group_k << " group_n " << f.group_n << " period " << f.group_period << " accumulate " << f.accumulate;
    return s.str();
}

TEST(MatrixRandom, EveryPathEqualsTheDefinitionAndTouchesNothingBetweenRows) {
    Rng rng(31337);
    set_worker_count(2);
    for (int round = 0; round < 1500; ++round) {
        const Problem p = random_problem(rng);
        std::vector<std::byte> expected = p.acc;
        run_matmul_scalar(p.f, p.a.data() + p.a_origin, p.w.data(), expected.data());
        for (const std::string& path : all_paths()) {
            const PathScope scope(path);
            std::vector<std::byte> got = p.acc;
            run_matmul(p.f, p.a.data() + p.a_origin, p.w.data(), got.data());
            ASSERT_EQ(got, expected) << path << ": round " << round << ": " << describe(p.f);
        }
    }
}

TEST(MatrixRandom, SplittingKThroughTheAccumulatorKeepsTheBits) {
    Rng rng(5);
    constexpr std::uint32_t kM = 40, kK = 96, kN = 24;
    std::vector<std::uint16_t> a(kM * kK), w(kK * kN);
    for (auto& x : a) x = directed_bf16(rng);
    for (auto& x : w) x = directed_bf16(rng);
    MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(Dtype::bf16);
    f.m_count = {kM, 1, 1};
    f.a_m_stride = {2 * kK, 0, 0};
    f.k_count = {kK, 1, 1};
    f.n_count = kN;
    f.w_stride = 2 * kN;
    f.acc_stride = 4 * kN;
    const auto* a_bytes = reinterpret_cast<const std::byte*>(a.data());
    const auto* w_bytes = reinterpret_cast<const std::byte*>(w.data());
    std::vector<std::byte> whole(4 * kM * kN), pieces(whole.size());
    run_matmul(f, a_bytes, w_bytes, whole.data());
    for (std::uint32_t first = 0, count = 1; first < kK; first += count, count = std::min(2 * count + 1, kK - first)) {
        f.k_count[0] = count;
        f.accumulate = first != 0;
        run_matmul(f, a_bytes + 2 * first, w_bytes + std::size_t{2} * first * kN, pieces.data());
    }
    EXPECT_EQ(whole, pieces);
}

TEST(MatrixRandom, TheNumberOfThreadsDoesNotShow) {
    Rng rng(6);
    MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(Dtype::bf16);
    f.m_count = {700, 1, 1};
    f.a_m_stride = {128, 0, 0};
    f.k_count = {64, 1, 1};
    f.n_count = 48;
    f.w_stride = 96;
    f.acc_stride = 192;
    std::vector<std::uint16_t> a(700 * 64), w(64 * 48);
    for (auto& x : a) x = directed_bf16(rng);
    for (auto& x : w) x = directed_bf16(rng);
    std::vector<std::byte> expected;
    for (const unsigned threads : {1u, 2u, 5u}) {
        set_worker_count(threads);
        std::vector<std::byte> acc(700 * 192);
        run_matmul(f, reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(w.data()), acc.data());
        if (expected.empty()) expected = acc;
        EXPECT_EQ(acc, expected) << threads << " threads";
    }
    set_worker_count(2);
}

TEST(MatrixRandom, GroupsSkipPairsInsteadOfMultiplyingByZero) {
    // Depthwise over two channels, -0 sums and an infinite weight outside the groups: a multiplication by zero would give +0 and NaN.
    MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(Dtype::bf16);
    f.accumulate = 1;
    f.m_count = {1, 1, 1};
    f.k_count = {2, 1, 1};
    f.n_count = 2;
    f.w_stride = 4;
    f.acc_stride = 8;
    f.group_k = f.group_n = 1;
    f.group_period = 2;
    const std::array<std::uint16_t, 2> a{0x8000, 0x0000};
    const std::array<std::uint16_t, 4> w{0x3F80, 0x7F80, 0x7F80, 0x3F80};
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        std::array<std::uint32_t, 2> acc{0x80000000u, 0x80000000u};
        run_matmul(f, reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(w.data()), reinterpret_cast<std::byte*>(acc.data()));
        EXPECT_EQ(acc[0], 0x80000000u) << path << ": -0 * 1 + -0";
        EXPECT_EQ(acc[1], 0x00000000u) << path << ": +0 * 1 + -0";
    }
    EXPECT_EQ(matmul_macs(f), 2u);
}

TEST(MatrixRandom, MacsCountOnlyPairsThatTakePart) {
    Rng rng(8);
    for (int round = 0; round < 200; ++round) {
        const MatmulFields f = random_problem(rng).f;
        std::uint64_t pairs = 0;
        for (std::uint32_t k = 0; k < f.k_count[0] * f.k_count[1] * f.k_count[2]; ++k)
            for (std::uint32_t n = 0; n < f.n_count; ++n) pairs += f.group_k == 0 || k % f.group_period / f.group_k == n / f.group_n;
        ASSERT_EQ(matmul_macs(f), pairs * f.m_count[0] * f.m_count[1] * f.m_count[2]) << describe(f);
    }
}

}  // namespace
}  // namespace assay::simkernel::test
