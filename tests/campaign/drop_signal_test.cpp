// Every semaphore signal of the digits program that some wait needs is dropped in turn: each must be reported as a race or a deadlock, and
// the report must be the same on the chip under any jitter and quantum as in a walk of the stream without a chip.
#include <gtest/gtest.h>

#include "simkernel/exec/legality.hpp"
#include "support/error.hpp"
#include "tests/campaign/digits_fixture.hpp"

namespace assay::campaign {
namespace {

using namespace simkernel;

/// What the sanitizer says of the stream alone.
std::vector<Finding> walk(const Program& program, const ChipConfig& chip, JobHooks& faults) {
    Sanitizer sanitizer(chip, &faults);
    for (const Constant& c : program.constants) sanitizer.host_wrote(c.addr.value, c.bytes.size());
    for (const TensorSlot& t : program.tensors)
        if (t.role == Role::input) sanitizer.host_wrote(t.addr.value, t.bytes);
    for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) {
        Decoded decoded;
        EXPECT_FALSE(decode(program.descriptors[i], chip, decoded));
        sanitizer.dispatched(0, i, decoded);
    }
    return sanitizer.findings();
}

void every_signal(const char* model, const switchover::TargetOptions& target_options, std::uint32_t step) {
    SessionOptions options = testing::digits(model);
    const Program program = testing::compile(options);
    const LoadedModel loaded = load_model(options.model);
    switchover::TargetOptions on = target_options;
    on.chip = options.target_options.chip;
    const auto target = switchover::make_target("tlm", on);
    switchover::Runtime runtime(*target);
    int dropped = 0, refused = 0;
    for (std::uint32_t i = 0; i < program.descriptors.size(); i += step) {
        const FaultSpec spec = parse_fault("drop-signal:" + std::to_string(i));
        if (!signal_is_needed(program.descriptors, i)) {
            EXPECT_THROW(FaultPlan({spec}, program), Error) << i;
            ++refused;
            continue;
        }
        FaultPlan plan({spec}, program);
        const std::vector<Finding> expected = walk(program, on.chip, plan);
        ASSERT_FALSE(expected.empty()) << "dropping the signal of descriptor " << i << " goes unnoticed: " << disassemble(i, program.descriptors[i]);
        switchover::RunOptions run;
        run.sanitize = true;
        run.faults = {spec};
        const auto result = runtime.run(program, loaded.data.inputs, run);
        ASSERT_TRUE(result.ok()) << result.error().text;
        EXPECT_EQ(result.value().findings, expected) << "descriptor " << i;
        ASSERT_TRUE(target->reset(switchover::ResetKind::chip).ok());
        ++dropped;
    }
    EXPECT_GT(dropped, 5);
    EXPECT_GT(refused, 0);
}

TEST(DropSignal, EveryNeededOneIsReported) { every_signal("int8", {}, 1); }
TEST(DropSignal, TheSameUnderJitter) {
    switchover::TargetOptions options;
    options.jitter = true;
    options.seed = 11;
    every_signal("int8", options, 1);
}
TEST(DropSignal, TheSameUnderAnotherSeedAndQuantum) {
    switchover::TargetOptions options;
    options.jitter = true;
    options.seed = 12;
    options.quantum_cycles = 1;
    every_signal("int8", options, 1);
}
TEST(DropSignal, FloatModelToo) { every_signal("fp32", {}, 1); }

}  // namespace
}  // namespace assay::campaign
