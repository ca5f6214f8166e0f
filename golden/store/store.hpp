#pragma once
// The golden store: one HDF5 file for each (model hash, input hash), with the SHA-256 of each tensor's canonical bytes in a manifest beside
// it. A file that does not match its manifest is refused, naming the tensor: never a wrong comparison.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "golden/reference/value.hpp"
#include "support/tensor.hpp"

namespace assay::golden {

struct Provenance {
    std::string model_path, model_sha256, input_sha256;
    std::string producer;  ///< "assay 0.1.0 fp64 reference", "onnxruntime 1.16", ...
    std::string seed;      ///< of made-up inputs; "" when the user gave them
    std::string date;      ///< ISO 8601, given by the caller so that equal content can give equal bytes
};

struct Golden {
    Provenance provenance;
    std::map<std::string, Tensor> inputs;   ///< what the values were computed from
    std::map<std::string, Tensor> tensors;  ///< every value of the graph; floats as float64
};

/// SHA-256 over the names and hashes of all inputs.
std::string hash_inputs(const std::map<std::string, Tensor>& inputs);
/// "golden-<model>-<input>.h5" in `folder`, of the first 16 hex digits of each hash.
std::filesystem::path golden_path(const std::filesystem::path& folder, const std::string& model_sha256, const std::string& input_sha256);
std::filesystem::path manifest_path(const std::filesystem::path& golden);

/// Writes file and manifest, each whole or not at all. Throws Error(io).
void save_golden(const std::filesystem::path& path, const Golden& golden);
/// Reads and verifies everything. Throws Error(damaged) naming the tensor (or attribute) that is damaged or stale, Error(bad_input) when
/// there is no such file.
Golden load_golden(const std::filesystem::path& path);
/// As load_golden, and the golden must be of this model and these inputs: Error(damaged) saying that it is stale otherwise.
Golden load_golden_for(const std::filesystem::path& path, const std::string& model_sha256, const std::string& input_sha256);
/// Every problem of a stored golden, a line each; empty when it is sound.
std::vector<std::string> verify_golden(const std::filesystem::path& path);
/// Provenance and one line a tensor: name, type, shape, hash.
std::string show_golden(const std::filesystem::path& path);

/// All values as they are stored: floats in float64, integers in their type. And back.
std::map<std::string, Tensor> to_stored(const Values& values);
Values from_stored(const std::map<std::string, Tensor>& tensors);

}  // namespace assay::golden
