// Judged runs with nodes on the host between jobs of the chip, and inputs that the compiler bound.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "campaign/session.hpp"
#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "support/tensor_io.hpp"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;

struct Small {
    onnx::ModelProto model;
    Small() {
        model.set_ir_version(8);
        model.add_opset_import()->set_version(13);
        model.mutable_graph()->set_name("small");
    }
    void value(onnx::ValueInfoProto& info, const std::string& name, int type, const std::vector<std::int64_t>& dims) {
        info.set_name(name);
        info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
        for (const std::int64_t d : dims) info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(d);
    }
    void input(const std::string& name, int type, const std::vector<std::int64_t>& dims) { value(*model.mutable_graph()->add_input(), name, type, dims); }
    void output(const std::string& name, int type) {
        auto& info = *model.mutable_graph()->add_output();
        info.set_name(name);
        info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    }
    onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& in, const std::vector<std::string>& out) {
        onnx::NodeProto& n = *model.mutable_graph()->add_node();
        n.set_op_type(op);
        n.set_name(out[0] + "_node");
        for (const auto& name : in) n.add_input(name);
        for (const auto& name : out) n.add_output(name);
        return n;
    }
    std::string save(const std::string& name) {
        const fs::path path = fs::temp_directory_path() / ("assay_host_step_" + name + ".onnx");
        std::ofstream(path, std::ios::binary) << model.SerializeAsString();
        return path.string();
    }
};

SessionOptions options_for(const std::string& model) {
    SessionOptions options;
    options.model.model = model;
    options.target_options.chip = simkernel::find_chip_config("aurum-nano");
    options.run.sanitize = true;
    return options;
}

TEST(HostStep, ANodeOfUnknownResultSizeRunsBetweenTwoJobs) {
    Small m;
    m.input("x", onnx::TensorProto::FLOAT, {2, 8});
    m.output("where", onnx::TensorProto::INT64);
    m.output("y", onnx::TensorProto::FLOAT);
    m.node("Relu", {"x"}, {"a"});          // on the chip
    m.node("NonZero", {"a"}, {"where"});   // its shape depends on data
    m.node("Add", {"a", "a"}, {"y"});      // on the chip again
    const SessionReport report = run_session(options_for(m.save("nonzero")));
    EXPECT_EQ(report.verdict, golden::Verdict::pass) << report.reason;
    ASSERT_EQ(report.program.host_steps.size(), 1u);
    EXPECT_EQ(report.program.layers[report.program.host_steps[0].layer].op, "NonZero");
    EXPECT_EQ(report.run.tensors.at("where").shape[0], 2) << "one row a dimension";
    EXPECT_GT(report.run.tensors.at("where").shape[1], 0);
    EXPECT_EQ(report.judgement.outputs.size(), 2u);
}

TEST(HostStep, AWrongHostResultFailsItsLayer) {
    Small m;
    m.input("x", onnx::TensorProto::DOUBLE, {4});
    m.output("y", onnx::TensorProto::DOUBLE);
    m.node("Neg", {"x"}, {"y"});  // the chip holds no float64
    SessionOptions options = options_for(m.save("neg"));
    const fs::path x = fs::temp_directory_path() / "assay_host_step_x.npy";
    Tensor values(DType::f64, {4});
    for (int i = 0; i < 4; ++i) values.as<double>()[i] = i + 0.5;
    write_npy(x, values);
    options.model.inputs = {"x=" + x.string()};
    const SessionReport good = run_session(options);
    EXPECT_EQ(good.verdict, golden::Verdict::pass) << good.reason;
    ASSERT_EQ(good.program.host_steps.size(), 1u);
    EXPECT_TRUE(good.program.descriptors.empty()) << "nothing runs on the chip";
}

}  // namespace
}  // namespace assay::campaign
