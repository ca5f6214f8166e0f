// Kinds of the catalogue: published sizes, files that our importer reads, bytes that depend on the seed alone, refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/onnx/onnx_file.hpp"
#include "workloads/compile.hpp"
#include "workloads/generate/catalogue.hpp"
#include "workloads/generate/model_writer.hpp"
#include "workloads/generate/quantize.hpp"

namespace assay::workloads::generate {
namespace {

namespace fs = std::filesystem;

class Folder {
public:
    Folder() : path_(fs::temp_directory_path() / fmt::format("assay-generate-{}", ::getpid())) { fs::create_directories(path_); }
    ~Folder() { fs::remove_all(path_); }
    fs::path operator/(const std::string& name) const { return path_ / name; }

private:
    fs::path path_;
};

/// Small sizes of every kind; a kind without a row fails the tests.
Dimensions tiny(const Kind& kind) {
    Dimensions d;
    const auto set = [&](std::int64_t Dimensions::*field, std::int64_t value) {
        if (kind.defaults.*field != kUnused) d.*field = value;
    };
    set(&Dimensions::image, 32);
    set(&Dimensions::classes, 10);
    set(&Dimensions::width_percent, 25);
    set(&Dimensions::vocab, 50);
    set(&Dimensions::seq, 6);
    set(&Dimensions::hidden, 16);
    set(&Dimensions::heads, 4);
    set(&Dimensions::kv_heads, 2);
    set(&Dimensions::head_dim, 4);
    set(&Dimensions::ffn, 24);
    set(&Dimensions::experts, 4);
    set(&Dimensions::tables, 3);
    set(&Dimensions::m, 5);
    set(&Dimensions::n, 6);
    set(&Dimensions::k, 7);
    if (kind.name.rfind("resnet", 0) != 0) set(&Dimensions::layers, 2);
    return d;
}

MakeOptions tiny_options(const Kind& kind, std::uint64_t seed = 0) {
    MakeOptions options;
    options.sizes = tiny(kind);
    options.seed = seed;
    return options;
}

struct Published {
    const char *kind, *preset;
    std::uint64_t parameters;
    double giga_macs;  ///< 0: not published
};

// Parameters and multiply-accumulates of torchvision's model cards (with BatchNormalization) and of Hugging Face's configurations.
TEST(Generate, KnownNetworksHaveTheirPublishedParametersAndMacs) {
    constexpr Published kTable[] = {
        {"resnet18", "", 11689512, 1.814},      {"resnet50", "", 25557032, 4.089},   {"resnet101", "", 44549160, 7.801}, {"vgg16", "", 138357544, 15.470},
        {"mobilenet", "", 3504872, 0.301},      {"mobilenet-v3", "", 5483032, 0.217}, {"densenet121", "", 7978856, 2.834}, {"vit-b", "", 86567656, 17.564},
        {"bert-base", "", 109482240, 0},        {"bert-base", "large", 335141888, 0}, {"gpt2", "", 124439808, 0},          {"gpt2", "medium", 354823168, 0},
        {"gpt2", "large", 774030080, 0},        {"gpt2", "xl", 1557611200, 0},        {"llama", "", 1100048384, 0},        {"llama", "7b", 6738415616, 0},
        {"llama", "13b", 13015864320, 0},       {"llama", "llama3-8b", 8030261248, 0}, {"llama", "70b", 68976648192, 0},   {"llama-layer", "", 202383360, 0},
    };
    for (const Published& row : kTable) {
        MakeOptions options;
        options.preset = row.preset;
        options.bn_nodes = true;
        const GeneratedModel model = make(find_kind(row.kind), options);
        EXPECT_EQ(model.parameters, row.parameters) << row.kind << " " << row.preset;
        if (row.giga_macs > 0) {
            EXPECT_NEAR(static_cast<double>(model.macs) * 1e-9, row.giga_macs, 0.0006 + 0.001 * row.giga_macs) << row.kind;
        }
    }
}

TEST(Generate, MacsAreThoseOfTheNodes) {
    MakeOptions options;
    options.sizes = {.m = 3, .n = 5, .k = 7};
    EXPECT_EQ(make(find_kind("gemm"), options).macs, 3 * 5 * 7u);
    options.sizes = {.hidden = 6, .batch = 2, .image = 9, .channels = 4, .kernel = 3, .stride = 2};
    EXPECT_EQ(make(find_kind("conv"), options).macs, 2 * 6 * 5 * 5 * 4 * 9u);
    options.sizes = {.heads = 4, .kv_heads = 2, .head_dim = 8, .seq = 3, .past = 5, .batch = 2};
    EXPECT_EQ(make(find_kind("attention"), options).macs, 2 * (2 * 4 * 3 * 8 * 8u));
    options.sizes = {.layers = 1, .hidden = 8, .seq = 3, .batch = 2, .channels = 5, .classes = 4};
    EXPECT_EQ(make(find_kind("lstm"), options).macs, 3 * 2 * (4 * 8 * (5 + 8) + 8 * 4u));
}

TEST(Generate, EveryKindIsReadByOurImporterInEveryType) {
    const Folder folder;
    int checked = 0;
    for (const Kind& kind : kinds())
        for (const char* dtype : {"float32", "float16", "bfloat16", "int8"}) {
            MakeOptions options = tiny_options(kind);
            options.dtype = dtype;
            GeneratedModel model = make(kind, options);
            if (options.dtype == "int8" && kind.name != "lstm" && kind.name != "gru") model = quantize(model, {}, {kind.quantise_all});
            const fs::path file = folder / "model.onnx";
            write_model(model, file);
            const auto proto = load_onnx(file);
            EXPECT_EQ(proto->graph().initializer_size(), static_cast<int>(model.weights.size())) << kind.name;
            // A broken container (a value used before it is made, defined twice, a cycle) throws; an operator not compiled yet is a line.
            CompileOptions compile;
            EXPECT_NO_THROW(check(*proto, {file.string(), "0"}, compile)) << kind.name << " " << dtype;
            std::set<std::string> used;
            for (const auto& node : proto->graph().node()) used.insert(node.input().begin(), node.input().end());
            for (const auto& tensor : proto->graph().initializer()) EXPECT_EQ(used.count(tensor.name()), 1u) << kind.name << ": " << tensor.name() << " is used by no node";
            for (const auto& info : proto->graph().input()) EXPECT_EQ(used.count(info.name()), 1u) << kind.name << ": input " << info.name() << " is used by no node";
            ++checked;
        }
    EXPECT_EQ(checked, static_cast<int>(4 * kinds().size()));
}

TEST(Generate, EqualSeedsGiveEqualBytesAndOthersDoNot) {
    const Folder folder;
    for (const Kind& kind : kinds()) {
        write_model(make(kind, tiny_options(kind, 1)), folder / "a.onnx");
        write_model(make(kind, tiny_options(kind, 1)), folder / "b.onnx");
        write_model(make(kind, tiny_options(kind, 2)), folder / "c.onnx");
        EXPECT_EQ(read_file(folder / "a.onnx"), read_file(folder / "b.onnx")) << kind.name;
        if (kind.name != "attention") {
            EXPECT_NE(read_file(folder / "a.onnx"), read_file(folder / "c.onnx")) << kind.name;
        }
        write_inputs(make(kind, tiny_options(kind, 1)), folder / "a");
        write_inputs(make(kind, tiny_options(kind, 1)), folder / "b");
        write_inputs(make(kind, tiny_options(kind, 2)), folder / "c");
        EXPECT_EQ(read_file(folder / "a/input_0.pb"), read_file(folder / "b/input_0.pb")) << kind.name;
        EXPECT_NE(read_file(folder / "a/input_0.pb"), read_file(folder / "c/input_0.pb")) << kind.name;
    }
}

TEST(Generate, ExternalDataHoldsTheSameModel) {
    const Folder folder;
    const Kind& kind = find_kind("llama");
    const GeneratedModel model = make(kind, tiny_options(kind));
    write_model(model, folder / "one.onnx");
    write_model(model, folder / "two.onnx", 0);
    EXPECT_TRUE(fs::exists(folder / "two.onnx.data"));
    EXPECT_LT(fs::file_size(folder / "two.onnx"), fs::file_size(folder / "one.onnx"));
    const auto one = load_onnx(folder / "one.onnx"), two = load_onnx(folder / "two.onnx");
    EXPECT_EQ(one->SerializeAsString(), two->SerializeAsString());
    EXPECT_EQ(one->SerializeAsString(), in_memory(model)->SerializeAsString());
}

TEST(Generate, Int8HasPairsAroundItsLayersAndTheReluInsideTheSaturation) {
    const Kind& kind = find_kind("resnet18");
    const GeneratedModel plain = make(kind, tiny_options(kind)), narrow = quantize(plain, {{"image", {-2, 3.1}}}, {true});
    std::map<std::string, int> before, after;
    for (const auto& node : plain.proto->graph().node()) ++before[node.op_type()];
    for (const auto& node : narrow.proto->graph().node()) ++after[node.op_type()];
    EXPECT_EQ(after["Conv"], before["Conv"]);
    EXPECT_EQ(before["Relu"], 17);
    EXPECT_EQ(after["Relu"], 0);
    EXPECT_EQ(narrow.macs, plain.macs);
    std::set<std::string> weights;
    for (const TensorRecipe& recipe : narrow.weights) {
        weights.insert(recipe.name);
        if (recipe.name == "image_scale") {
            EXPECT_FLOAT_EQ(produce(recipe, 0).as<float>()[0], 5.1f / 255) << "the given range";
        }
        if (recipe.name == "image_zero_point") {
            EXPECT_EQ(produce(recipe, 0).integer(0), 100);
        }
        if (recipe.name == "conv1.weight_quantized") {
            EXPECT_EQ(recipe.type, DType::i8);
        }
        if (recipe.name == "conv1.bias_quantized") {
            EXPECT_EQ(recipe.type, DType::i32);
        }
    }
    for (const char* name : {"image_scale", "image_zero_point", "conv1.weight_quantized", "conv1.bias_quantized"}) EXPECT_EQ(weights.count(name), 1u) << name;
    EXPECT_EQ(weights.count("conv1.weight"), 0u) << "the float weights are gone";
    // Each convolution reads three dequantised operands.
    for (const auto& node : narrow.proto->graph().node()) {
        if (node.op_type() != "Conv") continue;
        for (const std::string& input : node.input()) EXPECT_NE(input.find("_DequantizeLinear_Output"), std::string::npos) << node.name() << " reads " << input;
    }
}

TEST(Generate, InputsFitTheGraph) {
    const Folder folder;
    const Kind& kind = find_kind("llama-layer");
    MakeOptions options = tiny_options(kind);
    options.sizes.seq = kUnused;
    options.sizes.past = 9;
    const GeneratedModel model = make(kind, options);
    write_inputs(model, folder / "data");
    const auto& inputs = model.proto->graph().input();
    ASSERT_EQ(inputs.size(), 4) << "hidden states, positions, past keys and values";
    for (int i = 0; i < inputs.size(); ++i) {
        std::string name;
        const Tensor t = load_pb_tensor(folder / fmt::format("data/input_{}.pb", i), &name);
        EXPECT_EQ(name, inputs[i].name());
        Shape shape;
        for (const auto& d : inputs[i].type().tensor_type().shape().dim()) shape.push_back(d.dim_value());
        EXPECT_EQ(t.shape, shape) << name;
        if (name == "hidden_states") {
            EXPECT_EQ(shape, (Shape{1, 1, 16})) << "with --past a call is one token";
        }
        if (name == "past_k") {
            EXPECT_EQ(shape, (Shape{1, 2, 9, 4}));
        }
        if (name == "position_ids") {
            EXPECT_EQ(t.integer(0), 9);
        }
    }
}

std::string refusal(const std::string& kind, const MakeOptions& options) {
    try {
        make(find_kind(kind), options);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        return error.what();
    }
    return "";
}

TEST(Generate, RefusalsNameTheOptionAndWhatIsAllowed) {
    MakeOptions options;
    options.sizes.heads = 3;
    options.sizes.image = 7;
    EXPECT_EQ(refusal("gemm", options), "workload make: gemm has no --heads; gemm has no --image; gemm takes --m --n --k");
    options.sizes = {.heads = 7};
    EXPECT_EQ(refusal("bert-base", options), "workload make: --hidden 768 is not a multiple of --heads 7");
    options.sizes = {.layers = 20};
    EXPECT_EQ(refusal("resnet50", options), "workload make: --layers 20: a residual network of this kind has 50, 101 or 152 layers");
    options.sizes = {.m = 0};
    EXPECT_EQ(refusal("gemm", options), "workload make: --m 0: must be 1 to 16777216; gemm takes --m --n --k");
    options.sizes = {};
    options.preset = "9b";
    EXPECT_EQ(refusal("llama-layer", options), "workload make: llama-layer has no preset '9b'; it has 7b, 13b, llama3-8b, 70b, 405b");
    options.preset = "";
    options.opset = 12;
    EXPECT_EQ(refusal("gemm", options), "workload make: --opset 12: must be 13 to 24");
    options.opset = 17;
    options.dtype = "bfloat16";
    EXPECT_EQ(refusal("conv", options), "workload make: --opset 17: must be 22 to 24 (convolutions and recurrent layers take bfloat16 from 22)");
    EXPECT_THROW(find_kind("resnet"), Error);
    options = {};
    options.sizes = {.image = 3};
    EXPECT_NE(refusal("vgg16", options).find("does not fit"), std::string::npos) << refusal("vgg16", options);
}

TEST(Generate, AModelThatTheDiskCannotHoldIsRefusedBeforeAnythingIsWritten) {
    const Folder folder;
    MakeOptions options;
    options.sizes = {.m = 1, .n = 1 << 24, .k = 1 << 24};  // 1 PB
    EXPECT_THROW(write_model(make(find_kind("gemm"), options), folder / "model.onnx"), Error);
    EXPECT_FALSE(fs::exists(folder / "model.onnx"));
}

}  // namespace
}  // namespace assay::workloads::generate
