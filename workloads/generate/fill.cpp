#include "workloads/generate/fill.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "support/error.hpp"

namespace assay::workloads::generate {
namespace {

constexpr std::int64_t kBlock = 1 << 20;  ///< elements a block; a whole number of rows is rounded up from it

/// Finaliser of splitmix64: a bijection whose every output bit depends on every input bit.
std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

std::uint64_t key_of(std::uint64_t seed, const TensorRecipe& recipe) {
    const std::string& name = recipe.stream.empty() ? recipe.name : recipe.stream;
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return mix(hash + mix(seed + 0x9e3779b97f4a7c15u));
}

std::uint64_t bits_at(std::uint64_t key, std::int64_t i) { return mix(key + static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u); }

/// Sum of four 16-bit uniforms, scaled to variance 1: exact integers and one product, so no host differs.
float normal_at(std::uint64_t key, std::int64_t i) {
    const std::uint64_t b = bits_at(key, i);
    const auto sum = static_cast<std::int32_t>((b & 0xffff) + ((b >> 16) & 0xffff) + ((b >> 32) & 0xffff) + (b >> 48));
    constexpr float kScale = 2.6429e-5f;  // 1 / sqrt(4 · (65536² - 1) / 12)
    return static_cast<float>(sum - 131070) * kScale;
}

float unit_at(std::uint64_t key, std::int64_t i) { return static_cast<float>(bits_at(key, i) >> 40) * 0x1p-24f; }

/// A coarse 9x9 field of normals, interpolated over the plane, and grain. 0.8² · 4/9 + 0.84² is about 1.
void make_image(const Shape& shape, std::uint64_t key, std::int64_t first, std::span<float> out) {
    ASSAY_CHECK(shape.size() == 4, "an image has four dimensions");
    const std::int64_t height = shape[2], width = shape[3], plane = height * width;
    for (std::size_t j = 0; j < out.size(); ++j) {
        const std::int64_t i = first + static_cast<std::int64_t>(j), p = i / plane, y = i % plane / width, x = i % width;
        const float fy = static_cast<float>(y) * 8.0f / static_cast<float>(height), fx = static_cast<float>(x) * 8.0f / static_cast<float>(width);
        const auto cy = static_cast<std::int64_t>(fy), cx = static_cast<std::int64_t>(fx);
        const float ay = fy - static_cast<float>(cy), ax = fx - static_cast<float>(cx);
        const auto corner = [&](std::int64_t dy, std::int64_t dx) { return normal_at(~key, p * 81 + (cy + dy) * 9 + cx + dx); };
        const float top = corner(0, 0) * (1 - ax) + corner(0, 1) * ax, bottom = corner(1, 0) * (1 - ax) + corner(1, 1) * ax;
        out[j] = 0.8f * (top * (1 - ay) + bottom * ay) + 0.84f * normal_at(key, i);
    }
}

/// Elements first … of a float recipe. For Kind::centred, `first` and the size are whole rows.
void make_floats(const TensorRecipe& recipe, std::uint64_t key, std::int64_t first, std::span<float> out) {
    const Fill& fill = recipe.fill;
    const auto centre = static_cast<float>(fill.centre), spread = static_cast<float>(fill.spread);
    switch (fill.kind) {
        case Fill::Kind::constant:
            std::fill(out.begin(), out.end(), centre);
            return;
        case Fill::Kind::normal:
            for (std::size_t j = 0; j < out.size(); ++j) out[j] = centre + spread * normal_at(key, first + static_cast<std::int64_t>(j));
            return;
        case Fill::Kind::uniform:
            for (std::size_t j = 0; j < out.size(); ++j) out[j] = centre + spread * (2 * unit_at(key, first + static_cast<std::int64_t>(j)) - 1);
            return;
        case Fill::Kind::centred:
            for (std::size_t at = 0; at < out.size(); at += static_cast<std::size_t>(fill.row)) {
                const std::span<float> row = out.subspan(at, static_cast<std::size_t>(fill.row));
                double sum = 0;
                for (std::size_t j = 0; j < row.size(); ++j) sum += row[j] = normal_at(key, first + static_cast<std::int64_t>(at + j));
                const auto mean = static_cast<float>(sum / static_cast<double>(row.size()));
                for (float& v : row) v = (v - mean) * spread;
            }
            return;
        case Fill::Kind::image:
            make_image(recipe.shape, key, first, out);
            return;
        case Fill::Kind::values:
        case Fill::Kind::integers:
            break;
    }
    ASSAY_CHECK(false, "only a float recipe makes floats");
}

std::int64_t block_of(const TensorRecipe& recipe) {
    if (recipe.fill.kind != Fill::Kind::centred) return kBlock;
    return (kBlock + recipe.fill.row - 1) / recipe.fill.row * recipe.fill.row;
}

template <class Use>
void each_block(const TensorRecipe& recipe, std::uint64_t seed, Use use) {
    const std::uint64_t key = key_of(seed, recipe);
    const std::int64_t count = element_count(recipe.shape), block = block_of(recipe);
    std::vector<float> floats(static_cast<std::size_t>(std::min(count, block)));
    for (std::int64_t first = 0; first < count; first += block) {
        const std::span<float> part = std::span(floats).first(static_cast<std::size_t>(std::min(block, count - first)));
        make_floats(recipe, key, first, part);
        use(first, std::span<const float>(part));
    }
}

/// Channel of element i along an axis: (i / inner) % size.
struct Channels {
    std::int64_t inner = 1, size = 1;
    Channels(const Shape& shape, int axis) {
        if (axis < 0) return;
        size = shape[static_cast<std::size_t>(axis)];
        for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
    }
    std::size_t of(std::int64_t i) const { return static_cast<std::size_t>(i / inner % size); }
};

std::int8_t quantise(float value, float scale) {
    return static_cast<std::int8_t>(std::clamp(std::nearbyint(value / scale), -127.0f, 127.0f));
}

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> v) {
    const auto raw = std::as_bytes(v);
    return {raw.begin(), raw.end()};
}

}  // namespace

