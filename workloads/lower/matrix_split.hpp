#pragma once
// How a planned matrix layer is dealt out to cores: by output tiles (rows of M), by blocks of outputs (columns of N), or both. Never by K, so
// that every output is summed on one core in the order of the plan.
#include "workloads/lower/matrix_plan.hpp"
#include "workloads/schedule/shares.hpp"

namespace assay::workloads {

/// What one core runs: each of its tiles with each of its blocks.
struct MatrixPart {
    Share tiles;   ///< of the plan's output tiles of all repeats, in the order of emission
    Share blocks;  ///< indices into MatrixPlan::blocks
};

std::int64_t tile_count(const MatrixSpec& spec, const MatrixPlan& plan);

/// The parts, the first for core 0. Takes the number of cores, up to CompileOptions::cores, with which the layer is done soonest, and makes the
/// plan's tiles smaller where they are fewer than cores.
std::vector<MatrixPart> split_matrix(const Lowering& lowering, const MatrixSpec& spec, const Drain& drain, MatrixPlan& plan);

}  // namespace assay::workloads
