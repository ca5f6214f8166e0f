#pragma once
// A tensor as the reference computes with it: floats in double, integers exact in 64 bits, each element optionally with a bound on how far
// the chip's honest arithmetic may lie from it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace assay::golden {

struct Value {
    DType dtype = DType::f32;
    Shape shape;
    std::vector<double> f;              ///< row-major elements of a float tensor, else empty
    std::vector<std::int64_t> n;        ///< row-major elements of an integer or bool tensor, else empty
    std::vector<double> err;            ///< |chip - this| <= err, an element; empty: exact. Integers: in LSB
    std::vector<double> unrounded;      ///< quantised tensors: the value before rounding, in LSB with the zero point added; else empty
    std::vector<double> unrounded_err;  ///< bound on the chip's unrounded value; empty: exact

    Value() = default;
    /// Zero-filled. Throws Error(bad_input) past 2^30 elements: no tensor of a model that fits a test machine is larger.
    Value(DType type, Shape dims);

    bool floating() const { return is_float(dtype); }
    std::int64_t count() const { return static_cast<std::int64_t>(floating() ? f.size() : n.size()); }
    std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
    double at(std::int64_t i) const {
        return floating() ? f[static_cast<std::size_t>(i)] : static_cast<double>(n[static_cast<std::size_t>(i)]);
    }
    double error(std::int64_t i) const { return err.empty() ? 0.0 : err[static_cast<std::size_t>(i)]; }
    void set(std::int64_t i, double v);  ///< integers: v must be integral

    /// Element i of the result is element index[i] of this, or `fill` (with no error) where index[i] is negative. All planes move together.
    Value gather(const std::vector<std::int64_t>& index, Shape new_shape, double fill = 0.0) const;
    Value reshaped(Shape new_shape) const;  ///< same elements; counts must agree
};

using Values = std::map<std::string, Value>;

Value to_value(const Tensor& tensor);
/// Rounds to the tensor's type: floats to nearest even (overflow to infinity), integers as they are.
Tensor to_tensor(const Value& value);

/// Integer wrapped to the range of an integer type (two's complement), as fixed-width arithmetic does.
std::int64_t wrap(DType type, std::int64_t value);
/// Least and greatest value of an integer type of at most 32 bits or i64.
std::int64_t lowest(DType type);
std::int64_t highest(DType type);

/// Throws Error(bad_input) when a tensor of this shape could not be held (past 2^30 elements): asked before an index of it is made.
void check_size(const Shape& shape);

/// NumPy broadcasting; throws Error(bad_input) when the shapes do not fit.
Shape broadcast(const Shape& a, const Shape& b);
/// For each element of `to`, the element of `from` that broadcasting repeats there.
std::vector<std::int64_t> broadcast_index(const Shape& from, const Shape& to);
std::vector<std::int64_t> strides_of(const Shape& shape);

}  // namespace assay::golden
