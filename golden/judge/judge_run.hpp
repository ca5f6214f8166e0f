#pragma once
// Judges one run of a program: every layer on its own and in the network, every output against golden and against published outputs.
#include <map>
#include <string>

#include "golden/judge/verdict.hpp"
#include "golden/reference/reference.hpp"
#include "simkernel/program.hpp"

namespace assay::golden {

struct RunToJudge {
    const simkernel::Program& program;
    const Reference& reference;
    const std::map<std::string, Tensor>& inputs;               ///< by graph input
    const std::map<std::string, Tensor>& device;               ///< what was read back, by ONNX value name
    const std::map<std::string, std::uint64_t>& unwritten;     ///< bytes that still hold the poison, for tensors where there are some
    const std::map<std::string, Tensor>* published = nullptr;  ///< by graph output; null or empty: none
    /// A stored or imported golden that outputs and layers are compared with; null: the reference's own fp64 values. What the emulation's
    /// error is measured against is always the reference's own: a wrong golden must not widen its own yardstick.
    const Values* golden = nullptr;
    const Values* own = nullptr;  ///< reference.run(inputs), when the caller has it already
};

/// Throws Error(bad_input) when the inputs do not fit the model; everything about the device is a verdict.
RunVerdict judge_run(const RunToJudge& run);

}  // namespace assay::golden
