// Speed of the Verilated matrix unit behind the seam: one dense accumulating descriptor, MAC/s on one core, beside the plain scalar loop of
// the same work in the same run. The answer is checked once before the clock starts.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>

#include "rtl_models/mxu_registry.hpp"
#include "rtl_models/rtl_units.hpp"
#include "tests/rtl_models/mxu_harness.hpp"

namespace assay::test {
namespace {

/// M = 256 rows of `rows` activations against rows x cols weights.
simkernel::MatmulFields dense(int rows, int cols, bool is_bf16) {
    const std::uint32_t size = is_bf16 ? 2 : 1;
    simkernel::MatmulFields f;
    f.dtype = static_cast<std::uint32_t>(is_bf16 ? simkernel::Dtype::bf16 : simkernel::Dtype::i8);
    f.accumulate = 1;
    f.m_count = {256, 1, 1};
    f.k_count = {static_cast<std::uint32_t>(rows), 1, 1};
    f.n_count = static_cast<std::uint32_t>(cols);
    f.a_m_stride = {static_cast<std::int32_t>(rows) * static_cast<std::int32_t>(size), 0, 0};
    f.w_addr = FakeCore::kSpmBytes / 2;
    f.w_stride = f.n_count * size;
    f.acc_addr = simkernel::kAccBit;
    f.acc_stride = 4 * f.n_count;
    return f;
}

void fill_small(FakeCore& core) {
    // Values near one, positive and negative: no overflow, no special case, as in a network's layers.
    std::mt19937 random(1);
    for (auto* memory : {&core.spm(), &core.acc()})
        for (std::size_t i = 0; i + 1 < memory->size(); i += 2) {
            const auto bits = static_cast<std::uint16_t>((random() & 1) << 15 | (0x3E80 + (random() & 0x1FF)));
            std::memcpy(memory->data() + i, &bits, 2);
        }
}

void rtl_mxu(benchmark::State& state, int rows, int cols, bool is_bf16) {
    const auto config = chip_config(rows, cols);
    FakeCore core(config);
    fill_small(core);
    const auto f = dense(rows, cols, is_bf16);
    const auto unit = rtl::make_mxu(config, core, {});
    auto expected = core.acc();
    reference(f, core.spm(), expected);
    (void)run(*unit, f, {}, 1'000'000);
    if (core.acc() != expected) {
        state.SkipWithError("wrong answer");
        return;
    }
    std::uint64_t cycles = 0;
    for (auto _ : state) {
        core.restart_time();
        cycles += run(*unit, f, {}, 1'000'000).cycles.count;
    }
    const double macs = 256.0 * rows * cols * static_cast<double>(state.iterations());
    state.counters["MAC/s"] = benchmark::Counter(macs, benchmark::Counter::kIsRate);
    state.counters["cycles/s"] = benchmark::Counter(static_cast<double>(cycles), benchmark::Counter::kIsRate);
}

void scalar_loop(benchmark::State& state, int rows, int cols, bool is_bf16) {
    FakeCore core(chip_config(rows, cols));
    fill_small(core);
    const auto f = dense(rows, cols, is_bf16);
    for (auto _ : state) reference(f, core.spm(), core.acc());
    state.counters["MAC/s"] =
        benchmark::Counter(256.0 * rows * cols * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace assay::test

int main(int argc, char** argv) {
    for (const auto& g : assay::rtl::mxu_registry())
        for (const bool is_bf16 : {false, true}) {
            const std::string size = std::to_string(g.rows) + "x" + std::to_string(g.cols) + (is_bf16 ? "_bf16" : "_i8") + "_m256";
            benchmark::RegisterBenchmark(("rtl_mxu_" + size).c_str(), assay::test::rtl_mxu, g.rows, g.cols, is_bf16);
            benchmark::RegisterBenchmark(("scalar_loop_" + size).c_str(), assay::test::scalar_loop, g.rows, g.cols, is_bf16);
        }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
}
