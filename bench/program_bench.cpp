// Where the host's time goes in a real model: device seconds of warm runs on `tlm`, beside the values alone by opcode (the same descriptors,
// executed one after another without a chip around them). The difference is what SystemC, decoding and the timing models cost.
//
//   program_bench MODEL.onnx [CHIP [PRECISION [RUNS]]]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "simkernel/chip_config.hpp"
#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/interpreter.hpp"
#include "simkernel/exec/semantics.hpp"
#include "simkernel/numerics/dispatch.hpp"
#include "simkernel/numerics/workers.hpp"
#include "support/onnx/onnx_file.hpp"
#include "switchover/runtime.hpp"
#include "workloads/compile.hpp"

namespace {

using namespace assay;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

std::map<std::string, Tensor> random_inputs(const simkernel::Program& program) {
    std::map<std::string, Tensor> inputs;
    std::mt19937 bits(1);
    for (const simkernel::TensorSlot& slot : program.tensors) {
        if (slot.role != simkernel::Role::input) continue;
        Tensor t(slot.dtype, slot.shape);
        if (slot.dtype == DType::f32)
            for (float& v : t.as<float>()) v = static_cast<float>(bits()) * 0x1p-31f - 1.0f;
        inputs[slot.name] = std::move(t);
    }
    return inputs;
}

struct Share {
    double seconds = 0;
    std::uint64_t descriptors = 0, work = 0;
};

/// Seconds of the values alone by opcode: the best of `runs` for each descriptor, summed.
std::map<simkernel::Opcode, Share> values_alone(const simkernel::Program& program, const simkernel::ChipConfig& chip,
                                                const std::map<std::string, Tensor>& inputs, int runs) {
    simkernel::LocalMemory local(chip);
    simkernel::SparseMemory memory(static_cast<std::uint64_t>(chip.hbm_bytes));
    for (const auto& constant : program.constants) (void)memory.write(constant.addr.value, constant.bytes);
    for (const auto& slot : program.tensors)
        if (slot.role == simkernel::Role::input && !slot.on_host) (void)memory.write(slot.addr.value, simkernel::to_device(slot, inputs.at(slot.name)));
    simkernel::HbmOnly hbm(memory);
    std::vector<simkernel::Decoded> decoded(program.descriptors.size());
    const auto began = Clock::now();
    for (std::size_t i = 0; i < decoded.size(); ++i) (void)simkernel::decode(program.descriptors[i], chip, decoded[i]);
    fmt::print("decode: {:.2f} us a descriptor\n", 1e6 * since(began) / static_cast<double>(decoded.size()));
    std::vector<double> best(decoded.size(), 1e30);
    for (int run = 0; run < runs; ++run)
        for (std::size_t i = 0; i < decoded.size(); ++i) {
            const auto start = Clock::now();
            (void)simkernel::execute(decoded[i], local, hbm, chip);
            best[i] = std::min(best[i], since(start));
        }
    std::map<simkernel::Opcode, Share> shares;
    std::map<std::pair<std::uint32_t, simkernel::Opcode>, double> by_layer;
    for (std::size_t i = 0; i < decoded.size(); ++i) {
        by_layer[{program.debug[i].layer, decoded[i].opcode}] += best[i];
        Share& share = shares[decoded[i].opcode];
        share.seconds += best[i];
        ++share.descriptors;
        share.work += simkernel::work_of(decoded[i]);
    }
    std::vector<std::pair<double, std::pair<std::uint32_t, simkernel::Opcode>>> order;
    for (const auto& [key, seconds] : by_layer) order.push_back({seconds, key});
    std::sort(order.rbegin(), order.rend());
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 12); ++i)
        fmt::print("  {:>8.3f} ms {:<8} {} ({})\n", 1e3 * order[i].first, simkernel::name_of(order[i].second.second), program.layers[order[i].second.first].name,
                   program.layers[order[i].second.first].op);
    return shares;
}

}  // namespace

int sc_main(int, char**) { return 0; }

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "program_bench MODEL.onnx [CHIP [PRECISION [RUNS [THREADS]]]]\n");
        return 2;
    }
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
    workloads::CompileOptions options;
    options.chip = simkernel::find_chip_config(argc > 2 ? argv[2] : "aurum-dc");
    options.precision = argc > 3 ? argv[3] : "native";
    options.probes_all = false;
    const int runs = argc > 4 ? std::atoi(argv[4]) : 10;
    if (argc > 5) simkernel::set_worker_count(static_cast<unsigned>(std::atoi(argv[5])));
    const simkernel::Program program = workloads::compile(*load_onnx(argv[1]), {argv[1], ""}, options);
    const std::map<std::string, Tensor> inputs = random_inputs(program);
    const auto shares = values_alone(program, options.chip, inputs, std::min(runs, 5));

    switchover::TargetOptions target_options;
    target_options.chip = options.chip;
    const auto target = switchover::make_target("tlm", target_options);
    switchover::Runtime runtime(*target);
    switchover::RunOptions run_options;
    run_options.trace = false;
    std::vector<double> seconds;
    std::uint64_t cycles = 0, macs = 0;
    for (int run = 0; run <= runs; ++run) {
        const auto result = runtime.run(program, inputs, run_options);
        if (!result.ok()) {
            fmt::print(stderr, "{}\n", result.error().text);
            return 3;
        }
        cycles = result.value().cycles;
        if (run > 0) seconds.push_back(result.value().device_seconds);
    }
    std::sort(seconds.begin(), seconds.end());
    const double device = seconds[seconds.size() / 2];
    for (const simkernel::Layer& layer : program.layers) macs += layer.macs;
    fmt::print("{} threads, dispatch {}; {} cycles, {:.3g} MAC, {} descriptors\n", simkernel::worker_count(), simkernel::current_dispatch(), cycles,
               static_cast<double>(macs), program.descriptors.size());
    fmt::print("{:<10} {:>12} {:>12} {:>10} {:>16}\n", "", "descriptors", "ms", "% device", "work/s");
    double values = 0;
    for (const auto& [opcode, share] : shares) {
        values += share.seconds;
        fmt::print("{:<10} {:>12} {:>12.2f} {:>10.1f} {:>16.3g}\n", simkernel::name_of(opcode), share.descriptors, 1e3 * share.seconds,
                   100 * share.seconds / device, static_cast<double>(share.work) / share.seconds);
    }
    fmt::print("{:<10} {:>12} {:>12.2f} {:>10.1f} {:>16.3g} descriptors/s\n", "the rest", "", 1e3 * (device - values), 100 * (device - values) / device,
               static_cast<double>(program.descriptors.size()) / (device - values));
    fmt::print("{:<10} {:>12} {:>12.2f} {:>10} {:>16.3g} MAC/s\n", "device", program.descriptors.size(), 1e3 * device, "", static_cast<double>(macs) / device);
    return 0;
}
