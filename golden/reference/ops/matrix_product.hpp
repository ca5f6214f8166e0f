#pragma once
// The batched product that MatMul, MatMulInteger and QLinearMatMul share within the reference.
#include "golden/reference/matrix.hpp"
#include "golden/reference/node.hpp"

namespace assay::golden::ops {

/// numpy.matmul of the elements as real numbers whatever their type; the result is float.
Value matrix_product(const Node& node, const Value& a, const Value& b, const Numerics& numerics);

}  // namespace assay::golden::ops
