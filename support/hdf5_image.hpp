#pragma once
// An HDF5 file that is made in memory. libhdf5 1.10 does not survive a refused write: it keeps the file open, tries again at exit and crashes. So it
// never meets the disk; we write its bytes ourselves, once it has closed the file.
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay {

class Hdf5Image {
public:
    Hdf5Image() = default;
    ~Hdf5Image();
    Hdf5Image(const Hdf5Image&) = delete;
    Hdf5Image& operator=(const Hdf5Image&) = delete;

    /// Makes files created with this access list (hid_t) live here. The image outlives them.
    void attach(std::int64_t access_list);
    /// The file's bytes; after H5Fclose.
    std::span<const std::byte> bytes() const;

private:
    void* memory_ = nullptr;  ///< from malloc
};

}  // namespace assay
