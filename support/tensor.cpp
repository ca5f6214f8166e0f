#include "support/tensor.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/error.hpp"

namespace assay {
namespace {

template <class T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
}

double from_f16(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    const double sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

std::int64_t truncated(double value) {
    constexpr double bound = 0x1p63;  // the cast is undefined at and past it
    if (std::isnan(value)) return 0;
    if (value >= bound) return std::numeric_limits<std::int64_t>::max();
    return value < -bound ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(value);
}

}  // namespace

std::size_t size_of(DType type) {
    switch (type) {
        case DType::i8: case DType::u8: case DType::boolean: return 1;
        case DType::f16: case DType::bf16: case DType::i16: case DType::u16: return 2;
        case DType::f32: case DType::i32: case DType::u32: return 4;
        case DType::f64: case DType::i64: case DType::u64: return 8;
    }
    return 0;
}

std::string_view name_of(DType type) {
    switch (type) {
        case DType::f32: return "float32";
        case DType::f64: return "float64";
        case DType::f16: return "float16";
        case DType::bf16: return "bfloat16";
        case DType::i8: return "int8";
        case DType::u8: return "uint8";
        case DType::i16: return "int16";
        case DType::u16: return "uint16";
        case DType::i32: return "int32";
        case DType::u32: return "uint32";
        case DType::i64: return "int64";
        case DType::u64: return "uint64";
        case DType::boolean: return "bool";
    }
    return "?";
}

bool is_float(DType type) {
    return type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16;
}

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t dim : shape)
        if (dim < 0 || __builtin_mul_overflow(count, dim, &count) || count > std::int64_t{1} << 62)
            throw Error(ErrorKind::bad_input, fmt::format("shape {}: dimensions must be non-negative and hold less than 2^62 elements",
                                                          to_string(shape)));
    return count;
}

std::string to_string(const Shape& shape) {
    return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

Tensor::Tensor(DType type, Shape dims) : dtype(type), shape(std::move(dims)) {
    const std::int64_t elements = element_count(shape);
    if (elements > std::int64_t{1} << 36)
        throw Error(ErrorKind::bad_input, fmt::format("tensor of shape {}: more than 2^36 elements", to_string(shape)));
    bytes.resize(static_cast<std::size_t>(elements) * size_of(dtype));
}

double Tensor::value(std::int64_t i) const {
    const std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size_of(dtype);
    switch (dtype) {
        case DType::f32: return load<float>(at);
        case DType::f64: return load<double>(at);
        case DType::f16: return from_f16(load<std::uint16_t>(at));
        case DType::bf16: return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(at)} << 16);
        case DType::u64: return static_cast<double>(load<std::uint64_t>(at));
        default: return static_cast<double>(integer(i));
    }
}

std::int64_t Tensor::integer(std::int64_t i) const {
    const std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size_of(dtype);
    switch (dtype) {
        case DType::i8: return load<std::int8_t>(at);
        case DType::u8: return load<std::uint8_t>(at);
        case DType::boolean: return load<std::uint8_t>(at) != 0;
        case DType::i16: return load<std::int16_t>(at);
        case DType::u16: return load<std::uint16_t>(at);
        case DType::i32: return load<std::int32_t>(at);
        case DType::u32: return load<std::uint32_t>(at);
        case DType::i64: return load<std::int64_t>(at);
        case DType::u64: return static_cast<std::int64_t>(load<std::uint64_t>(at));
        default: return truncated(value(i));
    }
}

}  // namespace assay
