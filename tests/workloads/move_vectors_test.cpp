// The ONNX project's node vectors of the operators that move data and of pooling, compiled for a chip and run on the interpreter. Shape
// parameters, which the vectors hand over as inputs, become constants as they are in a model; data stays an input.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "run_program.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::workloads::testing {
namespace {

namespace fs = std::filesystem;
const fs::path kVectors = "/usr/share/libonnx-testdata/data/node";

const std::set<std::string> kOperators{"Slice",       "Split",        "Expand",          "Tile",           "Gather",      "GatherElements",
                                       "GatherND",    "Scatter",      "ScatterElements", "ScatterND",      "Pad",         "Trilu",
                                       "Resize",      "Upsample",     "DepthToSpace",    "SpaceToDepth",   "Transpose",   "Reshape",
                                       "Concat",      "Squeeze",      "Unsqueeze",       "Flatten",        "Identity",    "ReverseSequence",
                                       "MaxPool",     "AveragePool",  "GlobalMaxPool",   "GlobalAveragePool", "LpPool",   "GlobalLpPool"};

/// Vectors with data of a type that the chip does not hold, and features without an instruction, which run on the host.
const std::map<std::string, const char*> kOnHost{
    {"test_identity_opt", "an optional"},
    {"test_identity_sequence", "a sequence"},
    {"test_resize_tf_crop_and_resize", "a crop that reaches outside the input"},
    {"test_slice_start_out_of_bounds", "no elements"},
    {"test_averagepool_3d_default", "three spatial dimensions"},
    {"test_maxpool_3d_default", "three spatial dimensions"},
    {"test_split_zero_size_splits", "an output without elements"},
    {"test_reshape_allowzero_reordered", "no elements"},
    {"test_scatter_elements_with_duplicate_indices", "reduction add"},
    {"test_scatternd_add", "reduction add"},
    {"test_scatternd_multiply", "reduction mul"},
    {"test_maxpool_with_argmax_2d_precomputed_pads", "output Indices"},
    {"test_maxpool_with_argmax_2d_precomputed_strides", "output Indices"},
};

bool held(DType type) {
    return type == DType::f32 || type == DType::i8 || type == DType::u8 || type == DType::i32 || type == DType::boolean;
}

struct Outcome {
    bool ran = false;
    std::string why;
};

Outcome run_vector(const fs::path& folder) {
    onnx::ModelProto model = *load_onnx(folder / "model.onnx");
    auto& graph = *model.mutable_graph();
    const auto& node = graph.node(0);
    const auto file = [&](const char* kind, int i) { return folder / "test_data_set_0" / (kind + std::to_string(i) + ".pb"); };
    std::map<std::string, Tensor> inputs;
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> kept;
    for (int i = 0; i < graph.input_size(); ++i) {
        const std::string& name = graph.input(i).name();
        const Tensor tensor = load_pb_tensor(file("input_", i));
        const bool data = name == node.input(0) || node.op_type() == "Concat" || (node.op_type().starts_with("Scatter") && name == node.input(2));
        if (data) {
            if (!held(tensor.dtype)) return {false, std::string("data of type ") + std::string(name_of(tensor.dtype))};
            inputs[name] = tensor;
            *kept.Add() = graph.input(i);
        } else {
            *graph.add_initializer() = proto_from_tensor(tensor, name);
        }
    }
    graph.mutable_input()->Swap(&kept);
    CompileOptions options;
    options.chip = preset("aurum-nano");
    RunResult result;
    try {
        result = compile_and_run(model, options, inputs);
    } catch (const Error& error) {
        return {false, error.what()};
    }
    if (!result.program.host_steps.empty()) return {false, result.program.host_steps[0].reason};
    for (int o = 0; o < graph.output_size(); ++o) {
        const Tensor want = load_pb_tensor(file("output_", o));
        const Tensor& got = result.tensors.at(graph.output(o).name());
        EXPECT_EQ(got.shape, want.shape) << folder;
        EXPECT_EQ(got.dtype, want.dtype) << folder;
        if (got.shape != want.shape || got.dtype != want.dtype) continue;
        const bool computes = node.op_type() == "AveragePool" || node.op_type() == "GlobalAveragePool" || node.op_type().find("Lp") != std::string::npos ||
                              node.op_type() == "Resize";
        for (std::int64_t i = 0; i < want.count(); ++i) {
            const double allowed = computes ? 2e-6 * std::abs(want.value(i)) + 1e-6 : 0;
            EXPECT_LE(std::abs(got.value(i) - want.value(i)), allowed) << folder << " element " << i;
            if (std::abs(got.value(i) - want.value(i)) > allowed) break;
        }
    }
    return {true, ""};
}

TEST(MovementVectors, RunOnTheChip) {
    if (!fs::exists(kVectors)) GTEST_SKIP() << "package libonnx-testdata is not installed";
    std::set<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(kVectors))
        if (entry.path().filename().string().find("sequence_") == std::string::npos || entry.path().filename().string().find("reversesequence") != std::string::npos)
            folders.insert(entry.path());
    int ran = 0;
    for (const fs::path& folder : folders) {
        const std::string name = folder.filename();
        std::shared_ptr<const onnx::ModelProto> model;
        try {
            model = load_onnx(folder / "model.onnx");
        } catch (const Error&) {
            continue;  // functions and types that the container's reader refuses
        }
        if (model->graph().node_size() != 1 || !kOperators.contains(model->graph().node(0).op_type())) continue;
        if (name == "test_identity_opt" || name == "test_identity_sequence") continue;
        const Outcome outcome = run_vector(folder);
        ran += outcome.ran;
        if (outcome.why.find("opset 1 is not supported") != std::string::npos) continue;
        if (outcome.ran)
            EXPECT_FALSE(kOnHost.contains(name)) << name << " runs on the chip now: take it off the list";
        else if (!kOnHost.contains(name) && outcome.why.find("data of type") == std::string::npos)
            ADD_FAILURE() << name << ": " << outcome.why;
    }
    EXPECT_GE(ran, 100);
    RecordProperty("on_the_chip", ran);
    std::printf("%d vectors on the chip\n", ran);
}

}  // namespace
}  // namespace assay::workloads::testing
