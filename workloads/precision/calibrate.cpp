#include "workloads/precision/calibrate.hpp"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "support/error.hpp"
#include "workloads/host/evaluate.hpp"

namespace assay::workloads {
namespace {

bool is_matrix(const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    return standard && (op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm");
}

/// Values that matrix nodes read or make and that depend on the inputs: initialisers are no activations.
std::set<std::string> matrix_values(const onnx::GraphProto& graph) {
    std::set<std::string> constants, wanted;
    for (const auto& initializer : graph.initializer()) constants.insert(initializer.name());
    for (const auto& node : graph.node()) {
        if (!is_matrix(node)) continue;
        for (int i = 0; i < std::min(node.input_size(), 2); ++i)
            if (!node.input(i).empty() && !constants.contains(node.input(i))) wanted.insert(node.input(i));
        if (node.output_size() > 0 && !node.output(0).empty()) wanted.insert(node.output(0));
    }
    return wanted;
}

/// The range that keeps `percentile` of the values; they are reordered.
Range range_of(std::vector<float>& values, double percentile) {
    const auto cut = static_cast<std::size_t>(std::floor(static_cast<double>(values.size()) * (100 - percentile) / 200));
    const auto low = values.begin() + static_cast<std::ptrdiff_t>(cut);
    const auto high = values.end() - 1 - static_cast<std::ptrdiff_t>(cut);
    std::nth_element(values.begin(), low, values.end());
    const double least = static_cast<double>(*low);
    std::nth_element(values.begin(), high, values.end());
    return {least, static_cast<double>(*high)};
}

}  // namespace

std::map<std::string, Range> calibrate(const onnx::ModelProto& model, const std::vector<std::map<std::string, Tensor>>& samples,
                                       const CalibrationOptions& options) {
    if (samples.empty())
        throw Error(ErrorKind::usage, 
                    fmt::format("precision '{}' takes the ranges of activations from inputs, and none are given; use --input or --calibration DIR",
                                options.policy));
    if (!(options.percentile > 50) || options.percentile > 100)
        throw Error(ErrorKind::usage, fmt::format("percentile {}: must be above 50 and at most 100", options.percentile));
    onnx::ModelProto probed = model;
    probed.mutable_graph()->clear_output();
    const std::set<std::string> wanted = matrix_values(model.graph());
    for (const std::string& name : wanted) probed.mutable_graph()->add_output()->set_name(name);
    std::map<std::string, Range> ranges;
    for (const auto& sample : samples)
        for (auto& [name, tensor] : hostops::evaluate_model(probed, sample)) {
            if (tensor.dtype != DType::f32) continue;
            std::vector<float> values;
            for (const float v : std::as_const(tensor).as<float>())
                if (std::isfinite(v)) values.push_back(v);
            if (values.empty()) continue;
            const Range range = range_of(values, options.percentile);
            const auto [at, first] = ranges.try_emplace(name, range);
            if (!first) at->second = {std::min(at->second.low, range.low), std::max(at->second.high, range.high)};
        }
    return ranges;
}

}  // namespace assay::workloads
