// The runtime on the SystemC chip, with behavioural and Verilated units. One TEST a process: SystemC elaborates once.
#include "switchover/runtime.hpp"

#include <random>

#include <gtest/gtest.h>
#include <systemc>

#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "tests/simkernel/program_builder.hpp"

namespace assay::switchover {
namespace {

using namespace simkernel;
using namespace simkernel::testing;

constexpr std::uint32_t kM = 16, kK = 8, kN = 8;

Program gemm() {
    Program p;
    p.chip = "aurum-nano";
    p.config_hash = config_hash(nano());
    p.precision = "native";
    p.descriptors = gemm_program(kM, kK, kN);
    p.debug.assign(p.descriptors.size(), {0, 0});
    Constant weights{DeviceAddr{0x2000}, std::vector<std::byte>(kK * kN)};
    for (std::size_t i = 0; i < weights.bytes.size(); ++i) weights.bytes[i] = static_cast<std::byte>(i * 37);
    p.constants.push_back(weights);
    p.tensors.push_back({"x", DType::i8, {kM, kK}, {0, 1}, false, DeviceAddr{0x1000}, kM * kK, Role::input});
    p.tensors.push_back({"y", DType::i32, {kM, kN}, {0, 1}, false, DeviceAddr{0x3000}, 4 * kM * kN, Role::output});
    p.layers.push_back({"gemm", "Gemm", {0}, {"x"}, {"y"}, "int8", kM * kK * kN, 2 * kM * kK * kN, kK, "", 0, 5});
    p.hbm_bytes = 0x4000;
    return p;
}

std::map<std::string, Tensor> inputs() {
    Tensor x(DType::i8, {kM, kK});
    for (std::size_t i = 0; i < x.bytes.size(); ++i) x.bytes[i] = static_cast<std::byte>(i * 73 + 5);
    return {{"x", x}};
}

Tensor expected(const Program& p) {
    Tensor y(DType::i32, {kM, kN});
    const Tensor x = inputs().at("x");
    for (std::uint32_t i = 0; i < kM; ++i)
        for (std::uint32_t j = 0; j < kN; ++j)
            for (std::uint32_t k = 0; k < kK; ++k)
                y.as<std::int32_t>()[i * kN + j] += x.as<std::int8_t>()[i * kK + k] * static_cast<std::int8_t>(p.constants[0].bytes[k * kN + j]);
    return y;
}

TargetOptions options() {
    TargetOptions o;
    o.chip = nano();
    return o;
}

void runs_gemm(const std::string& name, const TargetOptions& target_options) {
    const auto target = make_target(name, target_options);
    Runtime runtime(*target);
    const Program p = gemm();
    std::uint64_t cycles = 0;
    for (int run = 0; run < 2; ++run) {
        RunOptions run_options;
        run_options.sanitize = true;
        const auto result = runtime.run(p, inputs(), run_options);
        ASSERT_TRUE(result.ok()) << result.error().text;
        const RunResult& r = result.value();
        EXPECT_EQ(r.completion.status, static_cast<std::uint32_t>(JobStatus::done));
        EXPECT_EQ(r.tensors.at("y"), expected(p)) << name;
        EXPECT_TRUE(r.findings.empty());
        EXPECT_TRUE(r.unwritten.empty());
        EXPECT_EQ(r.trace.size(), p.descriptors.size());
        ASSERT_EQ(r.layer_cycles.size(), 1u);
        EXPECT_EQ(r.layer_cycles[0], r.cycles);
        EXPECT_EQ(r.counters[static_cast<std::size_t>(Engine::matrix)][static_cast<std::size_t>(Counter::work)], kM * kK * kN);
        for (const EngineCounters& c : r.counters) EXPECT_EQ(c[0] + c[1] + c[2] + c[3], r.cycles) << "busy + stalls + idle = job cycles";
        if (run == 1 && !target_options.jitter) {
            EXPECT_EQ(r.cycles, cycles) << "the second run of a process takes the same cycles";
        }
        cycles = r.cycles;
    }
}

TEST(Runtime, GemmOnTlm) { runs_gemm("tlm", options()); }
TEST(Runtime, GemmOnHybridMxu) { runs_gemm("hybrid:mxu", options()); }
TEST(Runtime, GemmOnTlmSiliconShaped) {
    TargetOptions o = options();
    o.silicon_shaped = true;
    o.jitter = true;
    o.seed = 7;
    runs_gemm("tlm", o);
}

TEST(Runtime, ProgramForAnotherChipIsRefused) {
    const auto target = make_target("tlm", options());
    Program p = gemm();
    p.config_hash ^= 1;
    EXPECT_THROW((void)Runtime(*target).run(p, inputs(), {}), Error);
}

TEST(Runtime, MissingAndIllShapedInputsAreNamed) {
    const auto target = make_target("tlm", options());
    try {
        (void)Runtime(*target).run(gemm(), {}, {});
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("'x'"), std::string::npos);
    }
    EXPECT_THROW((void)Runtime(*target).run(gemm(), {{"x", Tensor(DType::i8, {1, 2})}}, {}), Error);
}

TEST(Runtime, IllegalProgramNeverReachesTheDevice) {
    const auto target = make_target("tlm", options());
    Program p = gemm();
    std::swap(p.descriptors[2], p.descriptors[3]);
    EXPECT_THROW((void)Runtime(*target).run(p, inputs(), {}), Error);
}

TEST(Runtime, DroppedSignalEndsInADeadlockWithItsGraph) {
    const auto target = make_target("tlm", options());
    Runtime runtime(*target);
    RunOptions run_options;
    run_options.sanitize = true;
    run_options.faults = {parse_fault("drop-signal:2")};
    const auto result = runtime.run(gemm(), inputs(), run_options);
    ASSERT_TRUE(result.ok()) << result.error().text;
    EXPECT_EQ(result.value().completion.error_code, static_cast<std::uint32_t>(ErrorCode::deadlock));
    EXPECT_FALSE(result.value().post_mortem.empty());
    ASSERT_FALSE(result.value().findings.empty());
    EXPECT_EQ(result.value().findings[0].kind, FindingKind::deadlock);
    EXPECT_EQ(result.value().findings[0].descriptor, 3u);
    EXPECT_FALSE(result.value().unwritten.empty()) << "the result was never stored";
    // The next job on the same chip is right.
    const auto next = runtime.run(gemm(), inputs(), {});
    if (!next.ok() || next.value().completion.status != static_cast<std::uint32_t>(JobStatus::done)) {
        ASSERT_TRUE(target->reset(ResetKind::chip).value().verified);
        const auto after = runtime.run(gemm(), inputs(), {});
        ASSERT_TRUE(after.ok());
        EXPECT_EQ(after.value().tensors.at("y"), expected(gemm()));
    }
}

TEST(Runtime, ResultFaultFlipsExactlyOneBit) {
    const auto target = make_target("tlm", options());
    Runtime runtime(*target);
    RunOptions run_options;
    run_options.faults = {parse_fault("result:y[5].31")};
    const auto result = runtime.run(gemm(), inputs(), run_options);
    ASSERT_TRUE(result.ok()) << result.error().text;
    Tensor flipped = expected(gemm());
    flipped.as<std::int32_t>()[5] ^= INT32_MIN;
    EXPECT_EQ(result.value().tensors.at("y"), flipped);
}

TEST(Registry, UnknownTargetsUnitsAndGeometriesAreUsageErrors) {
    for (const char* name : {"", "fpga", "hybrid:", "hybrid:tpu", "hybrid:mxu,tpu"}) EXPECT_THROW(make_target(name, options()), Error) << name;
    TargetOptions odd = options();
    set_parameter(odd.chip, "mxu.rows=9");
    EXPECT_THROW(make_target("hybrid:mxu", odd), Error);
}

}  // namespace
}  // namespace assay::switchover

int sc_main(int, char**) { return 0; }
int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
