#pragma once
// `assay compare A B --exact`: two tensor files, byte for byte.
#include <filesystem>
#include <string>
#include <vector>

namespace assay::golden {

struct FileComparison {
    std::size_t compared = 0;              ///< tensors present in both
    std::vector<std::string> differences;  ///< "tensor 'x' (group outputs): 3 of 120 elements differ, first at 7: 1.5 against 1.25"
    bool equal() const { return compared > 0 && differences.empty(); }
};

/// Bytes, shape and element type of every tensor in every group of two HDF5 files. Throws Error(bad_input) for an unreadable file and when
/// neither file holds a tensor: a comparison over nothing is an error.
FileComparison compare_exact(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace assay::golden
