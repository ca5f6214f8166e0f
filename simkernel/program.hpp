#pragma once
// A compiled program: descriptors, constant data, and what a reader needs to feed it, read it and judge it. The same bytes run on every
// target. Stored as HDF5 (docs/file-formats.md).
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/types.hpp"
#include "support/tensor.hpp"

namespace assay::simkernel {

enum class Role { input, output, intermediate };
std::string_view name_of(Role role);

/// One tensor in HBM. Its device bytes are the logical tensor with dimensions permuted: physical dimension i is logical dimension
/// perm[i], row-major, no padding. uint8 model tensors are stored as int8 with value - 128 (`offset_128`).
struct TensorSlot {
    std::string name;         ///< ONNX value name
    DType dtype = DType::f32; ///< host type, as in the model: float32, int8, uint8, int32
    Shape shape;              ///< logical (ONNX) shape
    std::vector<int> perm;    ///< physical dimension i is logical dimension perm[i]
    bool offset_128 = false;
    DeviceAddr addr;
    std::uint64_t bytes = 0;
    Role role = Role::intermediate;
};

/// A group of ONNX nodes that the chip runs as one: what the judge compares and the report lists.
struct Layer {
    std::string name;                 ///< name of its main node (or "Op_index" when the model gives none)
    std::string op;                   ///< "Conv+Relu+QuantizeLinear"
    std::vector<int> nodes;           ///< indices into graph.node, in execution order
    std::vector<std::string> inputs;  ///< device tensors it reads (ONNX value names)
    std::string output;               ///< device tensor it writes
    std::string precision;            ///< "int8", "bf16", "bf16x3" (native fp32 matrix work), "fp32" (vector only), "move"
    std::uint64_t macs = 0;
    /// Matrix layers: K runs over (slab, kh, kw, c within slab); slab = all channels unless SRAM forced less (docs/numerics.md).
    std::int64_t k_slab = 0;
    std::string mapping;              ///< how its loops went onto the array, for people
    std::uint32_t first_descriptor = 0;
    std::uint32_t descriptor_count = 0;
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
    /// For a weight: device element of the initialiser's row-major element index i; absent for derived constants.
    std::vector<std::int64_t> element_offset;  ///< byte offset from addr by original index (first plane); empty when derived
};

struct Constant {
    DeviceAddr addr;
    std::vector<std::byte> bytes;
};

struct Program {
    std::string chip;              ///< preset name, for people
    std::uint32_t config_hash = 0; ///< functional parameters it was compiled for
    std::string precision;         ///< policy: "native", "bf16"
    std::string model_path, model_sha256;
    std::vector<DescriptorWords> descriptors;
    std::vector<DebugEntry> debug; ///< one a descriptor
    std::vector<Constant> constants;
    std::vector<ConstantSlot> constant_slots;
    std::vector<TensorSlot> tensors;
    std::vector<Layer> layers;
    std::vector<std::string> fallback;  ///< nodes that run on the host; empty when all run on the chip
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

}  // namespace assay::simkernel
