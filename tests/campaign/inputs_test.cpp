#include "campaign/inputs.hpp"

#include <gtest/gtest.h>

#include "campaign/digits.hpp"
#include "support/error.hpp"
#include "support/onnx/onnx_file.hpp"
#include "support/tensor_io.hpp"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::vector<std::string>& arguments) {
    const auto model = load_onnx(digits_folder() / "fp32/model.onnx");
    try {
        (void)load_data_set(*model, arguments);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Inputs, FolderNpzAndNamedFileGiveTheSameInput) {
    const auto model = load_onnx(digits_folder() / "fp32/model.onnx");
    const DataSet folder = load_data_set(*model, {(digits_folder() / "fp32/test_data_set_0").string()});
    EXPECT_EQ(folder.expected.size(), 1u);
    const DataSet named = load_data_set(*model, {"image=" + (digits_folder() / "fp32/test_data_set_0/input_0.pb").string()});
    EXPECT_EQ(folder.inputs, named.inputs);
    const DataSet npz = load_data_set(*model, {(digits_folder() / "heldout/images.npz").string()});
    EXPECT_EQ(npz.inputs.at("image").shape, (Shape{360, 1, 8, 8}));
}

TEST(Inputs, EveryProblemNamesTheThing) {
    EXPECT_NE(error_of({"/nowhere/x.pb"}).find("/nowhere/x.pb"), std::string::npos);
    EXPECT_NE(error_of({fs::temp_directory_path().string()}).find("input_0.pb"), std::string::npos);
    const fs::path labels = digits_folder() / "heldout/labels.npy";
    EXPECT_NE(error_of({labels.string()}).find("'image'"), std::string::npos) << error_of({labels.string()});
    EXPECT_NE(error_of({labels.string()}).find("int64"), std::string::npos);
    EXPECT_NE(error_of({"other=" + labels.string()}).find("other="), std::string::npos);
}

TEST(Inputs, RandomInputsDependOnTheSeedOnly) {
    const auto model = load_onnx(digits_folder() / "fp32/model.onnx");
    EXPECT_EQ(make_random_data_set(*model, 1).inputs, make_random_data_set(*model, 1).inputs);
    EXPECT_NE(make_random_data_set(*model, 1).inputs, make_random_data_set(*model, 2).inputs);
}

}  // namespace
}  // namespace assay::campaign
