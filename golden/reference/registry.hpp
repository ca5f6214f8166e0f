#pragma once
// Operators by name and version. Each kernel lives in golden/reference/ops and handles the versions listed with it.
#include <string>
#include <vector>

#include "golden/reference/node.hpp"

namespace assay::golden {

/// Evaluates one node: values of its outputs in order (fewer than the node names is an error of the caller's model).
using Kernel = std::vector<Value> (*)(const Node& node);

struct Operator {
    Kernel kernel = nullptr;
    int version = 0;  ///< the operator's version in force under the model's opset: Clip under opset 13 is Clip-13
};

/// kernel == nullptr: unknown operator, or one that did not exist yet in this opset.
Operator find_operator(const std::string& op_type, int opset);
std::vector<std::string> operator_names();  ///< sorted

}  // namespace assay::golden
