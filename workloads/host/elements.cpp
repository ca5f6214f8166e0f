#include "workloads/host/elements.hpp"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <limits>

namespace assay::workloads::hostops {
namespace {

template <class T>
T to_integer(double v) {
    if (std::isnan(v)) return 0;
    v = std::trunc(v);
    // The bounds of T as doubles: the upper one is exclusive, since 2^63 - 1 is no double.
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (v < low) return std::numeric_limits<T>::min();
    if (v >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
}

double half_to_double(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
    return exponent == 0 ? sign * mantissa * 0x1p-24 : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <class T, class Out>
void load_as(const Tensor& t, std::int64_t first, std::span<Out> out) {
    const T* from = t.as<T>().data() + first;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Out>(from[i]);
}

template <class T>
void store_wrapped(Tensor& t, std::int64_t first, std::span<const std::int64_t> values) {
    T* to = t.as<T>().data() + first;
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
}

template <class T>
void store_truncated(Tensor& t, std::int64_t first, std::span<const double> values) {
    T* to = t.as<T>().data() + first;
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = to_integer<T>(values[i]);
}

/// Walks an index space row by row: f(position of the row in the dense order, offset of its first element).
template <class F>
void rows(const Shape& shape, std::span<const std::int64_t> strides, std::int64_t offset, F&& f) {
    const std::size_t rank = shape.size();
    const std::int64_t run = rank ? shape[rank - 1] : 1;
    const std::int64_t total = element_count(shape);
    if (total == 0) return;
    std::vector<std::int64_t> index(rank, 0);
    std::int64_t at = offset;
    for (std::int64_t i = 0; i < total; i += run) {
        f(i, at);
        for (std::size_t d = rank ? rank - 1 : 0; d-- > 0;) {
            at += strides[d];
            if (++index[d] < shape[d]) break;
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
}

}  // namespace

void load(const Tensor& t, std::int64_t first, std::span<double> out) {
    switch (t.dtype) {
        case DType::f32: return load_as<float>(t, first, out);
        case DType::f64: return load_as<double>(t, first, out);
        case DType::i8: return load_as<std::int8_t>(t, first, out);
        case DType::u8: return load_as<std::uint8_t>(t, first, out);
        case DType::i16: return load_as<std::int16_t>(t, first, out);
        case DType::u16: return load_as<std::uint16_t>(t, first, out);
        case DType::i32: return load_as<std::int32_t>(t, first, out);
        case DType::u32: return load_as<std::uint32_t>(t, first, out);
        case DType::i64: return load_as<std::int64_t>(t, first, out);
        case DType::u64: return load_as<std::uint64_t>(t, first, out);
        case DType::f16: {
            const std::uint16_t* from = t.as<std::uint16_t>().data() + first;
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = half_to_double(from[i]);
            return;
        }
        default:
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = t.value(first + static_cast<std::int64_t>(i));
    }
}

void load(const Tensor& t, std::int64_t first, std::span<std::int64_t> out) {
    switch (t.dtype) {
        case DType::i8: return load_as<std::int8_t>(t, first, out);
        case DType::u8: return load_as<std::uint8_t>(t, first, out);
        case DType::i16: return load_as<std::int16_t>(t, first, out);
        case DType::u16: return load_as<std::uint16_t>(t, first, out);
        case DType::i32: return load_as<std::int32_t>(t, first, out);
        case DType::u32: return load_as<std::uint32_t>(t, first, out);
        case DType::i64: return load_as<std::int64_t>(t, first, out);
        case DType::u64: return load_as<std::uint64_t>(t, first, out);
        default:
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = t.integer(first + static_cast<std::int64_t>(i));
    }
}

void store(Tensor& t, std::int64_t first, std::span<const double> values) {
    switch (t.dtype) {
        case DType::f32: {
            float* to = t.as<float>().data() + first;
            for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<float>(values[i]);
            return;
        }
        case DType::f64: std::copy(values.begin(), values.end(), t.as<double>().begin() + first); return;
        case DType::f16:
        case DType::bf16: {
            const int e = t.dtype == DType::f16 ? 5 : 8, m = t.dtype == DType::f16 ? 10 : 7;
            std::uint16_t* to = t.as<std::uint16_t>().data() + first;
            for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<std::uint16_t>(encode_float(values[i], e, m));
            return;
        }
        case DType::i8: return store_truncated<std::int8_t>(t, first, values);
        case DType::u8: return store_truncated<std::uint8_t>(t, first, values);
        case DType::i16: return store_truncated<std::int16_t>(t, first, values);
        case DType::u16: return store_truncated<std::uint16_t>(t, first, values);
        case DType::i32: return store_truncated<std::int32_t>(t, first, values);
        case DType::u32: return store_truncated<std::uint32_t>(t, first, values);
        case DType::i64: return store_truncated<std::int64_t>(t, first, values);
        case DType::u64: return store_truncated<std::uint64_t>(t, first, values);
        case DType::boolean: {
            std::uint8_t* to = t.as<std::uint8_t>().data() + first;
            for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i] != 0;
            return;
        }
    }
}

void store(Tensor& t, std::int64_t first, std::span<const std::int64_t> values) {
    switch (t.dtype) {
        case DType::i8: return store_wrapped<std::int8_t>(t, first, values);
        case DType::u8: return store_wrapped<std::uint8_t>(t, first, values);
        case DType::i16: return store_wrapped<std::int16_t>(t, first, values);
        case DType::u16: return store_wrapped<std::uint16_t>(t, first, values);
        case DType::i32: return store_wrapped<std::int32_t>(t, first, values);
        case DType::u32: return store_wrapped<std::uint32_t>(t, first, values);
        case DType::i64: return store_wrapped<std::int64_t>(t, first, values);
        case DType::u64: return store_wrapped<std::uint64_t>(t, first, values);
        case DType::boolean: {
            std::uint8_t* to = t.as<std::uint8_t>().data() + first;
            for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i] != 0;
            return;
        }
        default:
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double v = static_cast<double>(values[i]);
                // float32 from int64 directly: through double it would round twice.
                if (t.dtype == DType::f32)
                    t.as<float>()[static_cast<std::size_t>(first) + i] = static_cast<float>(values[i]);
                else
                    store(t, first + static_cast<std::int64_t>(i), std::span<const double>(&v, 1));
            }
    }
}

std::vector<double> reals_of(const Tensor& t) {
    std::vector<double> v(static_cast<std::size_t>(t.count()));
    load(t, 0, std::span<double>(v));
    return v;
}

std::vector<std::int64_t> integers_of(const Tensor& t) {
    std::vector<std::int64_t> v(static_cast<std::size_t>(t.count()));
    load(t, 0, std::span<std::int64_t>(v));
    return v;
}

Tensor tensor_of(const Call& call, DType type, Shape shape, std::span<const double> values) {
    Tensor t = call.make(type, std::move(shape));
    store(t, 0, values.first(static_cast<std::size_t>(t.count())));
    return t;
}

Tensor tensor_of(const Call& call, DType type, Shape shape, std::span<const std::int64_t> values) {
    Tensor t = call.make(type, std::move(shape));
    store(t, 0, values.first(static_cast<std::size_t>(t.count())));
    return t;
}

std::uint32_t encode_float(double value, int exponent_bits, int mantissa_bits) {
    const std::uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
    const std::uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    if (std::isnan(value)) return infinity | 1u << (mantissa_bits - 1);
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | infinity;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    if (exponent > bias) return sign | infinity;
    const auto units = static_cast<std::uint32_t>(std::nearbyint(std::scalbn(magnitude, mantissa_bits - exponent)));
    // A subnormal has exponent field 0 and no hidden bit; a carry out of the mantissa steps the exponent by itself.
    const std::uint32_t bits = (static_cast<std::uint32_t>(exponent + bias - 1) << mantissa_bits) + units;
    return sign | std::min(bits, infinity);
}

std::vector<std::int64_t> strides_of(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

Tensor gather_strided(const Call& call, const Tensor& from, const Shape& shape, std::span<const std::int64_t> strides, std::int64_t offset) {
    Tensor out = call.make(from.dtype, shape);
    const std::size_t rank = shape.size();
    const std::int64_t run = rank ? shape[rank - 1] : 1, step = rank ? strides[rank - 1] : 1;
    with_bits(from.dtype, [&](auto bits) {
        using T = decltype(bits);
        const T* source = from.as<T>().data();
        T* target = out.as<T>().data();
        rows(shape, strides, offset, [&](std::int64_t to, std::int64_t at) {
            if (step == 1)
                std::memcpy(target + to, source + at, static_cast<std::size_t>(run) * sizeof(T));
            else
                for (std::int64_t i = 0; i < run; ++i) target[to + i] = source[at + i * step];
        });
    });
    return out;
}

void scatter_strided(const Tensor& from, Tensor& to, std::span<const std::int64_t> strides, std::int64_t offset) {
    const std::size_t rank = from.shape.size();
    const std::int64_t run = rank ? from.shape[rank - 1] : 1, step = rank ? strides[rank - 1] : 1;
    with_bits(from.dtype, [&](auto bits) {
        using T = decltype(bits);
        const T* source = from.as<T>().data();
        T* target = to.as<T>().data();
        rows(from.shape, strides, offset, [&](std::int64_t i, std::int64_t at) {
            for (std::int64_t k = 0; k < run; ++k) target[at + k * step] = source[i + k];
        });
    });
}

Tensor permuted(const Call& call, const Tensor& t, std::span<const std::size_t> perm) {
    const auto strides = strides_of(t.shape);
    Shape shape;
    std::vector<std::int64_t> moved;
    for (const std::size_t p : perm) {
        shape.push_back(t.shape[p]);
        moved.push_back(strides[p]);
    }
    return gather_strided(call, t, shape, moved, 0);
}

Tensor reshaped(Tensor t, Shape shape) {
    t.shape = std::move(shape);
    return t;
}

void copy_elements(const Tensor& from, std::int64_t i, Tensor& to, std::int64_t j, std::int64_t count) {
    const std::size_t size = size_of(from.dtype);
    if (count > 0)
        std::memcpy(to.bytes.data() + static_cast<std::size_t>(j) * size, from.bytes.data() + static_cast<std::size_t>(i) * size,
                    static_cast<std::size_t>(count) * size);
}

Shape broadcast(const Call& call, const Shape& a, const Shape& b) {
    Shape out(std::max(a.size(), b.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {  // from the last dimension
        const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) call.fail(fmt::format("{} and {} do not broadcast; repair the model", to_string(a), to_string(b)));
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

Tensor spread(const Call& call, const Tensor& t, const Shape& shape) {
    if (broadcast(call, t.shape, shape) != shape)
        call.fail(fmt::format("{} does not broadcast to {}; repair the model", to_string(t.shape), to_string(shape)));
    std::vector<std::int64_t> strides(shape.size(), 0);
    const auto own = strides_of(t.shape);
    for (std::size_t i = 0; i < t.shape.size(); ++i) strides[shape.size() - t.shape.size() + i] = t.shape[i] == 1 ? 0 : own[i];
    return gather_strided(call, t, shape, strides, 0);
}

std::int64_t extent(const Shape& shape, std::size_t from, std::size_t to) {
    std::int64_t n = 1;
    for (std::size_t i = from; i < to; ++i) n *= shape[i];
    return n;
}

}  // namespace assay::workloads::hostops
