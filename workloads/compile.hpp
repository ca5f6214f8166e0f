#pragma once
// The compiler: an ONNX model and a chip in, a Program out. Stages: import, shapes and folding, fusion into layers, lowering of each layer
// to tiles, semaphores. Deterministic: equal input gives equal bytes.
#include <map>
#include <string>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/program.hpp"
#include "support/tensor.hpp"

namespace onnx {
class ModelProto;
}

namespace assay::workloads {

struct ModelSource {
    std::string path;    ///< as the user gave it; its file name starts every message
    std::string sha256;  ///< of the file
};

/// Where a graph input or output must lie, for state that stays in device memory from one program to the next.
struct Placement {
    std::uint64_t addr = 0;  ///< below CompileOptions::reserved_bytes
    std::vector<int> perm;   ///< of an input: as TensorSlot::perm; an output keeps the layout that suits its layer
};

/// The least and the largest value that a tensor took over the calibration inputs.
struct Range {
    double low = 0, high = 0;
};

struct CompileOptions {
    simkernel::ChipConfig chip;
    std::string precision = "native";           ///< policy of fp32 matrix work (workloads/precision/policy.hpp)
    std::uint32_t cores = 1;                    ///< that layers may be dealt out to; at most chip.cores. Bits never depend on it
    std::map<std::string, Range> ranges;        ///< calibrated ranges of tensors by name: what policies with scales need
    std::map<std::string, std::int64_t> dims;   ///< dynamic dimensions by name
    std::map<std::string, Shape> input_shapes;  ///< shapes of graph inputs, as the user's tensors have them
    std::uint64_t reserved_bytes = 0;           ///< device memory from 0 that the program leaves to placed tensors
    std::map<std::string, Placement> placements;
    /// Values of graph inputs. Those of up to 64 integers or bools may decide conditions, trip counts and shapes (Graph::bound_inputs).
    std::map<std::string, Tensor> input_values;
    bool probes_all = true;                     ///< keep every intermediate tensor in HBM until the end
    std::vector<std::string> probes;            ///< tensors to keep when not all are
};

/// One thing that the compiler cannot do.
struct Problem {
    int node = -1;     ///< index into graph.node; -1: the model as a whole
    std::string name;  ///< the node's name
    std::string op;    ///< "Resize-13"
    std::string text;  ///< "model.onnx: node 'up_3' (Resize-13): mode="cubic" is not supported; use "nearest""
};

/// Throws Error(bad_input) holding every problem, a line each.
simkernel::Program compile(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options);

struct CheckReport {
    std::vector<Problem> problems;  ///< what compile would refuse; empty when it would succeed
    std::vector<Problem> fallback;  ///< nodes that would run on the host, and why
    double host_share = 0;          ///< of the model's arithmetic, 0 to 1
};

/// What compile would meet, without making a program. Throws Error(bad_input) only for a broken container (a value defined twice, a cycle, an
/// unbound dynamic dimension).
CheckReport check(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options);

}  // namespace assay::workloads
