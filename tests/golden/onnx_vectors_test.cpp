// Every node vector of the ONNX project (Debian's libonnx-testdata) whose operator the reference knows.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "golden/reference/reference.hpp"
#include "golden/reference/registry.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"

namespace assay::golden {
namespace {

namespace fs = std::filesystem;
const fs::path kVectors = "/usr/share/libonnx-testdata/data/node";

/// Vectors that ask for what the reference refuses with a clear error, and why.
const std::set<std::string> kRefused{
    "test_batchnorm_epsilon_training_mode",
    "test_batchnorm_example_training_mode",  // training
    "test_identity_opt",
    "test_identity_sequence",
    "test_if_opt",
    "test_if_seq",
    "test_loop13_seq",
    "test_loop16_seq_none",  // not tensors
    "test_cast_FLOAT_to_STRING",
    "test_cast_STRING_to_FLOAT",
    "test_castlike_FLOAT_to_STRING_expanded",
    "test_castlike_STRING_to_FLOAT_expanded",
    "test_castlike_FLOAT_to_STRING",
    "test_castlike_STRING_to_FLOAT",  // strings
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
    "test_training_dropout_zero_ratio",
    "test_training_dropout_zero_ratio_mask",  // training
};

/// Vectors that are not of the ai.onnx domain, or whose data does not fit their own model's declared input.
const std::set<std::string> kForeign{
    "test_adagrad",
    "test_adagrad_multiple",
    "test_adam",
    "test_adam_multiple",
    "test_momentum",
    "test_momentum_multiple",
    "test_nesterov_momentum",  // ai.onnx.preview.training alone
    "test_castlike_BFLOAT16_to_FLOAT_expanded",
    "test_castlike_FLOAT_to_BFLOAT16_expanded",
    "test_castlike_BFLOAT16_to_FLOAT",
    "test_castlike_FLOAT_to_BFLOAT16",          // input 'like': declared 3x4, stored as 1
    "test_dynamicquantizelinear_expanded",      // element 3 is a tie in fp32, not in fp64
    "test_cast_FLOAT_to_BFLOAT16",  // ONNX 1.12's helper truncated; Cast-19 states round to nearest even, which emulation_test.cpp checks
};

/// Vectors whose expected values were typed in with four decimals.
const std::set<std::string> kFourDecimals{"test_gridsample_bicubic", "test_roialign_aligned_false", "test_roialign_aligned_true"};

/// Operators that the reference does not have. Out of scope: random numbers, strings, sequences and optionals, training.
const std::set<std::string> kOutOfScope{
    "Adagrad", "Adam", "Bernoulli", "ConcatFromSequence", "Gradient", "ImageDecoder", "Momentum", "Multinomial", "NegativeLogLikelihoodLoss",
    "Optional", "OptionalGetElement", "OptionalHasElement", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
    "SoftmaxCrossEntropyLoss", "SplitToSequence", "StringNormalizer", "TfIdfVectorizer",
};

/// The vectors' files hold bfloat16 as bare uint16.
Tensor load(const fs::path& path, DType declared) {
    Tensor tensor = load_pb_tensor(path);
    if (declared == DType::bf16 && tensor.dtype == DType::u16) tensor.dtype = DType::bf16;
    return tensor;
}

/// The first operator of the model that the reference does not have; empty: it has all.
std::string unknown_operator(const onnx::ModelProto& model) {
    const std::vector<std::string> names = operator_names();
    const std::set<std::string> known(names.begin(), names.end());
    for (const auto& node : model.graph().node())
        if (!known.contains(node.op_type())) return node.op_type();
    return "";
}

/// Whether an input or output has a type that no tensor here holds: 8-bit floats and types of 4 and 2 bits.
bool foreign_type(const onnx::ModelProto& model) {
    const auto foreign = [](const onnx::ValueInfoProto& info) { return info.type().tensor_type().elem_type() > onnx::TensorProto::BFLOAT16; };
    const auto& graph = model.graph();
    return std::any_of(graph.input().begin(), graph.input().end(), foreign) || std::any_of(graph.output().begin(), graph.output().end(), foreign);
}

struct Tally {
    int right = 0, refused_types = 0;
    std::map<std::string, int> unknown;  ///< vectors by the operator that the reference lacks
};

/// The vectors were computed in the tensor's type: fp32 of a long sum, fp16 of a cast.
double tolerance(const Tensor& want, double g) {
    switch (want.dtype) {
        case DType::f32:
            return 1e-5 * std::fabs(g) + 1e-6;
        case DType::f16:
            return 1e-3 * std::fabs(g) + 1e-6;
        case DType::bf16:
            return 0;
        case DType::f64:
            return 1e-12 * std::fabs(g) + 1e-12;
        default:
            return 0;
    }
}

Values run_vector(const std::shared_ptr<const onnx::ModelProto>& model, const fs::path& folder) {
    std::map<std::string, Tensor> inputs;
    // Files are numbered over the graph's inputs.
    for (int i = 0; i < model->graph().input_size(); ++i)
        inputs[model->graph().input(i).name()] = load(folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb"),
                                                      dtype_from_onnx(model->graph().input(i).type().tensor_type().elem_type(), "input"));
    return Reference(model).run(inputs);
}

void check_vector(const fs::path& folder, Tally& tally) {
    const std::string name = folder.filename();
    if (kForeign.contains(name)) return;
    const auto model = load_onnx(folder / "model.onnx");
    if (const std::string missing = unknown_operator(*model); !missing.empty()) {
        ++tally.unknown[missing];
        return;
    }
    if (foreign_type(*model)) {
        EXPECT_THROW(run_vector(model, folder), Error) << name;
        ++tally.refused_types;
        return;
    }
    if (kRefused.contains(name)) {
        EXPECT_THROW(run_vector(model, folder), Error) << name;
        return;
    }
    // ONNX 1.12's windows hold pi as 3.1415, 3e-5 off.
    const bool coarse = name.find("window") != std::string::npos || kFourDecimals.contains(name);
    try {
        const Values values = run_vector(model, folder);
        for (int o = 0; o < model->graph().output_size(); ++o) {
            const Value& got = values.at(model->graph().output(o).name());
            const Tensor want = load(folder / "test_data_set_0" / ("output_" + std::to_string(o) + ".pb"), got.dtype);
            ASSERT_EQ(got.shape, want.shape) << name;
            ASSERT_EQ(name_of(got.dtype), name_of(want.dtype)) << name;
            const Tensor rounded = to_tensor(got);
            for (std::int64_t i = 0; i < want.count(); ++i) {
                const double w = want.value(i), g = rounded.value(i);
                // ONNX's own attention rounds to bf16 at every step: two units in the last place.
                const bool stepwise = want.dtype == DType::bf16 && name.starts_with("test_attention");
                const double allowed = coarse ? 1e-4 : stepwise ? std::fabs(w) * 0x1p-6 : tolerance(want, w);
                if (std::isnan(w) || std::isinf(w))
                    EXPECT_TRUE(std::isnan(w) ? std::isnan(g) : g == w) << name << " element " << i << ": " << g << " against " << w;
                else
                    ASSERT_LE(std::fabs(g - w), allowed) << name << " element " << i << ": " << g << " against " << w;
            }
        }
        ++tally.right;
    } catch (const Error& error) {
        ADD_FAILURE() << name << ": " << error.what();
    }
}

/// Vectors of `folder` by check_vector, with what the reference lacks printed.
Tally sweep(const fs::path& folder) {
    Tally tally;
    for (const auto& entry : fs::directory_iterator(folder)) check_vector(entry.path(), tally);
    std::cout << tally.right << " vectors right, " << tally.refused_types << " refused by their types\n";
    for (const auto& [op, count] : tally.unknown)
        if (!kOutOfScope.contains(op)) std::cout << "  not in the reference: " << op << ", " << count << " vectors\n";
    return tally;
}

TEST(OnnxVectors, EveryVectorOfAKnownOperatorIsReproduced) {
    if (!fs::exists(kVectors)) GTEST_SKIP() << kVectors << " is absent (package libonnx-testdata)";
    EXPECT_GE(sweep(kVectors).right, 770) << "a sweep that shrinks is an error, not a pass";
}

/// Newer operators than Debian's data has: what tools/export_node_vectors.py wrote.
TEST(OnnxVectors, EveryNewerVectorOfAKnownOperatorIsReproduced) {
    const char* folder = std::getenv("ASSAY_NODE_VECTORS");
    if (!folder) GTEST_SKIP() << "ASSAY_NODE_VECTORS names no folder; make one with tools/export_node_vectors.py DIR";
    EXPECT_GE(sweep(folder).right, 1) << folder;
}

}  // namespace
}  // namespace assay::golden
