#pragma once
// Calibration: which values the matrix operands of a model take, over inputs that the user gives. The fp32 model runs on the host
// evaluator.
#include <map>
#include <string>
#include <vector>

#include "workloads/compile.hpp"

namespace assay::workloads {

/// How the range of a tensor is taken from its values over all samples.
struct CalibrationOptions {
    std::string policy = "this precision";  ///< for messages
    /// Share of the values, in percent, that the range keeps: 100 keeps the least and the largest; 99.9 leaves out the 0.05 % at each
    /// end, so that a few outliers do not cost all others their resolution. Above 50, at most 100.
    double percentile = 100;
};

/// Ranges of every float tensor that a Conv, ConvTranspose, MatMul or Gemm of the main graph reads or makes, by name. Each sample holds
/// the graph's inputs by name. Values that are not finite are left out; a tensor without a finite value has no range.
/// Throws Error(bad_input) as the host evaluator does, and Error(usage) when there is no sample or the percentile is out of range.
std::map<std::string, Range> calibrate(const onnx::ModelProto& model, const std::vector<std::map<std::string, Tensor>>& samples,
                                       const CalibrationOptions& options = {});

}  // namespace assay::workloads
