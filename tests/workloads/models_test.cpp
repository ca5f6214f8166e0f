// The published models, against the outputs that ONNX Runtime gave for them: every preset, legal, race-free, and close.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "run_program.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::workloads::testing {
namespace {

std::filesystem::path models_folder() {
    const char* given = std::getenv("ASSAY_MODELS");
    return given ? given : std::string(ASSAY_SOURCE_DIR) + "/../shared/models";
}

const char* const kModels[] = {"mnist-8_CNTK",     "mlperf_ic_int8",  "mlperf_ic_fp32",  "mlperf_kws_int8",
                               "mlperf_kws_w8a32", "mlperf_vww_int8", "mlperf_vww_fp32", "mlperf_ad_int8",
                               "mlperf_ad_fp32",   "ppocr_cls",       "blazeface_front",
                               "espcn_x2_resize_QONNX_float", "espcn_x3_subpixel_QONNX_float", "fastestdet"};

struct Case {
    std::string model, chip, precision;
};

class PublishedModel : public ::testing::TestWithParam<Case> {};

TEST_P(PublishedModel, GivesThePublishedOutputs) {
    const Case& c = GetParam();
    const auto folder = models_folder() / c.model;
    if (!std::filesystem::exists(folder / "model.onnx")) GTEST_SKIP() << "no " << folder / "model.onnx" << "; set ASSAY_MODELS";
    const auto model = load_onnx(folder / "model.onnx");
    std::map<std::string, Tensor> inputs;
    std::vector<std::string> names;
    for (const auto& info : model->graph().input()) {
        bool initialiser = false;
        for (const auto& init : model->graph().initializer()) initialiser = initialiser || init.name() == info.name();
        if (!initialiser) names.push_back(info.name());
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        inputs[names[i]] = load_pb_tensor(folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb"));
    CompileOptions options;
    options.chip = preset(c.chip);
    options.precision = c.precision;
    const auto start = std::chrono::steady_clock::now();
    const RunResult run = compile_and_run(*model, options, inputs);
    if (std::getenv("ASSAY_VERBOSE")) {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::printf("%s: %zu layers, %zu descriptors, %.2f s\n", c.model.c_str(), run.program.layers.size(), run.program.descriptors.size(),
                    seconds.count());
        for (const auto& layer : run.program.layers)
            std::printf("  %-28s %-40s %-7s %8u  %s\n", layer.name.c_str(), layer.op.c_str(), layer.precision.c_str(),
                        layer.descriptor_count, layer.mapping.c_str());
    }
    ASSERT_TRUE(run.program.host_steps.empty()) << "all of it runs on the chip; " << run.program.host_steps[0].reason;
    int compared = 0;
    for (int i = 0; i < model->graph().output_size(); ++i) {
        const Tensor expected = load_pb_tensor(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb"));
        const Tensor& got = run.tensors.at(model->graph().output(i).name());
        ASSERT_EQ(got.shape, expected.shape);
        ASSERT_EQ(got.dtype, expected.dtype);
        double largest = 0, worst = 0;
        for (std::int64_t k = 0; k < got.count(); ++k) {
            largest = std::max(largest, std::abs(expected.value(k)));
            worst = std::max(worst, std::abs(expected.value(k) - got.value(k)));
            ASSERT_TRUE(std::isfinite(got.value(k)));
        }
        compared += static_cast<int>(got.count());
        // Sanity only; golden judges with a derived allowance. Integers: 2 LSB. native: fp32-grade. bf16: 8 bits of significand, some
        // layers deep.
        const double allowed = !is_float(got.dtype) ? 2.0 : (c.precision == "native" ? 1e-4 : 0.1) * largest;
        EXPECT_LE(worst, allowed) << "output " << i << ", largest magnitude " << largest;
    }
    EXPECT_GT(compared, 0);
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const char* model : kModels)
        for (const char* chip : {"aurum-edge", "aurum-nano", "aurum-dc"}) {
            cases.push_back({model, chip, "native"});
            if (std::string(model).find("int8") == std::string::npos) cases.push_back({model, chip, "bf16"});
        }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(All, PublishedModel, ::testing::ValuesIn(all_cases()), [](const auto& suite) {
    std::string name = suite.param.model + "_" + suite.param.chip.substr(6) + "_" + suite.param.precision;
    for (char& ch : name)
        if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
    return name;
});

}  // namespace
}  // namespace assay::workloads::testing
