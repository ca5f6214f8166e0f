#include "golden/reference/value.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "golden/emulation/rounding.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 30;

template <class T>
void move_plane(const std::vector<T>& from, std::vector<T>& to, const std::vector<std::int64_t>& index, T fill) {
    if (from.empty() && to.empty()) return;
    to.resize(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) to[i] = index[i] < 0 ? fill : from[static_cast<std::size_t>(index[i])];
}

template <class T>
void store(const Value& value, Tensor& out) {
    std::span<T> to = out.as<T>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = value.floating() ? static_cast<T>(value.f[i]) : static_cast<T>(value.n[i]);
}

}  // namespace

Value::Value(DType type, Shape dims) : dtype(type), shape(std::move(dims)) {
    check_size(shape);
    if (floating())
        f.resize(static_cast<std::size_t>(element_count(shape)));
    else
        n.resize(static_cast<std::size_t>(element_count(shape)));
}

void check_size(const Shape& shape) {
    if (const std::int64_t elements = element_count(shape); elements > kMaxElements)
        throw Error(ErrorKind::bad_input, fmt::format("a tensor of shape {} has {} elements, the reference holds at most {}",
                                                      to_string(shape), elements, kMaxElements));
}

void Value::set(std::int64_t i, double v) {
    if (floating())
        f[static_cast<std::size_t>(i)] = v;
    else
        n[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(v);
}

Value Value::gather(const std::vector<std::int64_t>& index, Shape new_shape, double fill) const {
    Value out;
    out.dtype = dtype;
    out.shape = std::move(new_shape);
    if (floating())
        out.f.resize(index.size());
    else
        out.n.resize(index.size());
    move_plane(f, out.f, index, fill);
    move_plane(n, out.n, index, static_cast<std::int64_t>(floating() ? 0.0 : fill));
    if (!err.empty()) move_plane(err, out.err, index, 0.0);
    if (!unrounded.empty()) move_plane(unrounded, out.unrounded, index, fill);
    if (!unrounded_err.empty()) move_plane(unrounded_err, out.unrounded_err, index, 0.0);
    return out;
}

Value Value::reshaped(Shape new_shape) const {
    ASSAY_CHECK(element_count(new_shape) == count(), "a reshape keeps the element count");
    Value out = *this;
    out.shape = std::move(new_shape);
    return out;
}

Value to_value(const Tensor& tensor) {
    Value out(tensor.dtype, tensor.shape);
    for (std::int64_t i = 0; i < out.count(); ++i) {
        if (out.floating())
            out.f[static_cast<std::size_t>(i)] = tensor.value(i);
        else
            out.n[static_cast<std::size_t>(i)] = tensor.integer(i);
    }
    return out;
}

Tensor to_tensor(const Value& value) {
    Tensor out(value.dtype, value.shape);
    switch (value.dtype) {
        case DType::f32:
            store<float>(value, out);
            break;
        case DType::f64:
            store<double>(value, out);
            break;
        case DType::i8:
            store<std::int8_t>(value, out);
            break;
        case DType::u8:
        case DType::boolean:
            store<std::uint8_t>(value, out);
            break;
        case DType::i16:
            store<std::int16_t>(value, out);
            break;
        case DType::u16:
            store<std::uint16_t>(value, out);
            break;
        case DType::i32:
            store<std::int32_t>(value, out);
            break;
        case DType::u32:
            store<std::uint32_t>(value, out);
            break;
        case DType::i64:
            store<std::int64_t>(value, out);
            break;
        case DType::u64:
            store<std::uint64_t>(value, out);
            break;
        case DType::f16:
        case DType::bf16:
            for (std::int64_t i = 0; i < value.count(); ++i)
                out.as<std::uint16_t>()[static_cast<std::size_t>(i)] =
                    value.dtype == DType::f16 ? encode_f16(value.at(i)) : encode_bf16(value.at(i));
            break;
    }
    return out;
}

std::int64_t wrap(DType type, std::int64_t value) {
    switch (type) {
        case DType::i8:
            return static_cast<std::int8_t>(value);
        case DType::u8:
            return static_cast<std::uint8_t>(value);
        case DType::i16:
            return static_cast<std::int16_t>(value);
        case DType::u16:
            return static_cast<std::uint16_t>(value);
        case DType::i32:
            return static_cast<std::int32_t>(value);
        case DType::u32:
            return static_cast<std::uint32_t>(value);
        case DType::boolean:
            return value != 0;
        default:
            return value;
    }
}

std::int64_t lowest(DType type) {
    switch (type) {
        case DType::i8:
            return -128;
        case DType::i16:
            return -32768;
        case DType::i32:
            return std::numeric_limits<std::int32_t>::min();
        case DType::i64:
            return std::numeric_limits<std::int64_t>::min();
        default:
            return 0;
    }
}

std::int64_t highest(DType type) {
    switch (type) {
        case DType::boolean:
            return 1;
        case DType::i8:
            return 127;
        case DType::u8:
            return 255;
        case DType::i16:
            return 32767;
        case DType::u16:
            return 65535;
        case DType::i32:
            return std::numeric_limits<std::int32_t>::max();
        case DType::u32:
            return std::numeric_limits<std::uint32_t>::max();
        default:
            return std::numeric_limits<std::int64_t>::max();
    }
}

std::vector<std::int64_t> strides_of(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
    Shape out(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
        const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            throw Error(ErrorKind::bad_input, fmt::format("shapes {} and {} cannot be broadcast", to_string(a), to_string(b)));
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

std::vector<std::int64_t> broadcast_index(const Shape& from, const Shape& to) {
    const std::vector<std::int64_t> from_strides = strides_of(from);
    std::vector<std::int64_t> step(to.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i)
        if (from[i] != 1) step[to.size() - from.size() + i] = from_strides[i];
    check_size(to);
    std::vector<std::int64_t> index(static_cast<std::size_t>(element_count(to)));
    std::vector<std::int64_t> at(to.size(), 0);
    std::int64_t offset = 0;
    for (auto& out : index) {
        out = offset;
        for (std::size_t d = to.size(); d-- > 0;) {
            offset += step[d];
            if (++at[d] < to[d]) break;
            offset -= step[d] * to[d];
            at[d] = 0;
        }
    }
    return index;
}

}  // namespace assay::golden
