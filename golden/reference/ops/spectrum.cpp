// DFT-17, DFT-20 and STFT-17. Transforms go by the least prime factor of their length; twiddle factors come from one table of the whole length.
#include <cmath>
#include <complex>
#include <numbers>

#include <fmt/format.h>

#include "golden/reference/functions.hpp"
#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {
namespace {

using Complex = std::complex<double>;
constexpr std::int64_t kLongest = std::int64_t{1} << 24;

class Transform {
public:
    Transform(const Node& node, std::int64_t length, bool inverse) : length_(length) {
        if (length < 1 || length > kLongest) node.fail(fmt::format("a transform of {}; 1 to {} is expected", length, kLongest));
        for (std::int64_t k = 0; k < length; ++k) {
            const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
            roots_.emplace_back(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
        }
    }
    std::vector<Complex> operator()(const std::vector<Complex>& x) const { return part(x, 0, 1, length_); }

    /// What fp32 sums of products with rounded factors may lose: each output is a sum over all 2 n parts, in any order, each factor off by one
    /// rounding. `magnitude` is the sum of |parts|. Faster transforms lose less.
    double error(double magnitude) const {
        const double terms = 2 * static_cast<double>(length_);
        return (accumulation_factor(terms) + 2) * kU32 * magnitude + terms * kFlush;
    }

private:
    /// The transform of the n elements from `first` on, `step` apart (n * step is the whole length).
    std::vector<Complex> part(const std::vector<Complex>& x, std::int64_t first, std::int64_t step, std::int64_t n) const {
        if (n == 1) return {x[static_cast<std::size_t>(first)]};
        std::int64_t p = 2;
        while (n % p != 0) p = p * p > n ? n : p + 1;
        const std::int64_t m = n / p;
        std::vector<std::vector<Complex>> parts;
        for (std::int64_t r = 0; r < p; ++r) parts.push_back(part(x, first + r * step, step * p, m));
        std::vector<Complex> y(static_cast<std::size_t>(n));
        for (std::int64_t k = 0; k < n; ++k)
            for (std::int64_t r = 0; r < p; ++r)
                y[static_cast<std::size_t>(k)] += parts[static_cast<std::size_t>(r)][static_cast<std::size_t>(k % m)] * roots_[static_cast<std::size_t>(r * k % n * step)];
        return y;
    }

    std::int64_t length_;
    std::vector<Complex> roots_;
};

/// One line to be transformed, and what its elements may be off by.
struct Line {
    std::vector<Complex> x;
    double magnitude = 0, error = 0;  ///< sums of |parts| and of their errors

