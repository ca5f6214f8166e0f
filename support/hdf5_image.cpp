#include "support/hdf5_image.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <hdf5.h>

#include "support/error.hpp"

namespace assay {
namespace {

constexpr std::size_t kIncrementBytes = std::size_t{1} << 18;  // growth of the image; realloc moves large blocks by page tables

void* allocate(std::size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); }
void* reallocate(void* memory, std::size_t size, H5FD_file_image_op_t, void*) { return std::realloc(memory, size); }
/// The image belongs to nobody's property list: copies of the list share it.
void* share(void* image) { return image; }
herr_t leave(void*) { return 0; }

}  // namespace

Hdf5Image::~Hdf5Image() { std::free(memory_); }

void Hdf5Image::attach(std::int64_t access_list) {
    H5FD_file_image_callbacks_t callbacks{};
    callbacks.image_malloc = allocate;
    callbacks.image_realloc = reallocate;
    callbacks.image_free = [](void* memory, H5FD_file_image_op_t operation, void* self) -> herr_t {
        // At the file's close, everything has been flushed: here the finished file is taken over instead of freed.
        if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) std::swap(static_cast<Hdf5Image*>(self)->memory_, memory);
        std::free(memory);
        return 0;
    };
    callbacks.udata_copy = share;
    callbacks.udata_free = leave;
    callbacks.udata = this;
    ASSAY_CHECK(H5Pset_fapl_core(access_list, kIncrementBytes, false) >= 0 && H5Pset_file_image_callbacks(access_list, &callbacks) >= 0,
                "HDF5 has its core driver");
}

std::span<const std::byte> Hdf5Image::bytes() const {
    // Superblock version 2 or 3 (HDF5 File Format Specification 3.0, II.A): signature, version, size of offsets, size of lengths, flags, base address,
    // extension address, end of file.
    constexpr unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    constexpr std::size_t end_of_file_at = 28;
    const auto* at = static_cast<const std::byte*>(memory_);
    ASSAY_CHECK(at && std::memcmp(at, signature, sizeof signature) == 0 && (at[8] == std::byte{2} || at[8] == std::byte{3}) && at[9] == std::byte{8},
                "the file was created with the latest format and is closed");
    std::uint64_t size = 0;
    std::memcpy(&size, at + end_of_file_at, sizeof size);
    return {at, static_cast<std::size_t>(size)};
}

}  // namespace assay
