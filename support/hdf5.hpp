#pragma once
// Thin RAII over the HDF5 1.10 C API: each call's negative status becomes an Error carrying HDF5's own error stack.
// Writing: latest libver, chunked, deflate + shuffle, Fletcher32, no track_times, so equal content gives equal bytes.
// `h5dump` and `h5py` read all of it: bf16 tensors are stored as uint16 with attribute assay_dtype="bfloat16".
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace assay {

class Hdf5Image;

class Hdf5File {
public:
    /// A new file, made in memory; close() writes it to `path`. Use inside write_atomically.
    static Hdf5File create(const std::filesystem::path& path);
    static Hdf5File open(const std::filesystem::path& path);       ///< read-only; Error(bad_input) if it is not HDF5 or truncated
    Hdf5File(Hdf5File&&) noexcept;
    Hdf5File& operator=(Hdf5File&&) noexcept;
    ~Hdf5File();
    void close();  ///< Error(io) when the disk refuses. A new file that is destroyed before its close() leaves nothing.

    /// Names may contain '/', ':' or any UTF-8: the dataset lives in `group` under an escaped link name ('%', '/', '.', NUL as %25, %2F, %2E, %00; the empty name as '%'),
    /// with attribute "name" holding the original.
    void write_tensor(const std::string& group, const std::string& name, const Tensor& tensor);
    /// Error(damaged) on checksum failure or when it is missing; Error(bad_input) for what is no tensor (text, compound types, an empty
    /// dataspace, a shape that its stored bytes cannot fill). Both name the tensor.
    Tensor read_tensor(const std::string& group, const std::string& name) const;
    std::vector<std::string> tensor_names(const std::string& group) const;        ///< in creation order; empty if no group
    bool has_tensor(const std::string& group, const std::string& name) const;
    std::vector<std::string> groups() const;  ///< "/" and the groups directly below it

    /// String attributes of the file's root group.
    void write_attribute(const std::string& name, const std::string& value);
    std::string read_attribute(const std::string& name) const;   ///< Error(bad_input) when absent
    bool has_attribute(const std::string& name) const;
    const std::filesystem::path& path() const { return path_; }

private:
    Hdf5File(std::filesystem::path path, std::int64_t id, std::unique_ptr<Hdf5Image> image);
    std::filesystem::path path_;
    std::unique_ptr<Hdf5Image> image_;  ///< of a new file; outlives id_
    std::int64_t id_ = -1;              ///< hid_t
};

}  // namespace assay
