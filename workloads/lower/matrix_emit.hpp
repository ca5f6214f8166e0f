#pragma once
// The descriptors of a planned matrix layer: image and weight tiles, passes over the array, drain and store.
#include "workloads/lower/matrix_drain.hpp"
#include "workloads/lower/matrix_plan.hpp"
#include "workloads/lower/matrix_split.hpp"

namespace assay::workloads {

/// Between begin_layer and end_layer. Places weights and parameters in the constant image.
/// Part i runs on core i.
void emit_matrix_tiles(Lowering& lowering, const MatrixSpec& spec, const MatrixPlan& plan, const Drain& drain, const std::vector<MatrixPart>& parts);

}  // namespace assay::workloads
