// The digits of a clone: both models, any batch, on every preset, and what the program says about itself.
#include <gtest/gtest.h>

#include <chrono>

#include "run_program.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::workloads::testing {
namespace {

struct Digits {
    std::shared_ptr<const onnx::ModelProto> model;
    Tensor input, expected;
    std::string input_name, output_name;
};

Digits load(const std::string& kind) {
    const std::string folder = std::string(ASSAY_SOURCE_DIR) + "/workloads/digits/" + kind;
    Digits d;
    d.model = load_onnx(folder + "/model.onnx");
    d.input = load_pb_tensor(folder + "/test_data_set_0/input_0.pb");
    d.expected = load_pb_tensor(folder + "/test_data_set_0/output_0.pb");
    d.input_name = d.model->graph().input(0).name();
    d.output_name = d.model->graph().output(0).name();
    return d;
}

TEST(Digits, BothModelsGiveTheCommittedOutputsOnEveryPreset) {
    for (const char* kind : {"fp32", "int8"})
        for (const char* chip : {"aurum-nano", "aurum-edge", "aurum-dc"}) {
            const Digits d = load(kind);
            CompileOptions options;
            options.chip = preset(chip);
            const RunResult run = compile_and_run(*d.model, options, {{d.input_name, d.input}});
            const Tensor& y = run.tensors.at(d.output_name);
            ASSERT_EQ(y.shape, d.expected.shape);
            ASSERT_EQ(y.dtype, d.expected.dtype);
            double largest = 0;
            for (std::int64_t i = 0; i < y.count(); ++i) largest = std::max(largest, std::abs(d.expected.value(i)));
            // Sanity; golden judges. A quantised model may differ by a step of its last quantisation, about a 200th of the range.
            const double allow = std::string(kind) == "fp32" ? 1e-5 * largest : is_float(y.dtype) ? largest / 100 : 2.0;
            for (std::int64_t i = 0; i < y.count(); ++i)
                ASSERT_NEAR(y.value(i), d.expected.value(i), allow) << kind << " on " << chip << " element " << i;
        }
}

TEST(Digits, EqualInputGivesEqualBytes) {
    const Digits d = load("int8");
    CompileOptions options;
    options.chip = preset("aurum-edge");
    options.input_shapes[d.input_name] = d.input.shape;
    const auto a = compile(*d.model, {"model.onnx", "x"}, options), b = compile(*d.model, {"model.onnx", "x"}, options);
    EXPECT_EQ(a.descriptors, b.descriptors);
    ASSERT_EQ(a.constants.size(), b.constants.size());
    for (std::size_t i = 0; i < a.constants.size(); ++i) EXPECT_EQ(a.constants[i].bytes, b.constants[i].bytes);
}

TEST(Digits, TheDebugMapNamesTheLayerOfEveryDescriptor) {
    const Digits d = load("int8");
    CompileOptions options;
    options.chip = preset("aurum-edge");
    options.input_shapes[d.input_name] = d.input.shape;
    const auto program = compile(*d.model, {"model.onnx", ""}, options);
    ASSERT_EQ(program.debug.size(), program.descriptors.size());
    std::uint32_t next = 0;
    for (std::size_t l = 0; l < program.layers.size(); ++l) {
        EXPECT_EQ(program.layers[l].first_descriptor, next);
        for (std::uint32_t i = 0; i < program.layers[l].descriptor_count; ++i) EXPECT_EQ(program.debug[next + i].layer, l);
        next += program.layers[l].descriptor_count;
    }
    EXPECT_EQ(next, program.descriptors.size());
}

TEST(Digits, WithoutProbesDeadTensorsShareMemoryAndTheOutputIsTheSame) {
    const Digits d = load("fp32");
    CompileOptions all, few;
    all.chip = few.chip = preset("aurum-nano");
    few.probes_all = false;
    const RunResult a = compile_and_run(*d.model, all, {{d.input_name, d.input}}),
                    b = compile_and_run(*d.model, few, {{d.input_name, d.input}});
    EXPECT_EQ(a.tensors.at(d.output_name), b.tensors.at(d.output_name));
    EXPECT_LT(b.program.hbm_bytes, a.program.hbm_bytes);
    EXPECT_LT(b.program.tensors.size(), a.program.tensors.size());
    // A probe keeps its tensor.
    ASSERT_GT(a.program.layers.size(), 2u);
    few.probes = a.program.layers[0].outputs;
    const RunResult c = compile_and_run(*d.model, few, {{d.input_name, d.input}});
    EXPECT_EQ(c.tensors.at(few.probes[0]), a.tensors.at(few.probes[0]));
}

TEST(Digits, AWeightsOffsetLeadsToItsOwnByte) {
    const Digits d = load("int8");
    CompileOptions options;
    options.chip = preset("aurum-nano");
    options.input_shapes[d.input_name] = d.input.shape;
    const auto program = compile(*d.model, {"model.onnx", ""}, options);
    int checked = 0;
    for (const auto& init : d.model->graph().initializer()) {
        const auto slot = std::find_if(program.constant_slots.begin(), program.constant_slots.end(),
                                       [&](const auto& s) { return s.name == init.name() && s.dtype == simkernel::Dtype::i8; });
        if (slot == program.constant_slots.end()) continue;
        const Tensor weights = tensor_from_proto(init, init.name());
        ASSERT_EQ(slot->elements.elements(), weights.count());
        const auto constant =
            std::find_if(program.constants.begin(), program.constants.end(), [&](const auto& c) { return c.addr == slot->addr; });
        ASSERT_NE(constant, program.constants.end());
        for (std::int64_t i = 0; i < weights.count(); ++i, ++checked)
            ASSERT_EQ(
                static_cast<std::int8_t>(constant->bytes.at(static_cast<std::size_t>(slot->elements.offset(i).value()))),
                weights.integer(i))
                << init.name() << "[" << i << "]";
    }
    EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace assay::workloads::testing
