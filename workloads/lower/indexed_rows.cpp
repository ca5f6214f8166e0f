#include "workloads/lower/indexed_rows.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "simkernel/exec/decode.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

constexpr std::int64_t kMostTiles = 4096;

class IndexedEmitter {
public:
    IndexedEmitter(Lowering& l, NodeId id, const IndexedRows& m) : l_(l), m_(m) {
        table_size_ = static_cast<std::int64_t>(simkernel::size_of(m.table_type));
        dense_size_ = static_cast<std::int64_t>(simkernel::size_of(m.dense_type));
        computes_ = !m.expr.ops().empty();
        if (computes_) plan_ = plan_expr(m.expr);
        cut_box();
        choose_rows();
        std::int64_t tiles = (m_.rows + rows_ - 1) / rows_ * ((run_ + chunk_ - 1) / chunk_);
        for (const auto& d : outer_)
            if (__builtin_mul_overflow(tiles, d.extent, &tiles) || tiles > kMostTiles) tiles = kMostTiles + 1;
        if (tiles > kMostTiles) throw NodeError(id, fmt::format("indices that move single elements would take more than {} tiles", kMostTiles));
        std::int64_t runs = m_.limit;
        for (const auto& d : inner_) runs *= std::min<std::int64_t>(d.extent, 1 << 12);
        if (m_.limit > static_cast<std::int64_t>(simkernel::kMaxDmaRuns) || runs > static_cast<std::int64_t>(simkernel::kMaxDmaRuns) ||
            m_.limit * box_elements() * table_size_ > static_cast<std::int64_t>(simkernel::kMaxDmaBytes))
            throw NodeError(id, fmt::format("a table of {} rows is larger than one indexed transfer reaches", m_.limit));
        place();
    }

