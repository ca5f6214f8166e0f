#include "support/onnx/onnx_file.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "support/error.hpp"
#include "support/files.hpp"
#include "temp_folder.hpp"

namespace assay {
namespace {

using testing::TempFolder;
using Proto = onnx::TensorProto;

std::string message_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no Error was thrown";
    return "";
}

onnx::ModelProto small_model() {
    onnx::ModelProto model;
    model.set_ir_version(7);
    model.add_opset_import()->set_version(13);
    model.mutable_graph()->add_output()->set_name("y");
    Proto* w = model.mutable_graph()->add_initializer();
    w->set_name("w");
    w->set_data_type(Proto::FLOAT);
    w->add_dims(2);
    w->add_float_data(1.5f);
    w->add_float_data(-2.0f);
    return model;
}

TEST(OnnxFile, ParsesAModelAndItsInitialiser) {
    const auto model = parse_onnx(small_model().SerializeAsString(), "m");
    const Tensor w = tensor_from_proto(model->graph().initializer(0), "w");
    EXPECT_EQ(w.dtype, DType::f32);
    EXPECT_EQ(w.shape, Shape({2}));
    EXPECT_EQ(w.value(0), 1.5);
    EXPECT_EQ(w.value(1), -2.0);
}

TEST(OnnxFile, EveryTruncationIsAnErrorOrAShorterModelAndNeverACrash) {
    const std::string bytes = small_model().SerializeAsString();
    int refused = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        try {
            parse_onnx(bytes.substr(0, size), "cut");
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::bad_input);
            ++refused;
        }
    }
    EXPECT_EQ(refused, static_cast<int>(bytes.size())) << "opset_import is serialised last, so no prefix is a whole model";
}

TEST(OnnxFile, NamesWhatTheContainerLacks) {
    onnx::ModelProto model = small_model();
    model.clear_opset_import();
    EXPECT_NE(message_of([&] { parse_onnx(model.SerializeAsString(), "m.onnx"); }).find("m.onnx: no ai.onnx operator set"),
              std::string::npos);
    model = small_model();
    model.clear_ir_version();
    EXPECT_NE(message_of([&] { parse_onnx(model.SerializeAsString(), "m"); }).find("ir_version"), std::string::npos);
    model = small_model();
    model.clear_graph();
    EXPECT_NE(message_of([&] { parse_onnx(model.SerializeAsString(), "m"); }).find("no graph"), std::string::npos);
}

TEST(OnnxFile, ATensorWhoseDataDoesNotFitItsShapeIsRefusedBeforeAllocation) {
    Proto proto;
    proto.set_data_type(Proto::FLOAT);
    proto.add_dims(std::int64_t{1} << 40);
    proto.add_float_data(1.0f);
    EXPECT_NE(message_of([&] { tensor_from_proto(proto, "t"); }).find("1 elements of float32 are stored"), std::string::npos);
    proto.set_dims(0, -3);
    message_of([&] { tensor_from_proto(proto, "t"); });
    proto.clear_dims();
    proto.add_dims(1);
    proto.set_raw_data("abcde");  // five bytes are not one float
    message_of([&] { tensor_from_proto(proto, "t"); });
}

TEST(OnnxFile, NarrowValuesOutOfTheirTypeAreRefused) {
    Proto proto;
    proto.set_data_type(Proto::INT8);
    proto.add_dims(2);
    proto.add_int32_data(-128);
    proto.add_int32_data(128);
    EXPECT_NE(message_of([&] { tensor_from_proto(proto, "t"); }).find("128 does not fit int8"), std::string::npos);
    proto.set_int32_data(1, 127);
    const Tensor t = tensor_from_proto(proto, "t");
    EXPECT_EQ(t.integer(0), -128);
    EXPECT_EQ(t.integer(1), 127);
}

TEST(OnnxFile, RefusesStringsNamingTheType) {
    Proto proto;
    proto.set_data_type(Proto::STRING);
    EXPECT_NE(message_of([&] { tensor_from_proto(proto, "t"); }).find("STRING"), std::string::npos);
}

TEST(OnnxFile, ExternalDataIsInlinedAndMayNotLeaveTheFolder) {
    const TempFolder folder("assay_onnx");
    const auto save = [&](const std::string& location, const std::string& offset, const std::string& length) {
        onnx::ModelProto model = small_model();
        Proto* w = model.mutable_graph()->mutable_initializer(0);
        w->clear_float_data();
        w->set_data_location(Proto::EXTERNAL);
        for (const auto& [key, value] :
             std::map<std::string, std::string>{{"location", location}, {"offset", offset}, {"length", length}}) {
            auto* entry = w->add_external_data();
            entry->set_key(key);
            entry->set_value(value);
        }
        write_file(folder / "m.onnx", model.SerializeAsString());
        return folder / "m.onnx";
    };
    const std::array<float, 3> data{9.0f, 1.5f, -2.0f};
    write_file(folder / "w.bin", {reinterpret_cast<const char*>(data.data()), sizeof data});
    const auto model = load_onnx(save("w.bin", "4", "8"));
    EXPECT_EQ(tensor_from_proto(model->graph().initializer(0), "w").value(1), -2.0);

    EXPECT_NE(message_of([&] { load_onnx(save("../w.bin", "0", "8")); }).find("leaves the model's folder"), std::string::npos);
    EXPECT_NE(message_of([&] { load_onnx(save("/etc/hostname", "0", "8")); }).find("relative path"), std::string::npos);
    EXPECT_NE(message_of([&] { load_onnx(save("w.bin", "8", "8")); }).find("tensor 'w'"), std::string::npos);
    EXPECT_NE(message_of([&] { load_onnx(save("w.bin", "x", "8")); }).find("decimal number"), std::string::npos);
    EXPECT_NE(message_of([&] { load_onnx(save("absent.bin", "0", "8")); }).find("absent.bin"), std::string::npos);
    std::filesystem::create_symlink("/etc/hostname", folder / "link.bin");
    EXPECT_NE(message_of([&] { load_onnx(save("link.bin", "0", "8")); }).find("leaves the model's folder"), std::string::npos);
}

TEST(OnnxFile, ReadsATensorFileAndItsName) {
    const TempFolder folder("assay_pb");
    Proto proto;
    proto.set_name("x");
    proto.set_data_type(Proto::INT64);
    proto.add_dims(0);
    write_file(folder / "input_0.pb", proto.SerializeAsString());
    std::string name;
    const Tensor t = load_pb_tensor(folder / "input_0.pb", &name);
    EXPECT_EQ(name, "x");
    EXPECT_EQ(t.shape, Shape({0}));
    write_file(folder / "bad.pb", "\xff\xff\xff\xff");
    EXPECT_NE(message_of([&] { load_pb_tensor(folder / "bad.pb"); }).find("bad.pb"), std::string::npos);
    write_file(folder / "empty.pb", "");
    message_of([&] { load_pb_tensor(folder / "empty.pb"); });
}

}  // namespace
}  // namespace assay
