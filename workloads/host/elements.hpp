#pragma once
// Elements of tensors as double or 64-bit integers, in blocks and whole; strided copies; broadcasting. No operator semantics.
#include <cstring>
#include <span>
#include <vector>

#include "workloads/host/call.hpp"

namespace assay::workloads::hostops {

/// Elements [first, first + out.size()) as doubles (64-bit integers past 2^53 round) or as integers (uint64 by its bits; floats are
/// truncated, NaN gives 0, out of range the nearest bound).
void load(const Tensor& t, std::int64_t first, std::span<double> out);
void load(const Tensor& t, std::int64_t first, std::span<std::int64_t> out);
/// Stores with one rounding (nearest even); to integers: truncation, NaN gives 0, out of range the nearest bound; to bool: != 0.
void store(Tensor& t, std::int64_t first, std::span<const double> values);
/// Stores modulo 2^bits; to bool: != 0; to floats: rounded.
void store(Tensor& t, std::int64_t first, std::span<const std::int64_t> values);

std::vector<double> reals_of(const Tensor& t);
std::vector<std::int64_t> integers_of(const Tensor& t);
Tensor tensor_of(const Call& call, DType type, Shape shape, std::span<const double> values);
Tensor tensor_of(const Call& call, DType type, Shape shape, std::span<const std::int64_t> values);

/// A double in the fewest bits of an IEEE-like format with infinities, rounded to nearest even: 5, 10 is binary16; 8, 7 is bfloat16.
std::uint32_t encode_float(double value, int exponent_bits, int mantissa_bits);

std::vector<std::int64_t> strides_of(const Shape& shape);  ///< row-major, in elements
/// out[index] = from[offset + sum(index * stride)] for every index of `shape`. The caller has checked the bounds.
Tensor gather_strided(const Call& call, const Tensor& from, const Shape& shape, std::span<const std::int64_t> strides, std::int64_t offset);
/// to[offset + sum(index * stride)] = from[index].
void scatter_strided(const Tensor& from, Tensor& to, std::span<const std::int64_t> strides, std::int64_t offset);
Tensor permuted(const Call& call, const Tensor& t, std::span<const std::size_t> perm);
Tensor reshaped(Tensor t, Shape shape);
void copy_elements(const Tensor& from, std::int64_t i, Tensor& to, std::int64_t j, std::int64_t count);

/// ONNX multidirectional broadcasting; throws when the shapes do not fit.
Shape broadcast(const Call& call, const Shape& a, const Shape& b);
Tensor spread(const Call& call, const Tensor& t, const Shape& shape);

/// A tensor at a broadcast shape: the tensor itself when it has that shape, else a copy.
class Spread {
public:
    Spread(const Call& call, const Tensor& t, const Shape& shape) : plain_(&t) {
        if (t.shape != shape) {
            copy_ = spread(call, t, shape);
            plain_ = &copy_;
        }
    }
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;
    const Tensor& get() const { return *plain_; }

private:
    const Tensor* plain_;
    Tensor copy_;
};

/// Product of dims [from, to).
std::int64_t extent(const Shape& shape, std::size_t from, std::size_t to);

/// Runs f(T{}) with T the C++ type that holds an element's bits (uint16_t for halves): for code that only moves elements.
template <class F>
void with_bits(DType type, F&& f) {
    switch (size_of(type)) {
        case 1: f(std::uint8_t{}); break;
        case 2: f(std::uint16_t{}); break;
        case 4: f(std::uint32_t{}); break;
        default: f(std::uint64_t{}); break;
    }
}

inline constexpr std::int64_t kBlock = 2048;  ///< elements converted at a time: both planes stay in the first cache

/// out[i] = f(double of x[i]), in the type of `out`.
template <class F>
void map_reals(const Tensor& x, Tensor& out, F&& f) {
    double block[kBlock];
    const std::int64_t n = x.count();
    for (std::int64_t i = 0; i < n; i += kBlock) {
        const std::span<double> part(block, static_cast<std::size_t>(std::min(kBlock, n - i)));
        load(x, i, part);
        for (double& v : part) v = f(v);
        store(out, i, part);
    }
}

template <class F>
void map_integers(const Tensor& x, Tensor& out, F&& f) {
    std::int64_t block[kBlock];
    const std::int64_t n = x.count();
    for (std::int64_t i = 0; i < n; i += kBlock) {
        const std::span<std::int64_t> part(block, static_cast<std::size_t>(std::min(kBlock, n - i)));
        load(x, i, part);
        for (std::int64_t& v : part) v = f(v);
        store(out, i, part);
    }
}

/// out[i] = f(x[i], y[i]) over tensors of one shape; In and Out are double or std::int64_t.
template <class In, class Out, class F>
void zip(const Tensor& x, const Tensor& y, Tensor& out, F&& f) {
    In a[kBlock], b[kBlock];
    Out c[kBlock];
    const std::int64_t n = x.count();
    for (std::int64_t i = 0; i < n; i += kBlock) {
        const auto count = static_cast<std::size_t>(std::min(kBlock, n - i));
        load(x, i, std::span<In>(a, count));
        load(y, i, std::span<In>(b, count));
        for (std::size_t k = 0; k < count; ++k) c[k] = f(a[k], b[k]);
        store(out, i, std::span<const Out>(c, count));
    }
}

}  // namespace assay::workloads::hostops