    std::int64_t run(std::int64_t step) {
        Shape extents, at;
        for (const auto& d : outer_) extents.push_back(d.extent);
        at.assign(extents.size(), 0);
        do {
            std::int64_t table = 0, dense = 0;
            for (std::size_t d = 0; d < at.size(); ++d) {
                table += at[d] * outer_[d].table;
                dense += at[d] * outer_[d].dense;
            }
            for (std::int64_t row = 0; row < m_.rows; row += rows_)
                for (std::int64_t c = 0; c < run_; c += chunk_)
                    tile(std::min(rows_, m_.rows - row), row, std::min(chunk_, run_ - c), table + c, dense + c, step++);
        } while (next_index(at, extents));
        return step + 1;
    }

private:
    /// The contiguous run, up to three more dimensions of a descriptor, and what is looped over.
    void cut_box() {
        std::vector<IndexedRows::Dim> dims;
        for (const auto& d : m_.box)
            if (d.extent > 1) dims.push_back(d);
        std::stable_sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) { return std::abs(a.table) < std::abs(b.table); });
        for (const auto& d : dims) {
            if (inner_.empty() && d.table == run_ && d.dense == run_)
                run_ *= d.extent;
            else
                inner_.push_back(d);
        }
        // A run that does not fit is cut, and then it alone is a tile.
        chunk_ = run_;
        while (bytes(1, chunk_, {}) > budget() && chunk_ > 1) chunk_ = (chunk_ + 1) / 2;
        if (chunk_ < run_) std::swap(inner_, outer_);
        while (!inner_.empty() && (inner_.size() > 3 || bytes(1, chunk_, inner_) > budget())) {
            outer_.push_back(inner_.back());
            inner_.pop_back();
        }
    }

    std::uint64_t budget() const { return static_cast<std::uint64_t>(l_.chip.spm_bytes) / 2; }

    std::uint64_t bytes(std::int64_t rows, std::int64_t chunk, const std::vector<IndexedRows::Dim>& inner) const {
        std::int64_t elements = rows * chunk;
        for (const auto& d : inner) elements *= d.extent;
        std::uint64_t total = 2 * align_up(static_cast<std::uint64_t>(4 * rows)) + 2 * align_up(static_cast<std::uint64_t>(elements * (m_.scatter ? dense_size_ : table_size_)));
        if (computes_) total += 2 * align_up(static_cast<std::uint64_t>(elements * dense_size_));
        if (computes_) total += align_up(temp_bytes(plan_, static_cast<std::uint64_t>(elements)));
        return total;
    }

    void choose_rows() {
        rows_ = m_.rows >= 64 ? (m_.rows + 3) / 4 : m_.rows;  // some tiles, so that loads overlap stores
        while (rows_ > 1 && bytes(rows_, chunk_, inner_) > budget()) rows_ = (rows_ + 1) / 2;
    }

    std::int64_t box_elements() const {
        std::int64_t elements = chunk_;
        for (const auto& d : inner_) elements *= d.extent;
        return elements;
    }

    void place() {
        std::uint32_t at = l_.scratchpad_base(bytes(rows_, chunk_, inner_));
        const auto take = [&](std::int64_t size) {
            const auto each = static_cast<std::uint32_t>(align_up(static_cast<std::uint64_t>(size)));
            const Ring ring(at, each, 2);
            at += 2 * each;
            return ring;
        };
        list_ = take(4 * rows_);
        data_ = take(rows_ * box_elements() * (m_.scatter ? dense_size_ : table_size_));
        if (computes_) result_ = take(rows_ * box_elements() * dense_size_);
        temp_ = at;
    }

    /// The dense side's transfer: rows of the box, packed in the scratchpad.
    std::vector<DmaDim> dense_dims(std::int64_t rows, std::int64_t chunk) const {
        std::vector<DmaDim> dims{{chunk, dense_size_, dense_size_}};
        std::int64_t at = chunk * dense_size_;
        for (const auto& d : inner_) {
            dims.push_back({d.extent, d.dense * dense_size_, at});
            at *= d.extent;
        }
        dims.push_back({rows, m_.dense_row * dense_size_, at});
        return dims;
    }

    template <class Fields>
    Fields indexed(std::int64_t rows, std::int64_t chunk, std::int64_t table) const {
        Fields f;
        f.index_enable = 1;
        f.index_addr = list_.addr();
        f.index_limit = static_cast<std::uint32_t>(m_.limit);
        f.ext_addr = m_.table + static_cast<std::uint64_t>(table * table_size_);
        f.local_addr = data_.addr();
        f.run_bytes = static_cast<std::uint32_t>(chunk * table_size_);
        f.count = {static_cast<std::uint32_t>(rows), 1, 1, 1};
        std::int64_t at = chunk * table_size_;
        for (std::size_t i = 0; i < inner_.size(); ++i) {
            f.count[i + 1] = static_cast<std::uint32_t>(inner_[i].extent);
            f.ext_stride[i + 1] = inner_[i].table * table_size_;
            f.local_stride[i + 1] = static_cast<std::int32_t>(at);
            at *= inner_[i].extent;
        }
        f.ext_stride[0] = m_.table_row * table_size_;
        f.local_stride[0] = static_cast<std::int32_t>(at);
        return f;
    }

    void tile(std::int64_t rows, std::int64_t row, std::int64_t chunk, std::int64_t table, std::int64_t dense, std::int64_t step) {
        Emitter& e = l_.emitter;
        const auto dense_bytes = static_cast<std::uint32_t>(dense_size_);
        const std::uint64_t dense_addr = m_.dense + static_cast<std::uint64_t>((dense + row * m_.dense_row) * dense_size_);
        e.at(Stage::load, step, list_.advance());
        emit_load(e, m_.list + static_cast<std::uint64_t>(4 * row * m_.list_stride), list_.addr(), 4, {{rows, 4 * m_.list_stride, 4}});
        list_.use(step);
        e.at(Stage::load, step, data_.advance());
        if (m_.scatter)
            emit_load(e, dense_addr, data_.addr(), dense_bytes, dense_dims(rows, chunk));
        else
            e.emit(indexed<simkernel::LoadFields>(rows, chunk, table));
        data_.use(step);
        std::uint32_t from = data_.addr();
        if (computes_) {
            result_.advance();
            from = result_.addr();
            const auto n = static_cast<std::uint32_t>(rows * chunk * (box_elements() / chunk_));
            VectorShape shape;
            shape.count[0] = n;
            e.at(Stage::compute, step);
            emit_plan(e, plan_, shape, {{data_.addr(), m_.table_type, {static_cast<std::int32_t>(table_size_)}}},
                      {from, m_.dense_type, {static_cast<std::int32_t>(dense_size_)}}, temp_);
        }
        e.at(Stage::store, step);
        if (m_.scatter)
            e.emit(indexed<simkernel::StoreFields>(rows, chunk, table));
        else
            emit_store(e, dense_addr, from, dense_bytes, dense_dims(rows, chunk));
    }

    Lowering& l_;
    const IndexedRows& m_;
    std::int64_t table_size_ = 4, dense_size_ = 4;
    bool computes_ = false;
    ExprPlan plan_;  ///< of what is done to the rows on their way, if anything is
    std::int64_t run_ = 1, chunk_ = 1, rows_ = 1;
    std::vector<IndexedRows::Dim> inner_, outer_;
    Ring list_, data_, result_;
    std::uint32_t temp_ = 0;
};

}  // namespace

std::int64_t emit_indexed_rows(Lowering& lowering, NodeId id, const IndexedRows& move, std::int64_t step) {
    return IndexedEmitter(lowering, id, move).run(step);
}

}  // namespace assay::workloads
