#pragma once
// An elementwise computation over a strided box of a tensor in HBM, tiled through the scratchpad. Also plain data movement, which is the
// computation that does nothing.
#include "workloads/lower/lowering.hpp"
#include "workloads/schedule/expr.hpp"

namespace assay::workloads {

/// One side of a job: where its element at index 0 lies, and its strides (elements) along the job's extents.
struct JobTensor {
    std::uint64_t addr = 0;
    simkernel::Dtype type = simkernel::Dtype::f32;
    std::vector<std::int64_t> strides;
};

struct VectorJob {
    Shape extents;                  ///< outermost first; the order of the dimensions is the order in which tiles are cut
    std::vector<JobTensor> inputs;  ///< bound to the expression's streams 0, 1, …
    JobTensor output;
    Expr expr;  ///< no operations and result stream 0: a copy when the types agree

    bool is_copy() const { return expr.ops().empty() && inputs.size() == 1 && inputs[0].type == output.type; }
};

/// Emits the job's tiles from `step` on. Returns a step whose loads stand after everything of this job, so that another job of the layer
/// may use the same scratchpad. Needs at most half of it.
std::int64_t emit_job(Lowering& lowering, VectorJob job, std::int64_t step = 0);

/// Several jobs of one layer, in order, each in the other half of a half of the scratchpad: the loads of one overlap the stores of the one
/// before. Stores happen in the order in which the jobs were added.
class JobSequence {
public:
    /// `step` as returned by what the layer emitted before.
    explicit JobSequence(Lowering& lowering, std::int64_t step = 0);
    void add(VectorJob job);

private:
    Lowering& l_;
    std::int64_t step_;
    std::uint64_t quarter_;
    std::uint64_t count_ = 0;
    std::array<std::int64_t, 2> last_use_{};
};

/// The job's extents and strides in the order of the output's memory (largest stride first).
struct Ordered {
    Shape extents;
    std::vector<std::size_t> dims;  ///< logical dimension of each
};
Ordered memory_order(const Shape& shape, const std::vector<std::int64_t>& strides);
std::vector<std::int64_t> pick(const std::vector<std::int64_t>& strides, const std::vector<std::size_t>& dims);
/// The permutation (TensorSlot::perm) that lays a new tensor out as the view is laid out.
std::vector<int> perm_like(const Operand& operand);

}  // namespace assay::workloads
