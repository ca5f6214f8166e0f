#pragma once
// What a generated tensor holds, as a recipe of a few words: values are made in blocks when they are written, so a model of any size is
// built and counted without its weights. Element i depends on the seed, the tensor's name and i alone (a counter-based generator), and
// on no function of the host's mathematical library: the bytes are the same on every machine.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace assay::workloads::generate {

struct Fill {
    enum class Kind {
        values,    ///< as given
        constant,  ///< `centre` everywhere
        normal,    ///< bell-shaped with mean `centre` and standard deviation `spread`; never further than 3.47 deviations out
        centred,   ///< normal, each run of `row` elements shifted to mean 0: the weights of an output that ignores its inputs' common mean
        uniform,   ///< in [centre - spread, centre + spread)
        integers,  ///< uniform in low … high, both included
        image,     ///< NCHW: smooth fields with grain, mean 0 and variance near 1 a channel, as photographs after normalisation
    };
    Kind kind = Kind::constant;
    double centre = 0, spread = 0;
    std::int64_t row = 0, low = 0, high = 0;
    std::vector<std::byte> bytes{};  ///< Kind::values: row-major, of the tensor's type

    static Fill constant(double value);
    static Fill normal(double mean, double deviation);
    static Fill centred(double deviation, std::int64_t row);
    static Fill uniform(double low, double high);
    static Fill integers(std::int64_t low, std::int64_t high);
    static Fill image();
    static Fill values(std::span<const std::int64_t> v);
    static Fill values(std::span<const float> v, DType type = DType::f32);  ///< rounded to `type`, a float type
    static Fill raw(std::vector<std::byte> bytes);
};

/// Symmetric int8 storage of a float recipe: element = clamp(round-half-even(value / scale of its channel), -127, 127).
struct WeightScales {
    int axis = 0;
    std::vector<float> scales;  ///< one a channel of `axis`, or one for all
};

struct TensorRecipe {
    std::string name;
    DType type = DType::f32;  ///< of the bytes; int8 when `quantised` is set
    Shape shape;
    Fill fill;
    std::optional<WeightScales> quantised{};
    std::string stream{};  ///< name that decides the values, when it is not `name` (a tensor renamed since)

    std::uint64_t bytes() const { return static_cast<std::uint64_t>(element_count(shape)) * size_of(type); }
};

/// The tensor's bytes in order, in blocks of a few MiB. `sink` must copy what it keeps.
void produce(const TensorRecipe& recipe, std::uint64_t seed, const std::function<void(std::span<const std::byte>)>& sink);
Tensor produce(const TensorRecipe& recipe, std::uint64_t seed);

/// max |value| of each channel of `axis` (all elements as one channel when axis < 0) of a float recipe, before any quantisation.
std::vector<float> channel_magnitudes(const TensorRecipe& recipe, std::uint64_t seed, int axis);

/// IEEE 754 binary16 of a finite or infinite float, rounded to nearest even.
std::uint16_t half_bits(float value);
/// bfloat16 of a float that is not NaN, rounded to nearest even.
std::uint16_t bfloat16_bits(float value);

}  // namespace assay::workloads::generate
