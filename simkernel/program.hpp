#pragma once
// A compiled program: descriptors, constant data, and what a reader needs to feed it, read it and judge it. The same bytes run on every
// target. Stored as HDF5 (docs/file-formats.md).
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/element_map.hpp"
#include "simkernel/types.hpp"
#include "support/tensor.hpp"

namespace assay::simkernel {

enum class Role { input, output, intermediate };
std::string_view name_of(Role role);

/// One tensor in HBM. Its device bytes are the logical tensor with dimensions permuted: physical dimension i is logical dimension
/// perm[i], row-major, no padding. uint8 model tensors are stored as int8 with value - 128 (`offset_128`).
struct TensorSlot {
    std::string name;         ///< ONNX value name
    DType dtype = DType::f32; ///< host type, as in the model
    Shape shape;              ///< logical (ONNX) shape
    std::vector<int> perm;    ///< physical dimension i is logical dimension perm[i]
    bool offset_128 = false;
    DeviceAddr addr;
    std::uint64_t bytes = 0;
    Role role = Role::intermediate;
    bool narrow = false;      ///< an int64 tensor that the chip holds as int32: values must fit
    bool on_host = false;     ///< in host memory only (a type that the chip does not hold, or a shape known at run time); no address
    bool internal = false;    ///< a step of a node that the compiler took apart: no value of the model, so never judged by itself
};

/// A group of ONNX nodes that the chip runs as one: what the judge compares and the report lists.
struct Layer {
    std::string name;                 ///< name of its main node (or "Op_index" when the model gives none)
    std::string op;                   ///< "Conv+Relu+QuantizeLinear"
    std::vector<int> nodes;           ///< indices into graph.node, in execution order
    std::vector<std::string> inputs;  ///< tensors it reads (ONNX value names)
    std::vector<std::string> outputs; ///< tensors it writes
    std::string precision;            ///< "int8", "bf16", "bf16x3" (native fp32 matrix work), "fp16", "fp8e4m3", "fp8e5m2", "w8a8", "w8", "w4",
                                      ///< "fp32" (vector only), "move", "host"
    std::uint64_t macs = 0;
    std::uint64_t operations = 0;     ///< arithmetic: 2 a MAC, 1 for each element that is computed otherwise; 0 for plain movement
    /// Matrix layers: K runs over (slab, kh, kw, c within slab); slab = all channels unless SRAM forced less (docs/numerics.md).
    std::int64_t k_slab = 0;
    std::string mapping;              ///< how its loops went onto the array, for people
    std::uint32_t first_descriptor = 0;
    std::uint32_t descriptor_count = 0;
    /// fp8 and w8a8 layers (docs/numerics.md section 3): activations count x_scale each, from x_zero; weights count w_scale each, or, when it
    /// is 0, each output's what its own largest magnitude asks for. 0 elsewhere.
    double x_scale = 0, w_scale = 0;
    std::int32_t x_zero = 0;
};

/// Where a descriptor came from.
struct DebugEntry {
    std::uint32_t layer = 0;  ///< index into layers
    std::uint32_t tile = 0;
};

/// Where a constant (weights, bias, scales) of the model lies in device memory, for fault injection and disassembly.
struct ConstantSlot {
    std::string name;           ///< "conv1_w" (the ONNX initialiser) or "conv1_w#bias", "conv1_w#plane1"
    DeviceAddr addr;
    std::uint64_t bytes = 0;
    Dtype dtype = Dtype::i8;    ///< element type on the device
    /// For a weight: where, from addr, the initialiser's row-major elements lie (of the first plane); empty for derived constants.
    ElementMap elements;
};

struct Constant {
    DeviceAddr addr;
    std::vector<std::byte> bytes;
};

/// ONNX nodes that the chip has no instruction for: the runtime executes them on the host once every descriptor before `before` has
/// retired, and before any other starts.
struct HostStep {
    std::uint32_t layer = 0;          ///< its entry in `layers` (precision "host")
    std::uint32_t before = 0;         ///< index of the first descriptor that must not have started; the descriptor count: after all
    std::vector<TensorSlot> inputs;   ///< read from the device, or on_host: made by an earlier step or given by the user
    std::vector<TensorSlot> outputs;  ///< written to the device too unless on_host
    std::string model;                ///< serialised onnx.ModelProto: its inputs and outputs are those above, by name
    std::string reason;               ///< why it is not on the chip
};

/// A graph input whose value the compiler used (a condition, a trip count, a size): the program is right for this value only.
struct BoundInput {
    std::string name;
    Tensor value;
};

struct Program {
    std::string chip;              ///< preset name, for people
    std::uint32_t config_hash = 0; ///< functional parameters it was compiled for
    std::string precision;         ///< policy (workloads/precision/policy.hpp): "native", "bf16", "fp16", …
    std::string model_path, model_sha256;
    std::vector<DescriptorWords> descriptors;
    std::vector<DebugEntry> debug; ///< one a descriptor
    std::vector<Constant> constants;
    std::vector<ConstantSlot> constant_slots;
    std::vector<TensorSlot> tensors;
    std::vector<Layer> layers;
    std::vector<HostStep> host_steps;  ///< in order of `before`; empty when all runs on the chip
    std::vector<BoundInput> bound_inputs;
    std::uint64_t hbm_bytes = 0;   ///< one past the last byte used
};

void save_program(const Program& program, const std::filesystem::path& path);
/// Throws Error(bad_input) or Error(damaged) naming the file and the dataset.
Program load_program(const std::filesystem::path& path);

/// Text of one descriptor, for `assay compile --dump` and messages: "12 matmul i8 a=spm+0x40 … wait s0>=3 signal s2+1".
std::string disassemble(std::uint32_t index, const DescriptorWords& words);

/// Host tensor to device bytes and back, by the slot's permutation.
std::vector<std::byte> to_device(const TensorSlot& slot, const Tensor& tensor);
Tensor from_device(const TensorSlot& slot, std::span<const std::byte> bytes);

/// Share of the program's arithmetic that runs on the host, 0 to 1.
double host_share(const Program& program);

}  // namespace assay::simkernel
