// DFT, STFT, windows, MelWeightMatrix; and TfIdfVectorizer on integers.
#include <fmt/core.h>

#include <cmath>
#include <complex>
#include <map>
#include <numbers>

#include "support/onnx/onnx_file.hpp"
#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;
using Complex = std::complex<double>;

/// The discrete Fourier transform of any length: halving while the length is even, direct sums for the odd rest.
std::vector<Complex> transform(const std::vector<Complex>& x, double sign) {
    const std::size_t n = x.size();
    if (n <= 1) return x;
    std::vector<Complex> y(n);
    const auto turn = [&](std::size_t k) { return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)); };
    if (n % 2 == 0) {
        std::vector<Complex> even(n / 2), odd(n / 2);
        for (std::size_t i = 0; i < n / 2; ++i) even[i] = x[2 * i], odd[i] = x[2 * i + 1];
        even = transform(even, sign);
        odd = transform(odd, sign);
        for (std::size_t k = 0; k < n / 2; ++k) {
            const Complex t = turn(k) * odd[k];
            y[k] = even[k] + t;
            y[k + n / 2] = even[k] - t;
        }
        return y;
    }
    std::vector<Complex> turns(n);
    for (std::size_t k = 0; k < n; ++k) turns[k] = turn(k);
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < n; ++i) {
            y[k] += x[i] * turns[at];
            at = (at + k) % n;
        }
    }
    return y;
}

double cost_of(I64 n) {
    I64 odd = std::max<I64>(n, 1);
    while (odd % 2 == 0) odd /= 2;
    return static_cast<double>(n) * (static_cast<double>(odd) + 64);
}

