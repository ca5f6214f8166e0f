#pragma once
// Which version of an operator's schema an opset means.
#include <string>

namespace assay::workloads {

/// The version of the ai.onnx operator under `opset` (Conv under opset 13 is 11); the opset itself when the operator is unknown then.
int schema_version(const std::string& op, int opset);

}  // namespace assay::workloads
