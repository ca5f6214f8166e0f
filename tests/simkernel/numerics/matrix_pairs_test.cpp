// Exhaustive operand pairs through run_matmul on every path: one activation a row, one weight a column.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "oracle.hpp"
#include "paths.hpp"
#include "samples.hpp"
#include "simkernel/numerics/matrix.hpp"

namespace assay::simkernel::test {
namespace {

MatmulFields outer_product(Dtype type, std::size_t m, std::size_t n) {
    const std::uint32_t size = type == Dtype::bf16 ? 2 : 1;
    MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(type);
    f.accumulate = 1;
    f.m_count = {static_cast<std::uint32_t>(m), 1, 1};
    f.a_m_stride = {static_cast<std::int32_t>(size), 0, 0};
    f.k_count = {1, 1, 1};
    f.n_count = static_cast<std::uint32_t>(n);
    f.w_stride = f.n_count * size;
    f.acc_stride = 4 * f.n_count;
    return f;
}
template <class T>
const std::byte* bytes(const std::vector<T>& v) { return reinterpret_cast<const std::byte*>(v.data()); }
template <class T>
std::byte* bytes(std::vector<T>& v) { return reinterpret_cast<std::byte*>(v.data()); }

TEST(MatrixPairs, EveryInt8PairWrapsAtBothEndsOfTheAccumulatorOnEveryPath) {
    std::vector<std::int8_t> all(256);
    for (int i = 0; i < 256; ++i) all[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(i - 128);
    const MatmulFields f = outer_product(Dtype::i8, 256, 256);
    std::vector<std::string> paths = all_paths();
    paths.emplace_back("definition");
    long checked = 0;
    for (const std::string& path : paths)
        for (const std::int32_t psum : {0, -1, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()}) {
            std::vector<std::int32_t> acc(65536, psum);
            if (path == "definition") {
                run_matmul_scalar(f, bytes(all), bytes(all), bytes(acc));
            } else {
                const PathScope scope(path);
                run_matmul(f, bytes(all), bytes(all), bytes(acc));
            }
            for (int a = -128; a < 128; ++a)
                for (int w = -128; w < 128; ++w, ++checked) {
                    const auto expected = static_cast<std::int32_t>(static_cast<std::uint32_t>(std::int64_t{psum} + a * w));
                    ASSERT_EQ(acc[static_cast<std::size_t>((a + 128) * 256 + w + 128)], expected) << path << ": psum " << psum << ", act " << a << ", weight " << w;
                }
        }
    EXPECT_EQ(checked, static_cast<long>(paths.size()) * 4 * 65536);
}

TEST(MatrixPairs, LongInt8ChainsWrapLikeTwosComplement) {
    // 1024 products of 128*128 from the largest accumulator: wraps, and would saturate or lose pairs in vpmaddubsw.
    MatmulFields f = outer_product(Dtype::i8, 7, 33);
    f.k_count = {1024, 1, 1};
    f.a_m_stride[0] = 1024;
    const std::vector<std::int8_t> a(7 * 1024, -128), w(1024 * 33, -128);
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        std::vector<std::int32_t> acc(7 * 33, std::numeric_limits<std::int32_t>::max());
        run_matmul(f, bytes(a), bytes(w), bytes(acc));
        for (const std::int32_t got : acc)
            ASSERT_EQ(got, static_cast<std::int32_t>(0x7FFFFFFFu + 1024u * 16384u)) << path;
    }
}

/// bf16 values of every sign and exponent with the significands 1, 1+ulp, 1.5, the one below 2 (and their NaN and subnormal namesakes).
std::vector<std::uint16_t> bf16_classes() {
    std::vector<std::uint16_t> out;
    for (std::uint32_t high = 0; high < 512; ++high)  // sign and exponent
        for (const std::uint32_t fraction : {0x00u, 0x01u, 0x40u, 0x7Fu}) out.push_back(static_cast<std::uint16_t>(high << 7 | fraction));
    return out;
}

TEST(MatrixPairs, EveryBf16PairClassAddsToEveryKindOfSumLikeTheExactOracleOnEveryPath) {
    const auto values = bf16_classes();
    const auto sums = corner_f32();
    const std::size_t n = values.size();
    const MatmulFields f = outer_product(Dtype::bf16, n, n);
    std::vector<std::uint32_t> start(n * n), expected(n * n);
    Rng rng(7);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            const std::uint32_t a = std::uint32_t{values[i]} << 16, w = std::uint32_t{values[j]} << 16;
            std::uint32_t& sum = start[i * n + j];
            switch (rng() % 3) {
                case 0: sum = sums[rng() % sums.size()]; break;
                case 1: sum = exact_fma(a, w, 0) ^ 0x80000000u ^ (rng() & 1u); break;  // cancels to at most one unit
                default: sum = rng(); break;
            }
            expected[i * n + j] = exact_fma(a, w, sum);
        }
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        std::vector<std::uint32_t> acc = start;
        run_matmul(f, bytes(values), bytes(values), bytes(acc));
        for (std::size_t i = 0; i < acc.size(); ++i)
            ASSERT_EQ(acc[i], expected[i]) << path << std::hex << ": act " << values[i / n] << ", weight " << values[i % n] << ", sum " << start[i];
    }
    EXPECT_EQ(expected.size(), std::size_t{2048} * 2048) << "512 sign-exponent classes by 4 significands, squared";
}

TEST(MatrixPairs, TwoMillionDirectedRandomChainsEqualBothOraclesInEveryStep) {
    constexpr std::size_t kM = 512, kN = 64, kK = 6, kRounds = 64;  // 512 * 64 * 64 = 2,097,152 chains of six steps
    MatmulFields f = outer_product(Dtype::bf16, kM, kN);
    f.k_count = {kK, 1, 1};
    f.a_m_stride[0] = 2 * kK;
    Rng rng(20261130);
    std::vector<std::uint16_t> a(kM * kK), w(kK * kN);
    std::vector<std::uint32_t> start(kM * kN), expected(kM * kN);
    const auto paths = all_paths();
    std::size_t chains = 0;
    for (std::size_t round = 0; round < kRounds; ++round) {
        for (auto& x : a) x = directed_bf16(rng);
        for (auto& x : w) x = directed_bf16(rng);
        for (std::size_t i = 0; i < start.size(); ++i) {
            start[i] = directed_f32(rng);
            std::uint32_t sum = start[i];
            for (std::size_t k = 0; k < kK; ++k) {
                const std::uint32_t x = std::uint32_t{a[i / kN * kK + k]} << 16, y = std::uint32_t{w[k * kN + i % kN]} << 16;
                const std::uint32_t next = exact_fma(x, y, sum);
                if (has_host_fma()) {
                    ASSERT_EQ(next, host_fma(x, y, sum)) << std::hex << x << " * " << y << " + " << sum;
                }
                sum = next;
            }
            expected[i] = sum;
        }
        // The slow baseline takes every eighth round; the others all of them.
        for (const std::string& path : paths) {
            if (path == "baseline" && round % 8 != 0) continue;
            const PathScope scope(path);
            std::vector<std::uint32_t> acc = start;
            run_matmul(f, bytes(a), bytes(w), bytes(acc));
            for (std::size_t i = 0; i < acc.size(); ++i) ASSERT_EQ(acc[i], expected[i]) << path << ": round " << round << ", chain " << i;
        }
        chains += start.size();
    }
    EXPECT_GE(chains, 2'000'000u);
}

}  // namespace
}  // namespace assay::simkernel::test