/// DFT-17 has its axis as an attribute (default 1), DFT-20 as input 2 (default -2). The last dimension is 1 (real) or 2 (complex).
Results dft(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    if (rank < 2 || (x.shape.back() != 1 && x.shape.back() != 2)) c.bad_shape(0, "a last dimension of 1 or 2 is expected; repair the model");
    const std::size_t axis = c.axis(c.opset < 20 ? c.integer("axis", 1) : c.has(2) ? c.integer(2) : -2, rank);
    if (axis + 1 == rank) c.fail("the axis must not be the last dimension; repair the model");
    const bool inverse = c.integer("inverse", 0) != 0, onesided = c.integer("onesided", 0) != 0, back = inverse && onesided;
    const I64 given = x.shape[axis];
    const I64 length = c.has(1) ? c.integer(1) : back ? 2 * (given - 1) : given;
    if (length < 1 || length > kMaxElements) c.fail(fmt::format("dft_length {} is out of range; repair the model", length));
    const I64 bins = onesided && !inverse ? length / 2 + 1 : length, parts = x.shape.back(), out_parts = back ? 1 : 2;
    Shape shape = x.shape;
    shape[axis] = bins;
    shape.back() = out_parts;
    Tensor out = c.make(x.dtype, shape);
    const I64 outer = extent(x.shape, 0, axis), inner = extent(x.shape, axis + 1, rank - 1);
    c.work(static_cast<double>(outer * inner) * cost_of(length));
    const auto v = reals_of(x);
    std::vector<double> y(static_cast<std::size_t>(out.count()));
    for (I64 o = 0; o < outer; ++o)
        for (I64 i = 0; i < inner; ++i) {
            std::vector<Complex> line(static_cast<std::size_t>(length));
            for (I64 k = 0; k < std::min(given, length); ++k) {
                const double* e = v.data() + ((o * given + k) * inner + i) * parts;
                line[static_cast<std::size_t>(k)] = {e[0], parts == 2 ? e[1] : 0.0};
            }
            if (back)  // the other half of a real signal's spectrum
                for (I64 k = length / 2 + 1; k < length; ++k) line[static_cast<std::size_t>(k)] = std::conj(line[static_cast<std::size_t>(length - k)]);
            const auto spectrum = transform(line, inverse ? 1.0 : -1.0);
            for (I64 k = 0; k < bins; ++k) {
                const Complex e = spectrum[static_cast<std::size_t>(k)] / (inverse ? static_cast<double>(length) : 1.0);
                double* to = y.data() + ((o * bins + k) * inner + i) * out_parts;
                to[0] = e.real();
                if (out_parts == 2) to[1] = e.imag();
            }
        }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// STFT-17: signal [batch, length, 1 or 2], frame_step, window, frame_length -> [batch, frames, bins, 2].
Results stft(const Call& c) {
    const Tensor& x = c.in(0);
    if (x.shape.size() != 2 && x.shape.size() != 3) c.bad_shape(0, "batch x length x parts is expected; repair the model");
    const I64 batch = x.shape[0], length = x.shape[1], parts = x.shape.size() == 3 ? x.shape[2] : 1, step = c.integer(1);
    if (parts != 1 && parts != 2) c.bad_shape(0, "a last dimension of 1 or 2 is expected; repair the model");
    const I64 frame = c.has(3) ? c.integer(3) : c.has(2) ? c.in(2).count() : length;
    if (step < 1 || frame < 1 || frame > length) c.fail(fmt::format("frames of {} every {} do not fit a signal of {}; repair the model", frame, step, length));
    const auto window = c.has(2) ? reals_of(c.in(2)) : std::vector<double>(static_cast<std::size_t>(frame), 1.0);
    if (static_cast<I64>(window.size()) != frame) c.bad_shape(2, fmt::format("a window of {} is expected; repair the model", frame));
    const bool onesided = c.integer("onesided", 1) != 0;
    const I64 frames = 1 + (length - frame) / step, bins = onesided ? frame / 2 + 1 : frame;
    Tensor out = c.make(x.dtype, {batch, frames, bins, 2});
    c.work(static_cast<double>(batch * frames) * cost_of(frame));
    const auto v = reals_of(x);
    std::vector<double> y;
    y.reserve(static_cast<std::size_t>(out.count()));
    std::vector<Complex> line(static_cast<std::size_t>(frame));
    for (I64 n = 0; n < batch; ++n)
        for (I64 f = 0; f < frames; ++f) {
            for (I64 k = 0; k < frame; ++k) {
                const double* e = v.data() + (n * length + f * step + k) * parts;
                line[static_cast<std::size_t>(k)] = Complex{e[0], parts == 2 ? e[1] : 0.0} * window[static_cast<std::size_t>(k)];
            }
            const auto spectrum = transform(line, -1.0);
            for (I64 k = 0; k < bins; ++k) y.insert(y.end(), {spectrum[static_cast<std::size_t>(k)].real(), spectrum[static_cast<std::size_t>(k)].imag()});
        }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// w(n) = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N the size (periodic) or one less.
Results cosine_window(const Call& c, double a0, double a1, double a2) {
    const I64 size = c.integer(0);
    if (size < 0) c.fail(fmt::format("a window of {}; repair the model", size));
    Tensor out = c.make(dtype_from_onnx(static_cast<int>(c.integer("output_datatype", 1)), "attribute 'output_datatype'"), {size});
    const double period = static_cast<double>(std::max<I64>(c.integer("periodic", 1) != 0 ? size : size - 1, 1));
    std::vector<double> y;
    for (I64 i = 0; i < size; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
        y.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
    }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

Results hann(const Call& c) { return cosine_window(c, 0.5, 0.5, 0); }
Results hamming(const Call& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
Results blackman(const Call& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

/// MelWeightMatrix-17: triangles over DFT bins, corners equally spaced on the mel scale 2595 log10(1 + f / 700).
Results mel_weight_matrix(const Call& c) {
    const I64 mels = c.integer(0), length = c.integer(1), rate = c.integer(2);
    const double low = c.real(3), high = c.real(4);
    if (mels < 1 || length < 1 || rate < 1 || mels > kMaxElements || length > kMaxElements) c.fail("num_mel_bins, dft_length and sample_rate must be positive; repair the model");
    const I64 bins = length / 2 + 1;
    Tensor out = c.make(dtype_from_onnx(static_cast<int>(c.integer("output_datatype", 1)), "attribute 'output_datatype'"), {bins, mels});
    const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
    const double first = mel(low), step = (mel(high) - first) / static_cast<double>(mels + 2);
    std::vector<I64> corner;
    for (I64 i = 0; i < mels + 2; ++i) {
        const double f = 700 * (std::pow(10, (static_cast<double>(i) * step + first) / 2595) - 1);
        const double at = std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate));
        if (!(at >= 0 && at <= static_cast<double>(bins))) c.fail("an edge frequency is past half of the sample rate; repair the model");
        corner.push_back(static_cast<I64>(at));
    }
    std::vector<double> y(static_cast<std::size_t>(bins * mels), 0.0);
    for (I64 i = 0; i < mels; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const I64 left = corner[k], centre = corner[k + 1], right = corner[k + 2];
        const auto set = [&](I64 bin, double value) {
            if (bin < bins) y[static_cast<std::size_t>(bin * mels + i)] = value;
        };
        if (left == centre) set(centre, 1.0);
        for (I64 j = left; j <= centre && left != centre; ++j) set(j, static_cast<double>(j - left) / static_cast<double>(centre - left));
        for (I64 j = centre; j < right; ++j) set(j, static_cast<double>(right - j) / static_cast<double>(right - centre));
    }
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// TfIdfVectorizer-9 over integers: counts of the pool's n-grams, with gaps of up to max_skip_count elements.
Results tf_idf(const Call& c) {
    const Tensor& x = c.in(0);
    if (x.shape.empty() || x.shape.size() > 2) c.bad_shape(0, "one or two dimensions are expected; repair the model");
    if (c.attribute("pool_strings")) c.fail("a pool of strings: tensors of text are not supported");
    const auto pool = c.integers("pool_int64s"), starts = c.integers("ngram_counts"), places = c.integers("ngram_indexes");
    const auto weights = c.reals("weights");
    const std::string mode = c.text("mode", "TF");
    c.require(mode == "TF" || mode == "IDF" || mode == "TFIDF", "mode must be TF, IDF or TFIDF; repair the model");
    const I64 shortest = c.integer("min_gram_length", 1), longest = c.integer("max_gram_length", 1), skips = c.integer("max_skip_count", 0);
    if (shortest < 1 || longest < shortest || longest > 1024 || skips < 0) c.fail("the n-gram lengths are out of range; repair the model");
    std::map<std::vector<I64>, std::size_t> index;
    std::size_t entry = 0;
    for (std::size_t n = 1; n <= starts.size(); ++n) {
        const I64 first = starts[n - 1], last = n < starts.size() ? starts[n] : static_cast<I64>(pool.size());
        if (first < 0 || last < first || last > static_cast<I64>(pool.size()) || (last - first) % static_cast<I64>(n) != 0)
            c.fail("ngram_counts does not fit the pool; repair the model");
        for (I64 at = first; at < last; at += static_cast<I64>(n)) index[{pool.begin() + at, pool.begin() + at + static_cast<I64>(n)}] = entry++;
    }
    if (places.size() != entry || (!weights.empty() && weights.size() != entry)) c.fail("ngram_indexes and weights need an entry for each n-gram; repair the model");
    I64 width = 0;
    for (const I64 p : places) {
        if (p < 0 || p > kMaxElements) c.fail("ngram_indexes is out of range; repair the model");
        width = std::max(width, p + 1);
    }
    const I64 rows = x.shape.size() == 2 ? x.shape[0] : 1, length = x.shape.back();
    c.work(static_cast<double>(rows) * static_cast<double>(length) * static_cast<double>(longest) * static_cast<double>(longest) * static_cast<double>(std::min(skips, length) + 1));
    Tensor out = c.make(DType::f32, x.shape.size() == 2 ? Shape{rows, width} : Shape{width});
    std::vector<double> counts(static_cast<std::size_t>(out.count()), 0.0);
    const auto v = integers_of(x);
    std::vector<std::size_t> entry_at(static_cast<std::size_t>(width), 0);
    for (std::size_t e = 0; e < places.size(); ++e) entry_at[static_cast<std::size_t>(places[e])] = e;
    for (I64 r = 0; r < rows; ++r)
        for (I64 n = shortest; n <= longest; ++n)
            for (I64 skip = 0; skip <= (n == 1 ? 0 : std::min(skips, length)); ++skip)
                for (I64 at = 0; at + (n - 1) * (skip + 1) < length; ++at) {
                    std::vector<I64> gram;
                    for (I64 k = 0; k < n; ++k) gram.push_back(v[static_cast<std::size_t>(r * length + at + k * (skip + 1))]);
                    if (const auto it = index.find(gram); it != index.end()) counts[static_cast<std::size_t>(r * width + places[it->second])] += 1;
                }
    if (mode != "TF")
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const double weight = weights.empty() ? 1.0 : static_cast<double>(weights[entry_at[i % static_cast<std::size_t>(width)]]);
            counts[i] = mode == "IDF" ? (counts[i] > 0 ? weight : 0) : counts[i] * weight;
        }
    store(out, 0, std::span<const double>(counts));
    return one(std::move(out));
}

}  // namespace

std::span<const Operator> signal_operators() {
    static constexpr Operator table[] = {
        {"BlackmanWindow", blackman, 17}, {"DFT", dft, 17},   {"HammingWindow", hamming, 17}, {"HannWindow", hann, 17},
        {"MelWeightMatrix", mel_weight_matrix, 17}, {"STFT", stft, 17}, {"TfIdfVectorizer", tf_idf, 9},
    };
    return table;
}

}  // namespace assay::workloads::hostops
