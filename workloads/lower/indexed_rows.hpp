#pragma once
// Rows of a table in HBM chosen at run time by a list of int32: a gather by indexed loads, a scatter by indexed stores.
#include <optional>

#include "workloads/lower/lowering.hpp"
#include "workloads/schedule/expr.hpp"

namespace assay::workloads {

/// Row i of the table meets row i of the dense side: each is a box of the same extents.
struct IndexedRows {
    struct Dim {
        std::int64_t extent = 1, table = 0, dense = 0;  ///< strides in elements
    };
    bool scatter = false;             ///< from the dense side to the table; else from the table to the dense side
    std::uint64_t list = 0;           ///< address of the first int32
    std::int64_t list_stride = 1;     ///< elements between words of the list
    std::int64_t rows = 1;            ///< words in the list
    std::int64_t limit = 1;           ///< rows of the table
    std::uint64_t table = 0, dense = 0;
    simkernel::Dtype table_type = simkernel::Dtype::f32, dense_type = simkernel::Dtype::f32;
    std::int64_t table_row = 1, dense_row = 1;  ///< elements between rows
    std::vector<Dim> box;                       ///< of one row
    Expr expr;                                  ///< gather only: from stream 0 to what is stored
};

/// Emits it from `step` on; returns a step whose loads stand after everything of this. Throws NodeError for more than 4096 tiles.
std::int64_t emit_indexed_rows(Lowering& lowering, NodeId id, const IndexedRows& move, std::int64_t step = 0);

}  // namespace assay::workloads