Fill Fill::constant(double value) { return {.kind = Kind::constant, .centre = value}; }
Fill Fill::normal(double mean, double deviation) { return {.kind = Kind::normal, .centre = mean, .spread = deviation}; }
Fill Fill::centred(double deviation, std::int64_t row) { return {.kind = Kind::centred, .spread = deviation, .row = row}; }
Fill Fill::uniform(double low, double high) { return {.kind = Kind::uniform, .centre = (low + high) / 2, .spread = (high - low) / 2}; }
Fill Fill::integers(std::int64_t low, std::int64_t high) { return {.kind = Kind::integers, .low = low, .high = high}; }
Fill Fill::image() { return {.kind = Kind::image}; }
Fill Fill::raw(std::vector<std::byte> bytes) { return {.kind = Kind::values, .bytes = std::move(bytes)}; }
Fill Fill::values(std::span<const std::int64_t> v) { return raw(bytes_of(v)); }
Fill Fill::values(std::span<const float> v, DType type) {
    if (type == DType::f32) return raw(bytes_of(v));
    std::vector<std::uint16_t> narrow(v.size());
    std::transform(v.begin(), v.end(), narrow.begin(), type == DType::f16 ? half_bits : bfloat16_bits);
    return raw(bytes_of(std::span<const std::uint16_t>(narrow)));
}

void produce(const TensorRecipe& recipe, std::uint64_t seed, const std::function<void(std::span<const std::byte>)>& sink) {
    const Fill& fill = recipe.fill;
    if (fill.kind == Fill::Kind::values) {
        ASSAY_CHECK(fill.bytes.size() == recipe.bytes(), "given values fill their tensor");
        return sink(fill.bytes);
    }
    if (fill.kind == Fill::Kind::integers) {
        ASSAY_CHECK(recipe.type == DType::i64 && fill.low <= fill.high, "integers are int64 and their range is not empty");
        const std::uint64_t key = key_of(seed, recipe), span = static_cast<std::uint64_t>(fill.high - fill.low) + 1;
        std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(recipe.shape)));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = fill.low + static_cast<std::int64_t>(span == 0 ? 0 : bits_at(key, static_cast<std::int64_t>(i)) % span);
        return sink(std::as_bytes(std::span(values)));
    }
    if (recipe.quantised) {
        const WeightScales& q = *recipe.quantised;
        const Channels channels(recipe.shape, q.scales.size() == 1 ? -1 : q.axis);
        std::vector<std::int8_t> out;
        each_block(recipe, seed, [&](std::int64_t first, std::span<const float> part) {
            out.resize(part.size());
            for (std::size_t j = 0; j < part.size(); ++j) out[j] = quantise(part[j], q.scales[channels.of(first + static_cast<std::int64_t>(j))]);
            sink(std::as_bytes(std::span(out)));
        });
        return;
    }
    std::vector<std::uint16_t> narrow;
    each_block(recipe, seed, [&](std::int64_t, std::span<const float> part) {
        if (recipe.type == DType::f32) return sink(std::as_bytes(part));
        narrow.resize(part.size());
        std::transform(part.begin(), part.end(), narrow.begin(), recipe.type == DType::f16 ? half_bits : bfloat16_bits);
        sink(std::as_bytes(std::span(narrow)));
    });
}

Tensor produce(const TensorRecipe& recipe, std::uint64_t seed) {
    Tensor tensor;
    tensor.dtype = recipe.type;
    tensor.shape = recipe.shape;
    tensor.bytes.reserve(recipe.bytes());
    produce(recipe, seed, [&](std::span<const std::byte> part) { tensor.bytes.insert(tensor.bytes.end(), part.begin(), part.end()); });
    return tensor;
}

std::vector<float> channel_magnitudes(const TensorRecipe& recipe, std::uint64_t seed, int axis) {
    const Channels channels(recipe.shape, axis);
    std::vector<float> largest(static_cast<std::size_t>(channels.size), 0.0f);
    const auto take = [&](std::int64_t first, std::span<const float> part) {
        for (std::size_t j = 0; j < part.size(); ++j) {
            float& m = largest[channels.of(first + static_cast<std::int64_t>(j))];
            m = std::max(m, std::abs(part[j]));
        }
    };
    if (recipe.fill.kind == Fill::Kind::values) {
        ASSAY_CHECK(recipe.type == DType::f32, "given weights are float32");
        take(0, {reinterpret_cast<const float*>(recipe.fill.bytes.data()), recipe.fill.bytes.size() / sizeof(float)});
    } else {
        each_block(recipe, seed, take);
    }
    return largest;
}

std::uint16_t half_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x47800000) return sign | 0x7c00;  // 65536 and more; the rounding below covers 65520 … 65536
    if (magnitude < 0x38800000) {                        // below 2^-14: units of 2^-24, exact in float, rounded by one conversion
        const float units = std::bit_cast<float>(magnitude) * 0x1p24f;
        return sign | static_cast<std::uint16_t>(std::nearbyint(units));
    }
    return sign | static_cast<std::uint16_t>((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

std::uint16_t bfloat16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace assay::workloads::generate
