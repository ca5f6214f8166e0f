// The matrix path inside a real run: a 3x3 convolution, 256 to 256 channels at 56x56, compiled for aurum-dc and run on `tlm`, in int8 (QDQ)
// and bf16. Prints MAC/s of the whole job, and of its matmul descriptors alone in the same process: the ratio is the share of arithmetic.
// One after the other in one process: SystemC elaborates once.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "simkernel/chip_config.hpp"
#include "simkernel/exec/semantics.hpp"
#include "simkernel/numerics/dispatch.hpp"
#include "simkernel/numerics/workers.hpp"
#include "switchover/runtime.hpp"
#include "workloads/compile.hpp"

namespace {

using namespace assay;

constexpr std::int64_t kChannels = 256, kSide = 56;
constexpr int kRuns = 10;

std::mt19937 random_bits(1);

template <class T>
void initializer(onnx::GraphProto& graph, const std::string& name, int type, const std::vector<std::int64_t>& dims, const std::vector<T>& values) {
    onnx::TensorProto& t = *graph.add_initializer();
    t.set_name(name);
    t.set_data_type(type);
    for (const std::int64_t dim : dims) t.add_dims(dim);
    t.set_raw_data(values.data(), values.size() * sizeof(T));
}

onnx::NodeProto& node(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& n = *graph.add_node();
    n.set_op_type(op);
    n.set_name(output);
    for (const std::string& input : inputs) n.add_input(input);
    n.add_output(output);
    return n;
}

void value(onnx::ValueInfoProto& info, const std::string& name, int type) {
    info.set_name(name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    for (const std::int64_t dim : {std::int64_t{1}, kChannels, kSide, kSide})
        info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(dim);
}

onnx::ModelProto conv_model(bool int8) {
    onnx::ModelProto model;
    model.set_ir_version(7);
    model.add_opset_import()->set_version(13);
    onnx::GraphProto& g = *model.mutable_graph();
    const int type = int8 ? onnx::TensorProto::INT8 : onnx::TensorProto::FLOAT;
    value(*g.add_input(), "x", type);
    value(*g.add_output(), "y", type);
    const std::vector<std::int64_t> dims{kChannels, kChannels, 3, 3};
    const std::size_t count = static_cast<std::size_t>(kChannels * kChannels * 9);
    if (int8) {
        std::vector<std::int8_t> w(count);
        for (auto& v : w) v = static_cast<std::int8_t>(random_bits() % 255 - 127);
        initializer(g, "w", type, dims, w);
        initializer<float>(g, "scale", onnx::TensorProto::FLOAT, {}, {0.01f});
        initializer<float>(g, "y_scale", onnx::TensorProto::FLOAT, {}, {1.0f});
        initializer<std::int8_t>(g, "zero", type, {}, {0});
        node(g, "DequantizeLinear", {"x", "scale", "zero"}, "xf");
        node(g, "DequantizeLinear", {"w", "scale", "zero"}, "wf");
    } else {
        std::vector<float> w(count);
        for (float& v : w) v = static_cast<float>(static_cast<double>(random_bits()) * 0x1p-32 - 0.5) * 0.05f;
        initializer(g, "w", type, dims, w);
    }
    onnx::NodeProto& conv = node(g, "Conv", int8 ? std::vector<std::string>{"xf", "wf"} : std::vector<std::string>{"x", "w"}, int8 ? "yf" : "y");
    onnx::AttributeProto& pads = *conv.add_attribute();
    pads.set_name("pads");
    pads.set_type(onnx::AttributeProto::INTS);
    for (int i = 0; i < 4; ++i) pads.add_ints(1);
    if (int8) node(g, "QuantizeLinear", {"yf", "y_scale", "zero"}, "y");
    return model;
}

/// Seconds of the matmul descriptors alone, best of kRuns.
double arithmetic_seconds(const simkernel::Program& program, const simkernel::ChipConfig& chip) {
    simkernel::LocalMemory local(chip);
    simkernel::SparseMemory hbm(static_cast<std::uint64_t>(chip.hbm_bytes));
    class Hbm final : public simkernel::ExternalMemory {
        bool read(std::uint64_t, std::span<std::byte>) override { return false; }
        bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
    } external;
    std::vector<simkernel::Decoded> matmuls;
    for (const auto& words : program.descriptors) {
        simkernel::Decoded d;
        if (!simkernel::decode(words, chip, d) && d.opcode == simkernel::Opcode::matmul) matmuls.push_back(d);
    }
    double best = 1e30;
    for (int run = 0; run < kRuns; ++run) {
        const auto began = std::chrono::steady_clock::now();
        for (const auto& d : matmuls) (void)simkernel::execute(d, local, external, chip);
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    return best;
}

}  // namespace

int sc_main(int, char**) { return 0; }

int main() {
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
    switchover::TargetOptions options;
    options.chip = simkernel::find_chip_config("aurum-dc");
    const auto target = switchover::make_target("tlm", options);
    switchover::Runtime runtime(*target);
    fmt::print("{} threads, dispatch {}\n", simkernel::worker_count(), simkernel::current_dispatch());
    fmt::print("{:<6} {:>14} {:>12} {:>16} {:>20} {:>12}\n", "type", "MAC", "device s", "run GMAC/s", "matmul alone GMAC/s", "outside %");
    for (const bool int8 : {true, false}) {
        workloads::CompileOptions compile;
        compile.chip = options.chip;
        compile.precision = "bf16";
        const simkernel::Program program = workloads::compile(conv_model(int8), {"conv.onnx", ""}, compile);
        Tensor x(int8 ? DType::i8 : DType::f32, {1, kChannels, kSide, kSide});
        if (int8)
            for (auto& v : x.as<std::int8_t>()) v = static_cast<std::int8_t>(random_bits());
        else
            for (auto& v : x.as<float>()) v = static_cast<float>(static_cast<double>(random_bits()) * 0x1p-32 - 0.5);
        std::vector<double> seconds;
        for (int run = 0; run < kRuns; ++run) {
            const auto result = runtime.run(program, {{"x", x}}, {});
            if (!result.ok() || result.value().completion.status != static_cast<std::uint32_t>(simkernel::JobStatus::done)) {
                fmt::print(stderr, "run failed\n");
                return 1;
            }
            seconds.push_back(result.value().device_seconds);
        }
        std::sort(seconds.begin(), seconds.end());
        const double median = seconds[seconds.size() / 2];
        const double alone = arithmetic_seconds(program, options.chip);
        double macs = 0;
        for (const auto& layer : program.layers) macs += static_cast<double>(layer.macs);
        fmt::print("{:<6} {:>14.0f} {:>12.4f} {:>16.2f} {:>20.2f} {:>12.1f}\n", int8 ? "int8" : "bf16", macs, median, macs / median * 1e-9, macs / alone * 1e-9,
                   100.0 * (1.0 - std::min(1.0, alone / median)));
    }
    return 0;
}
