// Random vector descriptors: every path and thread count writes what the definition writes, saturation status included.
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "paths.hpp"
#include "samples.hpp"
#include "simkernel/numerics/formats.hpp"
#include "simkernel/numerics/vector.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel::test {
namespace {

std::size_t size_of(Dtype type) {
    if (type == Dtype::bf16 || type == Dtype::f16) return 2;
    return type == Dtype::i32 || type == Dtype::f32 ? 4 : 1;
}
std::uint32_t pick(Rng& rng, std::initializer_list<std::uint32_t> values) { return values.begin()[rng() % values.size()]; }

/// Memory that one stream or output reaches, with the place of index 0 in it.
struct Array {
    std::vector<std::byte> bytes;
    std::size_t origin = 0;
};
Array array_for(const std::array<std::uint32_t, 5>& count, const std::array<std::int32_t, 5>& stride, std::size_t cell_bytes) {
    std::ptrdiff_t low = 0, high = static_cast<std::ptrdiff_t>(cell_bytes);
    for (std::size_t d = 0; d < 5; ++d) {
        const std::ptrdiff_t reach = static_cast<std::ptrdiff_t>(count[d] - 1) * stride[d];
        (reach < 0 ? low : high) += reach;
    }
    return {std::vector<std::byte>(static_cast<std::size_t>(high - low)), static_cast<std::size_t>(-low)};
}
void fill(Array& array, Dtype type, Rng& rng) {
    for (std::size_t i = 0; i + 4 <= array.bytes.size(); i += 4) {
        const std::uint32_t bits = type == Dtype::bf16 ? directed_bf16(rng) | std::uint32_t{directed_bf16(rng)} << 16 : directed_f32(rng);
        std::memcpy(&array.bytes[i], &bits, 4);
    }
}

struct Problem {
    VectorFields f;
    int lanes = 32;
    std::array<Array, 3> in;
    Array out;
    std::array<const std::byte*, 3> pointers() const {
        std::array<const std::byte*, 3> p{};
        for (std::size_t s = 0; s < 3; ++s) p[s] = in[s].bytes.empty() ? nullptr : in[s].bytes.data() + in[s].origin;
        return p;
    }
};

void random_strides(std::array<std::int32_t, 5>& stride, const std::array<std::uint32_t, 5>& count, std::size_t size, Rng& rng, bool output) {
    const auto element = static_cast<std::int32_t>(size);
    const std::uint32_t kind = rng() % 4;
    std::int32_t reach = element;
    for (std::size_t d = 0; d < 5; ++d) {
        stride[d] = reach + (kind == 1 ? static_cast<std::int32_t>(rng() % 3) * element : 0);  // dense, or padded
        reach = stride[d] * static_cast<std::int32_t>(count[d]);
    }
    if (kind == 2) std::swap(stride[0], stride[1]);  // outputs may then overlap themselves: last one in index order stays
    if (kind == 3 && !output) stride[rng() % 5] = 0;
    if (rng() % 5 == 0) stride[rng() % 2] *= -1;
}

Problem random_problem(Rng& rng) {
    Problem p;
    VectorFields& f = p.f;
    p.lanes = static_cast<int>(pick(rng, {1, 2, 8, 32, 128}));
    f.count = {pick(rng, {1, 2, 5, 31, 32, 33, 100, 513}), pick(rng, {1, 2, 7, 40}), pick(rng, {1, 1, 3}), pick(rng, {1, 1, 2}), pick(rng, {1, 1, 2})};
    f.in_used = rng() % 8;
    const bool reduces = rng() % 2 != 0;
    if (reduces) {
        f.reduce = 1 + rng() % 6;
        f.reduce_lanes = rng() % 2;
        f.reduce_dims = rng() % 5;
        f.carry_in = rng() % 4 == 0;
        f.carry_out = rng() % 4 == 0;
        if (f.carry_in) f.in_used &= 3u;
    }
    for (auto& imm : f.imm) imm = rng() % 3 == 0 ? static_cast<std::uint32_t>(rng() % 64) : directed_f32(rng);
    std::vector<unsigned> sources;
    for (unsigned i = 0; i < 4; ++i) sources.push_back(i), sources.push_back(kUopImm + 2 * i);
    for (unsigned s = 0; s < 3; ++s)
        if ((f.in_used >> s & 1u) != 0) sources.insert(sources.end(), 3, kUopIn + s);
    f.pre_count = rng() % 9;
    f.post_count = reduces && !f.carry_out ? rng() % 5 : 0;
    for (std::size_t i = 0; i < f.pre_count + f.post_count; ++i)
        f.uop[i] = encode_uop(kAllUop[rng() % kAllUop.size()], static_cast<unsigned>(rng() % 4), sources[rng() % sources.size()],
                              sources[rng() % sources.size()], sources[rng() % sources.size()]);
    if (f.pre_count > 0 && sources.size() > 8) f.uop[f.pre_count - 1] = encode_uop(rng() % 2 ? Uop::mov : Uop::f32_to_i32, 0, sources.back());

    for (std::size_t s = 0; s < 3; ++s) {
        if ((f.in_used >> s & 1u) == 0) continue;
        f.in_type[s] = rng() % static_cast<std::uint32_t>(kAllDtype.size());
        auto& stride = s == 0 ? f.in0_stride : s == 1 ? f.in1_stride : f.in2_stride;
        random_strides(stride, f.count, size_of(static_cast<Dtype>(f.in_type[s])), rng, false);
        p.in[s] = array_for(f.count, stride, size_of(static_cast<Dtype>(f.in_type[s])));
        fill(p.in[s], static_cast<Dtype>(f.in_type[s]), rng);
    }
    f.out_type = rng() % static_cast<std::uint32_t>(kAllDtype.size());
    if (f.out_type == static_cast<std::uint32_t>(Dtype::f8e4m3) || f.out_type == static_cast<std::uint32_t>(Dtype::f8e5m2)) f.f8_overflow = rng() % 2;
    std::array<std::uint32_t, 5> results = f.count;
    if (reduces) {
        for (std::size_t d = 1; d <= f.reduce_dims; ++d) results[d] = 1;
        if (f.reduce_lanes || f.carry_out) results[0] = 1;
    }
    const std::size_t live = f.reduce_lanes ? std::min<std::size_t>(f.count[0], static_cast<std::size_t>(p.lanes)) : f.count[0];
    const std::size_t cell = f.carry_out ? 4 * live : size_of(static_cast<Dtype>(f.out_type));
    random_strides(f.out_stride, results, cell, rng, true);
    for (std::size_t d = 0; d < 5; ++d)
        if (results[d] == 1) f.out_stride[d] = 0;
    p.out = array_for(results, f.out_stride, cell);
    fill(p.out, Dtype::f32, rng);
    if (f.carry_in) {
        std::size_t groups = 1;
        for (std::size_t d = f.reduce_dims + 1; d < 5; ++d) groups *= f.count[d];
        p.in[2].bytes.resize(4 * live * groups);
        fill(p.in[2], Dtype::f32, rng);
    }
    return p;
}

std::string describe(const Problem& p) {
    std::ostringstream s;
    s << "count";
    for (const auto c : p.f.count) s << ' ' << c;
    s << ", lanes " << p.lanes << ", reduce " << name_of(static_cast<Reduce>(p.f.reduce)) << " lanes " << p.f.reduce_lanes << " dims " << p.f.reduce_dims
      << " carry " << p.f.carry_in << p.f.carry_out << ", out " << name_of(static_cast<Dtype>(p.f.out_type)) << ':';
    for (std::size_t i = 0; i < p.f.pre_count + p.f.post_count; ++i) s << ' ' << name_of(static_cast<Uop>(p.f.uop[i] & 255u));
    return s.str();
}

TEST(VectorRandom, EveryPathEqualsTheDefinition) {
    Rng rng(271828);
    int saturated = 0;
    for (int round = 0; round < 1200; ++round) {
        const Problem p = random_problem(rng);
        set_worker_count(1 + rng() % 3);
        Array expected = p.out;
        const VectorStatus status = run_vector_scalar(p.f, p.pointers(), expected.bytes.data() + expected.origin, p.lanes);
        saturated += status.saturated;
        for (const std::string& path : all_paths()) {
            const PathScope scope(path);
            Array got = p.out;
            const VectorStatus fast = run_vector(p.f, p.pointers(), got.bytes.data() + got.origin, p.lanes);
            ASSERT_EQ(got.bytes, expected.bytes) << path << ": round " << round << ": " << describe(p);
            ASSERT_EQ(fast.saturated, status.saturated) << path << ": round " << round << ": " << describe(p);
        }
    }
    EXPECT_GT(saturated, 10) << "the sweep must reach saturation";
    EXPECT_LT(saturated, 1190) << "and its absence";
}

TEST(VectorRandom, Bf16ConversionsBothWaysEqualTheDefinitionOnTiesAndEveryPattern) {
    VectorFields f;
    f.in_used = 1;
    f.uop[0] = encode_uop(Uop::mov, 0, kUopIn);
    f.pre_count = 1;
    std::vector<std::uint32_t> wide;  // each bf16 as fp32, with the ties above it and their neighbours
    std::vector<std::uint16_t> narrow;
    for (std::uint32_t high = 0; high < 0x10000; ++high) {
        narrow.push_back(static_cast<std::uint16_t>(high));
        for (const std::uint32_t low : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u}) wide.push_back(high << 16 | low);
    }
    const auto run = [&](Dtype from, Dtype to, const void* in, void* out, std::size_t count) {
        f.in_type[0] = static_cast<std::uint32_t>(from);
        f.out_type = static_cast<std::uint32_t>(to);
        f.count = {static_cast<std::uint32_t>(count), 1, 1, 1, 1};
        f.in0_stride[0] = static_cast<std::int32_t>(size_of(from));
        f.out_stride[0] = static_cast<std::int32_t>(size_of(to));
        run_vector(f, {static_cast<const std::byte*>(in), nullptr, nullptr}, static_cast<std::byte*>(out), 32);
    };
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        std::vector<std::uint16_t> rounded(wide.size());
        run(Dtype::f32, Dtype::bf16, wide.data(), rounded.data(), wide.size());
        for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(rounded[i], bf16_from_f32(wide[i])) << path << std::hex << ": " << wide[i];
        std::vector<std::uint32_t> widened(narrow.size());
        run(Dtype::bf16, Dtype::f32, narrow.data(), widened.data(), narrow.size());
        for (std::size_t i = 0; i < narrow.size(); ++i) ASSERT_EQ(widened[i], f32_from_bf16(narrow[i])) << path << std::hex << ": " << narrow[i];
    }
}

