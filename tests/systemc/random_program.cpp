#include "tests/systemc/random_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/simkernel/random_descriptors.hpp"

namespace assay::chip::testing {
namespace {

namespace p = simkernel::testing;
using simkernel::AccessRange;

constexpr std::uint64_t kHbmBase = p::RandomDescriptors::kHbmBase, kHbmBytes = p::RandomDescriptors::kHbmBytes;

/// First and one past the last byte that a range may touch.
std::pair<std::int64_t, std::int64_t> bounds(const AccessRange& range) {
    auto low = static_cast<std::int64_t>(range.base), high = low + static_cast<std::int64_t>(range.run);
    for (const auto& [count, stride] : range.dims) (stride < 0 ? low : high) += stride * (static_cast<std::int64_t>(count) - 1);
    return {low, high};
}

bool conflict(const std::vector<AccessRange>& a, const std::vector<AccessRange>& b) {
    for (const AccessRange& x : a)
        for (const AccessRange& y : b) {
            if (x.space != y.space || (!x.write && !y.write)) continue;
            const auto [x_low, x_high] = bounds(x);
            const auto [y_low, y_high] = bounds(y);
            if (x_low < y_high && y_low < x_high) return true;
        }
    return false;
}

}  // namespace

Program random_program(std::mt19937_64& random, std::size_t descriptors, const simkernel::ChipConfig& config) {
    p::RandomDescriptors source(random, config);
    Program program;
    std::vector<simkernel::Engine> engines;
    std::vector<std::vector<AccessRange>> touched;
    std::array<std::uint32_t, 5> retired{};  // semaphore e counts the descriptors of engine e
    std::vector<std::uint32_t> ordinal;
    for (std::size_t i = 0; i < descriptors; ++i) {
        DescriptorWords words = source.next();
        simkernel::Decoded decoded;
        const simkernel::Fault fault = simkernel::decode(words, config, decoded);
        EXPECT_FALSE(fault) << fault.text;
        touched.push_back(simkernel::accesses(decoded, config));
        engines.push_back(decoded.engine);
        ordinal.push_back(++retired[static_cast<std::size_t>(decoded.engine)]);
        std::array<std::uint32_t, 5> awaited{};
        for (std::size_t j = 0; j < i; ++j)
            if (engines[j] != decoded.engine && conflict(touched[i], touched[j])) awaited[static_cast<std::size_t>(engines[j])] = ordinal[j];
        std::vector<p::Wait> waits;
        for (std::uint32_t e = 0; e < awaited.size(); ++e)
            if (awaited[e] != 0) waits.push_back({e, awaited[e]});
        p::add_waits(words, waits);
        p::add_signal(words, static_cast<std::uint32_t>(decoded.engine));
        program.push_back(words);
    }
    return program;
}

namespace {

/// One program on chip and interpreter; cycles of the job.
std::uint64_t compare(Bench& bench, const Program& program, std::uint32_t contents_seed) {
    const auto contents = pattern(kHbmBytes, contents_seed);
    simkernel::SparseMemory memory(static_cast<std::uint64_t>(bench.config.hbm_bytes));
    simkernel::HbmOnly hbm(memory);
    EXPECT_TRUE(memory.write(kHbmBase, std::as_bytes(std::span(contents))));
    simkernel::Interpreter interpreter(bench.config, hbm);
    EXPECT_EQ(interpreter.run(program).status, JobStatus::done);

    bench.reset(2);
    bench.put_values(kHbmBase, contents);
    const auto record = bench.run(program);
    EXPECT_EQ(record.status, static_cast<std::uint32_t>(JobStatus::done)) << bench.chip.wait_graph();
    std::vector<std::byte> expected(kHbmBytes);
    EXPECT_TRUE(memory.read(kHbmBase, expected));
    EXPECT_TRUE(bench.get(kHbmBase, kHbmBytes) == expected) << "HBM";
    const auto same = [&](std::span<const std::byte> bytes, std::uint64_t address) {
        return std::ranges::equal(bench.get(address, bytes.size()), bytes);
    };
    EXPECT_TRUE(same(interpreter.local().scratchpad(), region::spm)) << "scratchpad";
    EXPECT_TRUE(same(interpreter.local().accumulator(), region::acc)) << "accumulator";
    return bench.cycles(record);
}

}  // namespace

std::vector<std::uint64_t> expect_interpreters_bytes(int programs, std::uint64_t seed, const simkernel::ChipConfig& config, ChipOptions options) {
    Bench bench(config, std::move(options));
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> cycles;
    for (int i = 0; i < programs && !::testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE("program " + std::to_string(i) + " of seed " + std::to_string(seed));
        const Program program = random_program(random, 10 + random() % 50, config);
        cycles.push_back(compare(bench, program, static_cast<std::uint32_t>(i)));
    }
    return cycles;
}

}  // namespace assay::chip::testing
