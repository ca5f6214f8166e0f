// Judged runs of the digit classifier. One TEST a process: SystemC elaborates once.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "golden/reference/reference.hpp"
#include "golden/store/store.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "tests/campaign/digits_fixture.hpp"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
using golden::Verdict;
using testing::digits;

fs::path scratch(const std::string& name) {
    const fs::path folder = fs::temp_directory_path() / ("assay_session_" + name);
    fs::remove_all(folder);
    fs::create_directories(folder);
    return folder;
}

TEST(Session, DigitsPassWithEveryKeyOfTheVerdict) {
    SessionOptions options = digits();
    options.run.sanitize = true;
    options.out_dir = scratch("keys").string();
    options.trace_path = options.out_dir + "/trace.json";
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::pass) << report.reason;
    EXPECT_EQ(exit_status(report.verdict), 0);
    const auto json = nlohmann::json::parse(read_text(options.out_dir + "/verdict.json"));
    for (const char* key : {"schema", "verdict", "target", "chip", "model", "seed", "precision", "cycles", "seconds", "peak_rss_bytes", "macs", "outputs",
                            "tensors", "fallback", "first_failing", "counters", "artifacts"})
        EXPECT_TRUE(json.contains(key)) << key;
    for (const char* key : {"import", "compile", "golden", "device", "judge"}) EXPECT_TRUE(json["seconds"].contains(key)) << key;
    for (const auto& tensor : json["tensors"])
        for (const char* key : {"name", "node", "op", "dtype", "shape", "verdict", "max_abs", "max_rel", "local_error", "global_error"})
            EXPECT_TRUE(tensor.contains(key)) << key;
    EXPECT_EQ(json["tensors"].size(), report.program.layers.size());
    for (const std::string& artifact : report.artifacts) EXPECT_TRUE(fs::exists(artifact)) << artifact;
    std::uint64_t sum = 0;
    for (const std::uint64_t cycles : report.run.layer_cycles) sum += cycles;
    EXPECT_EQ(sum, report.run.cycles) << "layers sum to the run";
    EXPECT_FALSE(nlohmann::json::parse(read_text(options.trace_path))["traceEvents"].empty());
}

TEST(Session, RtlMatrixUnitPasses) {
    SessionOptions options = digits();
    options.target = "hybrid:mxu";
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::pass) << report.reason;
    bool rtl = false;
    for (const std::string& unit : report.identity.units) rtl = rtl || unit.find("rtl") != std::string::npos;
    EXPECT_TRUE(rtl) << "the matrix unit must say that it is RTL";
}

TEST(Session, FloatModelPassesUnderBf16) {
    SessionOptions options = digits("fp32");
    options.precision = "bf16";
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::pass) << report.reason;
}

/// A planted fault must FAIL and be traced to the layer whose arithmetic is wrong.
void expect_traced(const std::string& model, const std::string& fault, const std::string& layer) {
    SessionOptions options = digits(model);
    options.run.faults = {simkernel::parse_fault(fault)};
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::fail) << fault << ": " << report.reason;
    EXPECT_EQ(report.first_failing_layer, layer) << fault;
}

TEST(Faults, WeightSignBitOfAnInt8Layer) { expect_traced("int8", "weight:conv2.weight_quantized[100].7", "conv2"); }
TEST(Faults, WeightSignBitOfAFloatLayer) { expect_traced("fp32", "weight:conv2.weight[100].31", "conv2"); }
TEST(Faults, WeightExponentBitOfAFloatLayer) { expect_traced("fp32", "weight:fc1.weight[1000].29", "fc1"); }
TEST(Faults, ResultBitOfAnInt8Layer) { expect_traced("int8", "result:conv1_relu_out_quantized[777].1", "conv1"); }
TEST(Faults, ResultSignBitOfAFloatLayer) { expect_traced("fp32", "result:fc1_relu_out[7].31", "fc1"); }
TEST(Faults, ResultExponentBitOfAFloatLayer) { expect_traced("fp32", "result:conv1_relu_out[70].27", "conv1"); }
TEST(Faults, ScaledFloatResult) { expect_traced("fp32", "scale:fc1_relu_out*1.01", "fc1"); }
TEST(Faults, ScaledInt8Result) { expect_traced("int8", "scale:conv2_relu_out_quantized*1.01", "conv2"); }

/// Under every policy a right run passes, and a fault is found where it is.
class Policies : public ::testing::TestWithParam<const char*> {};
TEST_P(Policies, DigitsPass) {
    SessionOptions options = digits("fp32");
    options.precision = GetParam();
    options.run.sanitize = true;
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::pass) << report.reason;
}
TEST_P(Policies, AWeightsSignBitIsTraced) {
    SessionOptions options = digits("fp32");
    options.precision = GetParam();
    const bool wide = options.precision == std::string("fp16");  // bits of the word that the device holds
    options.run.faults = {simkernel::parse_fault(wide ? "weight:conv2.weight[100].15" : "weight:conv2.weight[100].7")};
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::fail) << report.reason;
    EXPECT_EQ(report.first_failing_layer, "conv2");
}
TEST_P(Policies, AScaledResultIsTraced) {
    SessionOptions options = digits("fp32");
    options.precision = GetParam();
    options.run.faults = {simkernel::parse_fault("scale:fc1_relu_out*1.01")};
    const SessionReport report = run_session(options);
    EXPECT_EQ(report.verdict, Verdict::fail) << report.reason;
    EXPECT_EQ(report.first_failing_layer, "fc1");
}
INSTANTIATE_TEST_SUITE_P(All, Policies, ::testing::Values("fp16", "fp8", "fp8:e5m2", "int8", "w8", "w4"), [](const auto& policy) {
    std::string name = policy.param;
    std::erase(name, ':');
    return name;
});

TEST(Session, RtlThatLacksAPolicysTypeIsRefusedByName) {
    SessionOptions options = digits("fp32");
    options.precision = "fp8";
    options.target = "hybrid:mxu";
    try {
        (void)run_session(options);
        FAIL() << "the RTL has no fp8";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_NE(std::string(error.what()).find("f8e4m3"), std::string::npos) << error.what();
    }
}

TEST(Session, FlippedBitOfAGoldenFileIsAnErrorNamingTheTensor) {
    SessionOptions options = digits();
    const LoadedModel model = load_model(options.model);
    const golden::Reference reference(model.proto);
    golden::Golden made;
    made.provenance = {"m", model.source.sha256, golden::hash_inputs(model.data.inputs), "test", "", "2026-11-30T00:00:00Z"};
    made.inputs = model.data.inputs;
    made.tensors = golden::to_stored(reference.run(model.data.inputs));
    const fs::path path = scratch("golden") / "golden.h5";
    golden::save_golden(path, made);
    options.golden = path.string();
    auto bytes = read_file(path);
    bytes[bytes.size() / 2] ^= std::byte{4};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    try {
        (void)run_session(options);
        FAIL() << "a damaged golden must never be compared with";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::damaged) << error.what();
        EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
    }
}

TEST(Session, UnwritableOutFolderIsFoundBeforeTheRun) {
    SessionOptions options = digits();
    options.out_dir = "/proc/assay-cannot-be-here";
    EXPECT_THROW((void)run_session(options), Error);
}

TEST(Session, ProgramOfAnotherModelIsRefused) {
    const fs::path path = scratch("program") / "p.h5";
    simkernel::save_program(testing::compile(digits("fp32")), path);
    SessionOptions options = digits("int8");
    options.program = path.string();
    EXPECT_THROW((void)run_session(options), Error);
}

}  // namespace
}  // namespace assay::campaign

int sc_main(int, char**) { return 0; }
int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
