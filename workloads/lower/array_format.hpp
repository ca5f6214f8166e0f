#pragma once
// The precision policy at work on one matrix layer.
#include "workloads/lower/matrix.hpp"

namespace assay::workloads {

/// Decides how the layer's operands go onto the array under the policy: fills in spec.format, makes the layer an integer one under calibrated
/// int8, and lets the drain multiply scales back. A layer that the policy cannot have (no calibrated range, as for the steps of a node that was
/// taken apart; no constant weights) gets the policy's second choice, and its record says so. Integer layers stay as they are.
void choose_format(const Lowering& lowering, MatrixSpec& spec);

/// What golden needs to know of it.
void describe_format(const MatrixSpec& spec, simkernel::Layer& layer);

}  // namespace assay::workloads
