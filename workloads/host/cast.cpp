// Conversion of element types: Cast, CastLike, BitCast.
#include <fmt/core.h>

#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

/// Cast-13: floats round to nearest even; float to integer truncates (out of range, which ONNX leaves open: the nearest bound, NaN 0);
/// integer to integer keeps the low bits; to bool: 0 is false, everything else true.
Tensor convert(const Call& c, const Tensor& x, DType to) {
    if (x.dtype == to) return x;
    Tensor out = c.make(to, x.shape);
    const std::int64_t n = x.count();
    double reals[kBlock];
    std::int64_t integers[kBlock];
    for (std::int64_t i = 0; i < n; i += kBlock) {
        const auto count = static_cast<std::size_t>(std::min(kBlock, n - i));
        if (is_float(x.dtype) || (x.dtype == DType::u64 && is_float(to))) {
            load(x, i, std::span<double>(reals, count));
            store(out, i, std::span<const double>(reals, count));
        } else {
            load(x, i, std::span<std::int64_t>(integers, count));
            store(out, i, std::span<const std::int64_t>(integers, count));
        }
    }
    return out;
}

Results cast(const Call& c) {
    const auto* to = c.attribute("to");
    if (!to) c.fail("attribute 'to' is missing; repair the model");
    return one(convert(c, c.in(0), dtype_from_onnx(static_cast<int>(to->i()), "attribute 'to'")));
}

Results cast_like(const Call& c) { return one(convert(c, c.in(0), c.in(1).dtype)); }

Results bit_cast(const Call& c) {
    const DType to = dtype_from_onnx(static_cast<int>(c.integer("to", 1)), "attribute 'to'");
    if (size_of(to) != size_of(c.in(0).dtype)) c.fail(fmt::format("{} and {} differ in size; repair the model", name_of(c.in(0).dtype), name_of(to)));
    Tensor out = c.in(0);
    out.dtype = to;
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> cast_operators() {
    static constexpr Operator table[] = {{"BitCast", bit_cast, 26}, {"Cast", cast}, {"CastLike", cast_like, 15}};
    return table;
}

}  // namespace assay::workloads::hostops
