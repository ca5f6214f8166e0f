// The published models against their published outputs, in fp64. Skipped where the models folder is absent.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/reference.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden {
namespace {

namespace fs = std::filesystem;

fs::path models() {
    if (const char* folder = std::getenv("ASSAY_MODELS")) return folder;
    return fs::path(ASSAY_SOURCE_DIR) / "../shared/models";
}

class SpineModel : public ::testing::TestWithParam<const char*> {};

TEST_P(SpineModel, ReproducesItsPublishedOutputs) {
    const fs::path folder = models() / GetParam(), data = folder / "test_data_set_0";
    if (!fs::exists(data)) GTEST_SKIP() << folder << " is absent; set ASSAY_MODELS";
    const auto model = load_onnx(folder / "model.onnx");
    std::map<std::string, Tensor> inputs;
    std::set<std::string> constants;
    for (const auto& proto : model->graph().initializer()) constants.insert(proto.name());
    for (const auto& info : model->graph().input())
        if (!constants.contains(info.name())) inputs[info.name()] = load_pb_tensor(data / ("input_" + std::to_string(inputs.size()) + ".pb"));
    const Reference reference(model, "model", inputs);
    EXPECT_TRUE(reference.warnings().empty());
    const auto begin = std::chrono::steady_clock::now();
    const Values values = reference.run(inputs);
    std::cout << GetParam() << ": " << std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() << " s\n";
    Values fp32;
    for (std::size_t o = 0; o < reference.outputs().size(); ++o) {
        const Tensor want = load_pb_tensor(data / ("output_" + std::to_string(o) + ".pb"));
        const Value& got = values.at(reference.outputs()[o]);
        ASSERT_EQ(got.shape, want.shape);
        ASSERT_EQ(got.dtype, want.dtype);
        double largest = 0, worst = 0;
        for (std::int64_t i = 0; i < want.count(); ++i) {
            largest = std::max(largest, std::fabs(want.value(i)));
            worst = std::max(worst, std::fabs(want.value(i) - got.at(i)));
        }
        // Published int8 outputs come from another integer runtime: 2 LSB (issue 2). Published fp32 outputs carry the error of an fp32
        // runtime over a few dozen layers: 2^-17 of the largest output (128 units of roundoff); where a network amplifies errors more, four
        // times what golden's own fp32 emulation of it loses.
        // mlsd's come from ONNX Runtime's optimiser, whose result is 2^-12.7 (scores) away from that of the same runtime without it.
        double allowed = is_float(want.dtype) ? std::ldexp(largest, std::string(GetParam()) == "mlsd_tiny_320" ? -12 : -17) : 2;
        if (worst > allowed && is_float(want.dtype)) {
            if (fp32.empty()) fp32 = reference.emulate(inputs, {}, {"fp32", 0});
            double lost = 0;
            for (std::int64_t i = 0; i < want.count(); ++i)
                lost = std::max(lost, std::fabs(fp32.at(reference.outputs()[o]).at(i) - got.at(i)));
            std::cout << "  the fp32 emulation is off by " << lost << "\n";
            allowed = 4 * lost;
        }
        EXPECT_LE(worst, allowed) << reference.outputs()[o] << " " << to_string(want.shape) << ", largest " << largest;
        std::cout << "  " << reference.outputs()[o] << ": largest " << largest << ", worst difference " << worst << "\n";
    }
}

INSTANTIATE_TEST_SUITE_P(Models, SpineModel,
                         ::testing::Values("mnist-8_CNTK", "mlperf_ic_int8", "mlperf_ic_fp32", "mlperf_kws_int8", "mlperf_kws_w8a32",
                                           "mlperf_vww_int8", "mlperf_vww_fp32", "mlperf_ad_int8", "mlperf_ad_fp32", "ppocr_cls",
                                           "blazeface_front", "byte_sb_bilstm", "dtln_1", "dtln_2", "espcn_x2_resize_QONNX_float",
                                           "espcn_x3_subpixel_QONNX_float", "fastestdet", "gtcrn_simple", "mlsd_tiny_320", "ppocrv4_rec",
                                           "silero_vad_openvino_16k", "silero_vad_v5", "stories260K_decode", "stories260K_prefill128",
                                           "ultraface_RFB320", "ultraface_RFB320_simplified", "yolox_nano"));

}  // namespace
}  // namespace assay::golden
