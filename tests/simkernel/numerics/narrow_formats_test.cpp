// fp16 and fp8: every value read, every rounding boundary written, by the definition and on every path; every fp8 pair through the matrix unit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "oracle.hpp"
#include "paths.hpp"
#include "samples.hpp"
#include "simkernel/numerics/formats.hpp"
#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/vector.hpp"

namespace assay::simkernel::test {
namespace {

struct Case {
    const char* name;
    Dtype type;
    NarrowFormat format;
    double largest, least;  ///< largest finite, least subnormal: from the formats' own documents
};
const Case kCases[] = {{"f16", Dtype::f16, kF16, 65504, 0x1p-24},
                       {"f8e4m3", Dtype::f8e4m3, kF8E4M3, 448, 0x1p-9},
                       {"f8e5m2", Dtype::f8e5m2, kF8E5M2, 57344, 0x1p-16}};

/// The value of a pattern by its fields; NaN and infinity by the rules of the two standards.
double value_of(const Case& c, std::uint32_t bits) {
    const int exponent_bits = c.format.bits - 1 - c.format.fraction;
    const std::uint32_t field = bits >> c.format.fraction & ((1u << exponent_bits) - 1), fraction = bits & ((1u << c.format.fraction) - 1);
    const double sign = bits >> (c.format.bits - 1) ? -1 : 1;
    const bool top = field == (1u << exponent_bits) - 1;
    if (c.type == Dtype::f8e4m3 ? top && fraction == 7 : top && fraction != 0) return NAN;
    if (c.type != Dtype::f8e4m3 && top) return sign * HUGE_VAL;
    if (field == 0) return sign * std::ldexp(fraction, 1 - c.format.bias - c.format.fraction);
    return sign * std::ldexp((1u << c.format.fraction) + fraction, static_cast<int>(field) - c.format.bias - c.format.fraction);
}

/// Nearest even by searching the list of all finite magnitudes: no arithmetic on bits.
Narrowed nearest(const Case& c, const std::vector<double>& magnitudes, std::uint32_t input, bool saturate) {
    const std::uint32_t read = canonical32(input), sign = read >> 31 << (c.format.bits - 1);
    const double x = std::fabs(static_cast<double>(std::bit_cast<float>(read)));
    if (std::isnan(x)) return {c.type == Dtype::f16 ? 0x7E00u : 0x7Fu, false};
    const auto largest = static_cast<std::uint32_t>(magnitudes.size() - 1);
    // Where the next value would be, were there one more exponent: the tie goes to the even pattern.
    const double step = magnitudes[largest] - magnitudes[largest - 1], tie = magnitudes[largest] + step / 2;
    if (x > tie || (x == tie && largest % 2 != 0)) {
        if (saturate) return {sign | largest, true};
        return {c.type == Dtype::f8e4m3 ? 0x7Fu : sign | (largest + 1), false};
    }
    const auto above = static_cast<std::uint32_t>(std::lower_bound(magnitudes.begin(), magnitudes.end(), x) - magnitudes.begin());
    if (above > largest) return {sign | largest, false};
    if (above == 0 || magnitudes[above] == x) return {sign | above, false};
    const double low = x - magnitudes[above - 1], high = magnitudes[above] - x;
    return {sign | (low < high || (low == high && above % 2 != 0) ? above - 1 : above), false};
}

std::vector<double> magnitudes_of(const Case& c) {
    std::vector<double> out;
    for (std::uint32_t m = 0; std::isfinite(value_of(c, m)) && m < 1u << (c.format.bits - 1); ++m) out.push_back(value_of(c, m));
    return out;
}

/// Every value of the format, every tie and the floats beside each, both signs, the ends of fp32, and random patterns.
std::vector<std::uint32_t> inputs_for(const std::vector<double>& magnitudes) {
    std::vector<std::uint32_t> out;
    const auto add = [&](double x) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
        for (std::uint32_t delta = 0; delta < 3; ++delta)
            for (const std::uint32_t sign : {0u, kSign32}) out.push_back(sign | ((bits + delta - 1) & ~kSign32));
    };
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
        add(magnitudes[i]);
        add(i + 1 < magnitudes.size() ? (magnitudes[i] + magnitudes[i + 1]) / 2 : magnitudes[i] + (magnitudes[i] - magnitudes[i - 1]) / 2);
    }
    for (const std::uint32_t bits : corner_f32()) out.push_back(bits);
    Rng rng(41);
    for (int i = 0; i < 300'000; ++i) out.push_back(rng());
    for (int i = 0; i < 300'000; ++i) {  // near the format's range
        const auto exponent = static_cast<std::uint32_t>(96 + rng() % 64);
        out.push_back((rng() & 0x807F'FFFFu) | exponent << 23);
    }
    return out;
}

TEST(NarrowFormats, EveryPatternReadsAsItsValue) {
    int checked = 0;
    for (const Case& c : kCases) {
        double largest = 0, least = HUGE_VAL;
        for (std::uint32_t bits = 0; bits < 1u << c.format.bits; ++bits, ++checked) {
            const double want = value_of(c, bits);
            const std::uint32_t got = f32_from_narrow(c.format, bits);
            if (std::isnan(want)) {
                EXPECT_EQ(got, kNan32) << c.name << ' ' << bits;
                EXPECT_EQ(narrow_from_f32(c.format, got, true).bits, c.format.nan) << c.name << ' ' << bits;
                continue;
            }
            EXPECT_EQ(std::bit_cast<float>(got), want) << c.name << ' ' << bits;
            EXPECT_EQ(got >> 31, bits >> (c.format.bits - 1)) << c.name << ": the sign of " << bits;
            if (std::isinf(want)) continue;
            EXPECT_EQ(narrow_from_f32(c.format, got, true).bits, bits) << c.name << ": round trip";
            largest = std::max(largest, want);
            if (want > 0) least = std::min(least, want);
        }
        EXPECT_EQ(largest, c.largest) << c.name;
        EXPECT_EQ(least, c.least) << c.name;
    }
    EXPECT_EQ(checked, 65536 + 256 + 256);
}

TEST(NarrowFormats, ConversionIsTheNearestValueAtEveryTieAndBesideIt) {
    for (const Case& c : kCases) {
        const auto magnitudes = magnitudes_of(c);
        std::size_t saturations = 0;
        for (const std::uint32_t x : inputs_for(magnitudes))
            for (const bool saturate : {false, true}) {
                const Narrowed got = narrow_from_f32(c.format, x, saturate), want = nearest(c, magnitudes, x, saturate);
                ASSERT_EQ(got.bits, want.bits) << c.name << std::hex << ": " << x << (saturate ? ", saturating" : "");
                ASSERT_EQ(got.saturated, want.saturated) << c.name << std::hex << ": " << x;
                saturations += want.saturated;
            }
        EXPECT_GT(saturations, 1000u) << c.name;
    }
}

VectorStatus convert(Dtype from, Dtype to, bool overflow, const void* in, std::size_t from_bytes, void* out, std::size_t to_bytes, std::size_t count) {
    VectorFields f;
    f.in_used = 1;
    f.uop[0] = encode_uop(Uop::mov, 0, kUopIn);
    f.pre_count = 1;
    f.in_type[0] = static_cast<std::uint32_t>(from);
    f.out_type = static_cast<std::uint32_t>(to);
    f.f8_overflow = overflow;
    f.count = {static_cast<std::uint32_t>(count), 1, 1, 1, 1};
    f.in0_stride[0] = static_cast<std::int32_t>(from_bytes);
    f.out_stride[0] = static_cast<std::int32_t>(to_bytes);
    return run_vector(f, {static_cast<const std::byte*>(in), nullptr, nullptr}, static_cast<std::byte*>(out), 32);
}

TEST(NarrowFormats, EveryPathConvertsAsTheDefinitionDoesAndTellsOfSaturation) {
    for (const Case& c : kCases) {
        const std::size_t size = static_cast<std::size_t>(c.format.bits) / 8;
        const auto inputs = inputs_for(magnitudes_of(c));
        std::vector<std::byte> patterns((std::size_t{1} << c.format.bits) * size);
        for (std::uint32_t i = 0; i < 1u << c.format.bits; ++i) std::memcpy(&patterns[i * size], &i, size);
        for (const std::string& path : all_paths()) {
            const PathScope scope(path);
            std::vector<std::uint32_t> wide(std::size_t{1} << c.format.bits);
            convert(c.type, Dtype::f32, false, patterns.data(), size, wide.data(), 4, wide.size());
            for (std::uint32_t i = 0; i < wide.size(); ++i) ASSERT_EQ(wide[i], f32_from_narrow(c.format, i)) << path << ' ' << c.name << std::hex << ' ' << i;
            for (const bool overflow : {false, true}) {
                if (overflow && c.type == Dtype::f16) continue;
                const bool saturate = c.type != Dtype::f16 && !overflow;
                std::vector<std::byte> out(inputs.size() * size);
                convert(Dtype::f32, c.type, overflow, inputs.data(), 4, out.data(), size, inputs.size());
                for (std::size_t i = 0; i < inputs.size(); ++i) {
                    std::uint32_t got = 0;
                    std::memcpy(&got, &out[i * size], size);
                    ASSERT_EQ(got, narrow_from_f32(c.format, inputs[i], saturate).bits) << path << ' ' << c.name << std::hex << ": " << inputs[i];
                }
            }
            if (c.type == Dtype::f16) continue;
            for (const float x : {static_cast<float>(c.largest), static_cast<float>(4 * c.largest), static_cast<float>(NAN), -HUGE_VALF}) {
                std::uint8_t out = 0;
                const bool clipped = std::fabs(x) > c.largest;
                EXPECT_EQ(convert(Dtype::f32, c.type, false, &x, 4, &out, 1, 1).saturated, clipped) << path << ' ' << c.name << ' ' << x;
                EXPECT_FALSE(convert(Dtype::f32, c.type, true, &x, 4, &out, 1, 1).saturated) << path << ' ' << c.name << ' ' << x;
            }
        }
    }
}

MatmulFields outer_product(Dtype type, std::uint32_t n, std::uint32_t size) {
    MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(type);
    f.accumulate = 1;
    f.m_count = {n, 1, 1};
    f.a_m_stride = {static_cast<std::int32_t>(size), 0, 0};
    f.k_count = {1, 1, 1};
    f.n_count = n;
    f.w_stride = n * size;
    f.acc_stride = 4 * n;
    return f;
}

TEST(NarrowFormats, EveryFp8PairAndEveryClassOfFp16PairsAddsToAnySumLikeTheExactOracle) {
    Rng rng(77);
    const auto sums = corner_f32();
    std::vector<std::string> paths = all_paths();
    paths.emplace_back("definition");
    std::size_t checked = 0;
    for (const Case& c : kCases) {
        const std::uint32_t size = static_cast<std::uint32_t>(c.format.bits) / 8;
        std::vector<std::uint32_t> patterns;
        for (std::uint32_t bits = 0; bits < 1u << c.format.bits; ++bits)
            if (size == 1 || (bits & 0x3FFu) < 3 || (bits & 0x3FFu) == 0x200 || (bits & 0x3FFu) > 0x3FD) patterns.push_back(bits);
        const std::size_t n = patterns.size();
        std::vector<std::byte> values(n * size);
        for (std::size_t i = 0; i < n; ++i) std::memcpy(&values[i * size], &patterns[i], size);
        std::vector<std::uint32_t> start(n * n), expected(n * n);
        for (std::size_t i = 0; i < start.size(); ++i) {
            const auto read = [&](std::uint32_t bits) { return std::bit_cast<std::uint32_t>(static_cast<float>(value_of(c, bits))); };
            const std::uint32_t a = read(patterns[i / n]), w = read(patterns[i % n]);
            start[i] = rng() % 2 ? sums[rng() % sums.size()] : rng() % 2 ? exact_fma(a, w, 0) ^ kSign32 ^ (rng() & 1u) : rng();
            expected[i] = exact_fma(a, w, start[i]);
        }
        const MatmulFields f = outer_product(c.type, static_cast<std::uint32_t>(n), size);
        for (const std::string& path : paths) {
            std::vector<std::uint32_t> acc = start;
            auto* out = reinterpret_cast<std::byte*>(acc.data());
            if (path == "definition") {
                run_matmul_scalar(f, values.data(), values.data(), out);
            } else {
                const PathScope scope(path);
                run_matmul(f, values.data(), values.data(), out);
            }
            for (std::size_t i = 0; i < acc.size(); ++i, ++checked)
                ASSERT_EQ(acc[i], expected[i]) << path << ' ' << c.name << std::hex << ": " << patterns[i / n] << " * " << patterns[i % n] << " + " << start[i];
        }
    }
    EXPECT_EQ(checked, paths.size() * (384u * 384u + 2 * 65536u));
}

}  // namespace
}  // namespace assay::simkernel::test
