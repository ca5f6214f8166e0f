#pragma once
// Compiling and running small models on the sequential interpreter, with the sanitizer watching: what the compiler's tests share.
#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "simkernel/exec/sanitizer.hpp"
#include "simkernel/program.hpp"
#include "support/tensor.hpp"
#include "workloads/compile.hpp"

namespace assay::workloads::testing {

/// A chip by preset name: "aurum-nano", "aurum-edge" or "aurum-dc".
simkernel::ChipConfig preset(const std::string& name);

struct RunResult {
    simkernel::Program program;
    std::map<std::string, Tensor> tensors;  ///< every device tensor after the run
};

/// Runs the program with its inputs placed as the runtime would. Adds a test failure for a fault, an illegal program, or a sanitizer
/// finding.
std::map<std::string, Tensor> run_program(const simkernel::Program& program, const simkernel::ChipConfig& chip,
                                          const std::map<std::string, Tensor>& inputs);
RunResult compile_and_run(const onnx::ModelProto& model, CompileOptions options, const std::map<std::string, Tensor>& inputs);

}  // namespace assay::workloads::testing