TEST(VectorRandom, InPlaceAndOverlappingOutputsFollowIndexOrder) {
    // x[i+1] = x[i] + 1 through memory: defined only in index order, so every path must fall back to it; and the harmless x[i] += 1.
    VectorFields f;
    f.count = {2000, 1, 1, 1, 1};
    f.in_used = 1;
    f.in_type[0] = f.out_type = static_cast<std::uint32_t>(Dtype::i32);
    f.in0_stride[0] = f.out_stride[0] = 4;
    f.imm[0] = 1;
    f.uop[0] = encode_uop(Uop::add_i32, 0, kUopIn, kUopImm);
    f.pre_count = 1;
    for (const std::string& path : all_paths()) {
        const PathScope scope(path);
        std::vector<std::int32_t> x(2001, 5);
        auto* bytes = reinterpret_cast<std::byte*>(x.data());
        run_vector(f, {bytes, nullptr, nullptr}, bytes, 32);
        for (std::size_t i = 0; i < 2000; ++i) ASSERT_EQ(x[i], 6) << path;
        run_vector(f, {bytes, nullptr, nullptr}, bytes + 4, 32);
        for (std::size_t i = 0; i <= 2000; ++i) ASSERT_EQ(x[i], 6 + static_cast<std::int32_t>(i)) << path;
    }
}

}  // namespace
}  // namespace assay::simkernel::test
