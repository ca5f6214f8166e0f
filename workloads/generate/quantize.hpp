#pragma once
// Turns a generated float32 model into a QDQ int8 one, in the structure that ONNX Runtime's quantiser writes: QuantizeLinear and
// DequantizeLinear pairs around what computes in integers, weights int8 with a scale a channel, biases int32, activations uint8 with a
// zero point, ReLUs that the saturation does already removed.
#include <functional>
#include <map>
#include <string>

#include "workloads/generate/graph_builder.hpp"

namespace assay::workloads::generate {

struct Range {
    double low = 0, high = 0;
};
/// Range of each value by name; a value that is missing keeps its analytic range.
using Ranges = std::map<std::string, Range>;

/// What the builder expects: five deviations about the mean, less where the operator bounds its output. No value is computed.
Ranges analytic_ranges(const GeneratedModel& model);

struct QuantizeOptions {
    bool activations_between_layers = false;  ///< Add, pooling, Concat … in integers too, as for CNNs; else matrix products and convolutions alone
};

/// Throws Error(usage) when the model is not float32 or nothing of it can be quantised.
GeneratedModel quantize(const GeneratedModel& model, const Ranges& ranges, const QuantizeOptions& options);

}  // namespace assay::workloads::generate
