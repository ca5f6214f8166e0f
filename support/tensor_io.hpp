#pragma once
// Reading tensors from the formats that users have: .pb (ONNX TensorProto), .npy, .npz (NumPy), .h5 (any HDF5 datasets).
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace assay {

struct NamedTensor {
    std::string name;  ///< "" when the format gives none (a bare .npy, an unnamed .pb)
    Tensor tensor;
};

/// All tensors of one file, by its extension. Throws Error(bad_input) naming file and entry on truncation, unknown type or format.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path);
Tensor read_npy(std::span<const std::byte> bytes, const std::string& where);
std::vector<NamedTensor> read_npz(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace assay
