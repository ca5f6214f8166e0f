#include "run_program.hpp"

#include <gtest/gtest.h>

#include "simkernel/chip_config.hpp"
#include "simkernel/exec/interpreter.hpp"
#include "simkernel/exec/legality.hpp"

namespace assay::workloads::testing {

simkernel::ChipConfig preset(const std::string& name) {
    return simkernel::load_chip_config(std::string(ASSAY_SOURCE_DIR) + "/configs/" + name + ".toml");
}

std::map<std::string, Tensor> run_program(const simkernel::Program& program, const simkernel::ChipConfig& chip,
                                          const std::map<std::string, Tensor>& inputs) {
    for (const auto& problem : simkernel::check_program(program.descriptors, chip, 3))
        ADD_FAILURE() << "illegal program: " << problem.text << " in "
                      << simkernel::disassemble(problem.descriptor, program.descriptors[problem.descriptor]);
    simkernel::SparseMemory memory(static_cast<std::uint64_t>(chip.hbm_bytes));
    simkernel::Sanitizer sanitizer(chip);
    const auto write = [&](simkernel::DeviceAddr addr, const std::vector<std::byte>& bytes) {
        EXPECT_TRUE(memory.write(addr.value, bytes));
        sanitizer.host_wrote(addr.value, bytes.size());
    };
    for (const auto& constant : program.constants) write(constant.addr, constant.bytes);
    for (const auto& slot : program.tensors)
        if (slot.role == simkernel::Role::input) write(slot.addr, simkernel::to_device(slot, inputs.at(slot.name)));
    simkernel::HbmOnly hbm(memory);
    simkernel::Interpreter interpreter(chip, hbm);
    const auto result = interpreter.run(program.descriptors, 0, UINT32_MAX, &sanitizer);
    EXPECT_EQ(result.status, simkernel::JobStatus::done)
        << result.text << " in "
        << (result.descriptor < program.descriptors.size()
                ? simkernel::disassemble(result.descriptor, program.descriptors[result.descriptor])
                : "");
    for (std::size_t i = 0; i < sanitizer.findings().size() && i < 3; ++i) {
        const auto& finding = sanitizer.findings()[i];
        ADD_FAILURE() << finding.text << "\n  " << simkernel::disassemble(finding.descriptor, program.descriptors[finding.descriptor])
                      << "\n  layer " << program.layers[program.debug[finding.descriptor].layer].name << "\n  other "
                      << simkernel::disassemble(finding.other, program.descriptors[finding.other]);
    }
    std::map<std::string, Tensor> tensors;
    for (const auto& slot : program.tensors) {
        std::vector<std::byte> bytes(slot.bytes);
        EXPECT_TRUE(memory.read(slot.addr.value, bytes));
        tensors[slot.name] = simkernel::from_device(slot, bytes);
    }
    return tensors;
}

RunResult compile_and_run(const onnx::ModelProto& model, CompileOptions options, const std::map<std::string, Tensor>& inputs) {
    for (const auto& [name, tensor] : inputs) options.input_shapes[name] = tensor.shape;
    RunResult result;
    result.program = compile(model, {"model.onnx", ""}, options);
    // The interpreter knows no host: a program with host steps is for the caller to look at, not to run.
    if (result.program.host_steps.empty()) result.tensors = run_program(result.program, options.chip, inputs);
    return result;
}

}  // namespace assay::workloads::testing
