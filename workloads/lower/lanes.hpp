#pragma once
// One elementwise node as operations on the lanes of the vector unit: every operator whose result element depends on one element of each
// input, broadcast.
#include "workloads/graph/graph.hpp"
#include "workloads/schedule/expr.hpp"

namespace assay::workloads {

/// A value within an expression. What its 32 bits are depends on the element type of the tensor it stands for.
struct Lane {
    enum class Kind {
        real,     ///< fp32
        integer,  ///< the element's exact value as int32 (uint8: 0 … 255)
        flag,     ///< a bool as 0 or 1
        mask      ///< a bool as 0 or -1
    } kind = Kind::real;
    Expr::Ref ref;
};

/// Why the node cannot run lane by lane ("" if it can): an operator that is not elementwise, or element types it has no arithmetic for. Shapes
/// and types of the node's values must be known.
std::string elementwise_refusal(const Graph& graph, NodeId id);

/// The node's first output from its inputs (absent optional inputs: any lane). elementwise_refusal must be empty.
Lane emit_node(Expr& expr, const Graph& graph, NodeId id, const std::vector<Lane>& inputs);

/// What is read from a device tensor of that type, as a lane: uint8 is stored less 128.
Lane lane_of_stored(Expr& expr, Expr::Ref stored, DType type);
/// What is written to a device tensor of that type.
Expr::Ref stored_of_lane(Expr& expr, const Lane& lane, DType type);
/// A constant's element.
Lane lane_of_constant(const Tensor& tensor, std::int64_t element);

}  // namespace assay::workloads
