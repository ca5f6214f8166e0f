// The runtime on the SystemC chip, with behavioural and Verilated units. One TEST a process: SystemC elaborates once.
#include "switchover/runtime.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>
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

TargetOptions two_cores() {
    TargetOptions o = options();
    o.chip.cores = 2;
    return o;
}

/// Core 0 copies x to y, core 1 copies y to z, core 0 copies z to w.
Program relay() {
    Program p;
    p.chip = "aurum-nano";
    p.config_hash = config_hash(two_cores().chip);
    p.precision = "native";
    const std::array<std::uint64_t, 4> at{0x1000, 0x2000, 0x3000, 0x4000};
    for (std::uint32_t leg = 0; leg < 3; ++leg) {
        DescriptorWords in = load(at[leg], 0, 64), out = store(at[leg + 1], 0, 64);
        add_signal(in, 0);
        add_waits(out, {{0, leg / 2 + 1}});
        if (leg > 0) {
            add_waits(in, {{leg - 1, 1}});
            share_wait(in, 0);
        }
        if (leg < 2) {
            add_signal(out, leg);
            share_signal(out);
        }
        set_core(in, leg % 2);
        set_core(out, leg % 2);
        p.descriptors.push_back(in);
        p.descriptors.push_back(out);
        p.layers.push_back({fmt::format("leg{}", leg), "Identity", {static_cast<int>(leg)}, {}, {}, "move", 0, 0, 0, "", 2 * leg, 2});
        p.debug.insert(p.debug.end(), 2, {leg, 0});
    }
    const char* const names[] = {"x", "y", "z", "w"};
    for (std::size_t i = 0; i < 4; ++i)
        p.tensors.push_back({names[i], DType::i8, {64}, {0}, false, DeviceAddr{at[i]}, 64, i == 0 ? Role::input : i == 3 ? Role::output : Role::intermediate});
    p.hbm_bytes = 0x5000;
    return p;
}

std::map<std::string, Tensor> relay_input() {
    Tensor x(DType::i8, {64});
    for (std::size_t i = 0; i < 64; ++i) x.bytes[i] = static_cast<std::byte>(3 * i + 1);
    return {{"x", x}};
}

TEST(Runtime, AProgramOfTwoCoresIsOneJobWithOneTraceInStreamOrder) {
    const auto target = make_target("tlm", two_cores());
    RunOptions run_options;
    run_options.sanitize = true;
    const auto result = Runtime(*target).run(relay(), relay_input(), run_options);
    ASSERT_TRUE(result.ok()) << result.error().text;
    const RunResult& r = result.value();
    EXPECT_EQ(r.completion.status, static_cast<std::uint32_t>(JobStatus::done));
    EXPECT_EQ(r.tensors.at("w"), relay_input().at("x"));
    EXPECT_TRUE(r.findings.empty());
    ASSERT_EQ(r.trace.size(), 6u);
    for (std::uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(r.trace[i].descriptor, i);
        if (i > 0) EXPECT_GE(r.trace[i].record.start, r.trace[i - 1].record.end) << "each waits for the one before";
    }
    EXPECT_EQ(r.layer_cycles.size(), 3u);
    ASSERT_EQ(r.core_counters.size(), 2u);
    const auto loads = [&](std::size_t core) { return r.core_counters[core][static_cast<std::size_t>(Engine::load)][static_cast<std::size_t>(Counter::retired)]; };
    EXPECT_EQ(loads(0), 2u);
    EXPECT_EQ(loads(1), 1u);
    EXPECT_EQ(r.counters[static_cast<std::size_t>(Engine::load)][static_cast<std::size_t>(Counter::retired)], 3u);
}

TEST(Runtime, AHostStepIsABarrierForEveryCore) {
    const auto target = make_target("tlm", two_cores());
    // Before each stream index in turn: the host turns the bytes of z's predecessor around.
    int checked = 0;
    for (std::uint32_t before = 0; before <= 6; ++before, ++checked) {
        Program p = relay();
        HostStep step;
        step.layer = 0;
        step.before = before;
        step.inputs = {p.tensors[1]};
        step.outputs = {p.tensors[1]};
        step.outputs[0].name = "y";
        p.host_steps.push_back(step);
        RunOptions run_options;
        run_options.sanitize = true;
        int called = 0;
        run_options.host = [&](const HostStep&, const std::map<std::string, Tensor>& in) {
            ++called;
            Tensor y = in.at("y");
            std::reverse(y.bytes.begin(), y.bytes.end());
            return std::map<std::string, Tensor>{{"y", y}};
        };
        const auto result = Runtime(*target).run(p, relay_input(), run_options);
        ASSERT_TRUE(result.ok()) << result.error().text;
        EXPECT_EQ(called, 1);
        EXPECT_EQ(result.value().completion.status, static_cast<std::uint32_t>(JobStatus::done)) << before;
        Tensor expected = relay_input().at("x");
        if (before == 2) std::reverse(expected.bytes.begin(), expected.bytes.end());  // after y is stored, before it is loaded
        EXPECT_EQ(result.value().tensors.at("w"), expected) << before;
        EXPECT_EQ(result.value().trace.size(), 6u);
        EXPECT_TRUE(result.value().findings.empty()) << before << ": " << result.value().findings[0].text;
    }
    EXPECT_EQ(checked, 7);
}

TEST(Runtime, ADroppedSharedSignalIsADeadlockNamedByStreamIndex) {
    const auto target = make_target("tlm", two_cores());
    RunOptions run_options;
    run_options.sanitize = true;
    run_options.faults = {parse_fault("drop-signal:3")};
    const auto result = Runtime(*target).run(relay(), relay_input(), run_options);
    ASSERT_TRUE(result.ok()) << result.error().text;
    EXPECT_EQ(result.value().completion.error_code, static_cast<std::uint32_t>(ErrorCode::deadlock));
    EXPECT_EQ(result.value().completion.core, 0u);
    EXPECT_EQ(result.value().completion.descriptor, 4u);
    EXPECT_NE(result.value().post_mortem.find("core 0 load"), std::string::npos) << result.value().post_mortem;
    ASSERT_EQ(result.value().findings.size(), 1u);
    EXPECT_EQ(result.value().findings[0].kind, FindingKind::deadlock);
    EXPECT_EQ(result.value().findings[0].descriptor, 4u);
}

TEST(Runtime, AFaultInAResultCountsDescriptorsInTheStream) {
    const auto target = make_target("tlm", two_cores());
    RunOptions run_options;
    run_options.faults = {parse_fault("result:z[5].0")};
    const auto result = Runtime(*target).run(relay(), relay_input(), run_options);
    ASSERT_TRUE(result.ok()) << result.error().text;
    Tensor flipped = relay_input().at("x");
    flipped.bytes[5] ^= std::byte{1};
    EXPECT_EQ(result.value().tensors.at("w"), flipped);
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
