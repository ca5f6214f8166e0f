#pragma once
// SHA-256 (OpenSSL) of bytes, files and tensors, in lower-case hex.
#include <filesystem>
#include <span>
#include <string>

#include "support/tensor.hpp"

namespace assay {

std::string sha256(std::span<const std::byte> bytes);
std::string sha256_file(const std::filesystem::path& path);  ///< throws Error(bad_input) when it cannot be read
/// Hash of a tensor's canonical bytes: "dtype:shape\n" followed by its row-major little-endian bytes.
std::string sha256_tensor(const Tensor& tensor);

}  // namespace assay
