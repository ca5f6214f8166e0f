// Host tensors to device bytes and back.
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "simkernel/program.hpp"
#include "support/error.hpp"

namespace assay::simkernel {
namespace {

/// Calls body(logical element index, device element index) for every element; device order is the outer loop.
template <class Body>
void for_each_element(const TensorSlot& slot, const Body& body) {
    const std::size_t rank = slot.shape.size();
    std::vector<std::int64_t> logical_stride(rank, 1);
    for (std::size_t d = rank; d-- > 1;) logical_stride[d - 1] = logical_stride[d] * slot.shape[d];
    std::vector<std::int64_t> extent(rank), stride(rank), at(rank, 0);
    for (std::size_t i = 0; i < rank; ++i) {
        const auto d = static_cast<std::size_t>(slot.perm[i]);
        extent[i] = slot.shape[d];
        stride[i] = logical_stride[d];
    }
    const std::int64_t count = element_count(slot.shape);
    std::int64_t logical = 0;
    for (std::int64_t device = 0; device < count; ++device) {
        body(static_cast<std::size_t>(logical), static_cast<std::size_t>(device));
        for (std::size_t i = rank; i-- > 0;) {
            logical += stride[i];
            if (++at[i] < extent[i]) break;
            logical -= stride[i] * extent[i];
            at[i] = 0;
        }
    }
}

}  // namespace

std::vector<std::byte> to_device(const TensorSlot& slot, const Tensor& tensor) {
    if (tensor.dtype != slot.dtype || tensor.shape != slot.shape)
        throw Error(ErrorKind::bad_input, fmt::format("tensor '{}': got {} {}, the program takes {} {}", slot.name, name_of(tensor.dtype),
                                                      to_string(tensor.shape), name_of(slot.dtype), to_string(slot.shape)));
    const std::size_t size = size_of(slot.dtype);
    if (slot.narrow) {
        std::vector<std::byte> out(tensor.bytes.size() / 2);
        for_each_element(slot, [&](std::size_t logical, std::size_t device) {
            const std::int64_t wide = tensor.as<std::int64_t>()[logical];
            if (!std::in_range<std::int32_t>(wide))
                throw Error(ErrorKind::bad_input, fmt::format("tensor '{}': element {} is {}, which the chip's int32 does not hold", slot.name, logical, wide));
            const auto value = static_cast<std::int32_t>(wide);
            std::memcpy(out.data() + device * sizeof value, &value, sizeof value);
        });
        return out;
    }
    std::vector<std::byte> out(tensor.bytes.size());
    for_each_element(slot, [&](std::size_t logical, std::size_t device) {
        std::memcpy(out.data() + device * size, tensor.bytes.data() + logical * size, size);
    });
    if (slot.offset_128)
        for (std::byte& byte : out) byte ^= std::byte{0x80};
    return out;
}

Tensor from_device(const TensorSlot& slot, std::span<const std::byte> bytes) {
    Tensor tensor(slot.dtype, slot.shape);
    if (slot.narrow) {
        ASSAY_CHECK(bytes.size() * 2 == tensor.bytes.size(), "the slot's size was checked when the program was loaded");
        for_each_element(slot, [&](std::size_t logical, std::size_t device) {
            std::int32_t value = 0;
            std::memcpy(&value, bytes.data() + device * sizeof value, sizeof value);
            tensor.as<std::int64_t>()[logical] = value;
        });
        return tensor;
    }
    ASSAY_CHECK(bytes.size() == tensor.bytes.size(), "the slot's size was checked when the program was loaded");
    const std::size_t size = size_of(slot.dtype);
    for_each_element(slot, [&](std::size_t logical, std::size_t device) {
        std::memcpy(tensor.bytes.data() + logical * size, bytes.data() + device * size, size);
    });
    if (slot.offset_128)
        for (std::byte& byte : tensor.bytes) byte ^= std::byte{0x80};
    return tensor;
}

}  // namespace assay::simkernel
