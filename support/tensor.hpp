#pragma once
// A dense host tensor: element type, shape and row-major little-endian bytes. The common currency of import, golden, runtime and
// files. It computes nothing.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Element types; names are those of ONNX TensorProto.DataType in lower case.
enum class DType { f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

std::size_t size_of(DType type);            ///< bytes of one element
std::string_view name_of(DType type);       ///< "float32", "int8", "bool", … (NumPy's names; "bfloat16")
bool is_float(DType type);

using Shape = std::vector<std::int64_t>;
/// Product of the dimensions; 1 for a scalar. Throws Error(bad_input) on a negative dimension or past 2^62.
std::int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  ///< "1x3x224x224"; "scalar" for rank 0

struct Tensor {
    DType dtype = DType::f32;
    Shape shape;
    std::vector<std::byte> bytes;  ///< element_count(shape) * size_of(dtype), row-major

    Tensor() = default;
    Tensor(DType type, Shape dims);  ///< zero-filled

    std::int64_t count() const { return element_count(shape); }
    /// The elements as T, which must have the size of dtype.
    template <class T>
    std::span<T> as() { return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)}; }
    template <class T>
    std::span<const T> as() const { return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)}; }
    bool operator==(const Tensor&) const = default;

    /// Element i as a double (exact for all types but 64-bit integers past 2^53).
    double value(std::int64_t i) const;
    /// Element i as an integer; floats are truncated, out of range they give the nearest bound, NaN gives 0.
    std::int64_t integer(std::int64_t i) const;
};

template <class T>
Tensor make_tensor(DType type, Shape shape, std::span<const T> values) {
    Tensor t(type, std::move(shape));
    std::copy(values.begin(), values.end(), t.as<T>().begin());
    return t;
}

}  // namespace assay