    void set(std::int64_t k, Complex v, double e) {
        x[static_cast<std::size_t>(k)] = v;
        magnitude += std::fabs(v.real()) + std::fabs(v.imag());
        error += e;
    }
};

}  // namespace

Outputs dft(const Node& node) {
    const Value& x = node.real(0);
    if (x.rank() < 2 || (x.shape.back() != 1 && x.shape.back() != 2)) node.fail(fmt::format("input is {}; a last dimension of 1 or 2 is expected", to_string(x.shape)));
    const std::int64_t given_axis = node.version() < 20 ? node.integer("axis", 1) : node.has(2) ? static_cast<std::int64_t>(node.scalar(2)) : -2;
    const auto axis = static_cast<std::size_t>(node.axis(given_axis, x.rank()));
    if (axis + 1 == x.shape.size()) node.fail("the axis is the last dimension, which holds the parts of a number");
    const bool inverse = node.integer("inverse", 0) != 0, onesided = node.integer("onesided", 0) != 0, to_real = inverse && onesided;
    const std::int64_t parts = x.shape.back(), given = x.shape[axis];
    if (onesided && parts != (inverse ? 2 : 1)) node.fail(fmt::format("onesided=1 with inverse={} of a last dimension of {}", inverse ? 1 : 0, parts));
    const std::int64_t length = node.has(1) ? static_cast<std::int64_t>(node.scalar(1)) : to_real ? 2 * (given - 1) : given;
    const Transform transform(node, length, inverse);
    Shape shape = x.shape;
    shape[axis] = onesided && !inverse ? length / 2 + 1 : length;
    shape.back() = to_real ? 1 : 2;
    Value y(x.dtype, shape);
    if (node.bounds()) y.err.resize(y.f.size());
    const std::int64_t outer = extent(x.shape, 0, axis), inner = extent(x.shape, axis + 1, x.shape.size() - 1), bins = shape[axis], out_parts = shape.back();
    for (std::int64_t line = 0; line < outer * inner; ++line) {
        const std::int64_t o = line / inner, i = line % inner;
        Line in{std::vector<Complex>(static_cast<std::size_t>(length))};
        const auto read = [&](std::int64_t k, bool mirrored) {
            const std::int64_t at = ((o * given + k) * inner + i) * parts;
            const Complex v(x.at(at), parts == 2 ? x.at(at + 1) : 0.0);
            in.set(mirrored ? length - k : k, mirrored ? std::conj(v) : v, x.error(at) + (parts == 2 ? x.error(at + 1) : 0.0));
        };
        for (std::int64_t k = 0; k < std::min(given, to_real ? length / 2 + 1 : length); ++k) {
            read(k, false);
            if (to_real && k > 0 && 2 * k < length) read(k, true);  // the other half of a real signal's spectrum
        }
        const std::vector<Complex> spectrum = transform(in.x);
        const double divisor = inverse ? static_cast<double>(length) : 1.0;
        for (std::int64_t k = 0; k < bins; ++k)
            for (std::int64_t part = 0; part < out_parts; ++part) {
                const Complex s = spectrum[static_cast<std::size_t>(k)];
                const auto to = static_cast<std::size_t>(((o * bins + k) * inner + i) * out_parts + part);
                y.f[to] = node.numerics().round((part == 0 ? s.real() : s.imag()) / divisor);
                if (node.bounds()) y.err[to] = (in.error + transform.error(in.magnitude)) / divisor + 2 * rounding(y.f[to]);
            }
    }
    return {std::move(y)};
}

Outputs stft(const Node& node) {
    const Value& x = node.real(0);
    const std::int64_t parts = x.rank() == 3 ? x.shape[2] : x.rank() == 2 ? 1 : 0;
    if (parts != 1 && parts != 2) node.fail(fmt::format("signal is {}; batch x length x 1 or 2 is expected", to_string(x.shape)));
    const std::int64_t length = x.shape[1], step = static_cast<std::int64_t>(node.scalar(1));
    const std::int64_t frame = node.has(3) ? static_cast<std::int64_t>(node.scalar(3)) : node.has(2) ? node.real(2).count() : length;
    if (step < 1 || frame < 1 || frame > length) node.fail(fmt::format("frames of {} every {} do not fit a signal of {}", frame, step, length));
    if (node.has(2) && node.real(2).shape != Shape{frame}) node.fail(fmt::format("window is {}; {} elements are expected", to_string(node.real(2).shape), frame));
    const bool onesided = node.integer("onesided", 1) != 0;
    if (onesided && parts == 2) node.fail("onesided=1 of a complex signal: its spectrum has no symmetry");
    const Transform transform(node, frame, false);
    const Functions f(node.numerics());
    const std::int64_t frames = (length - frame) / step + 1, bins = onesided ? frame / 2 + 1 : frame;
    Value y(x.dtype, {x.shape[0], frames, bins, 2});
    if (node.bounds()) y.err.resize(y.f.size());
    std::size_t to = 0;
    for (std::int64_t n = 0; n < x.shape[0] * frames; ++n) {
        Line in{std::vector<Complex>(static_cast<std::size_t>(frame))};
        for (std::int64_t k = 0; k < frame; ++k) {
            const std::int64_t at = (n / frames * length + n % frames * step + k) * parts;
            Bounded re{x.at(at), x.error(at)}, im{parts == 2 ? x.at(at + 1) : 0.0, parts == 2 ? x.error(at + 1) : 0.0};
            if (node.has(2)) {
                const Bounded w{node.in(2).at(k), node.in(2).error(k)};
                re = f.mul(re, w);
                im = f.mul(im, w);
            }
            in.set(k, {re.v, im.v}, re.e + im.e);
        }
        const std::vector<Complex> spectrum = transform(in.x);
        for (std::int64_t k = 0; k < bins; ++k)
            for (const double part : {spectrum[static_cast<std::size_t>(k)].real(), spectrum[static_cast<std::size_t>(k)].imag()}) {
                y.f[to] = node.numerics().round(part);
                if (node.bounds()) y.err[to] = in.error + transform.error(in.magnitude) + rounding(y.f[to]);
                ++to;
            }
    }
    return {std::move(y)};
}

}  // namespace assay::golden::ops
