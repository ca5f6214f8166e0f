#include "workloads/lower/vector_job.hpp"

#include <algorithm>
#include <numeric>

#include "simkernel/exec/decode.hpp"
#include "support/error.hpp"
#include "workloads/schedule/dma.hpp"

namespace assay::workloads {
namespace {

/// Merges neighbouring dimensions that every tensor crosses with one stride, and drops extents of 1.
void collapse(VectorJob& job) {
    std::vector<JobTensor*> tensors;
    for (JobTensor& t : job.inputs) tensors.push_back(&t);
    tensors.push_back(&job.output);
    Shape extents;
    std::vector<std::vector<std::int64_t>> strides(tensors.size());
    for (std::size_t d = 0; d < job.extents.size(); ++d) {
        if (job.extents[d] == 1) continue;
        bool merge = !extents.empty();
        for (std::size_t t = 0; merge && t < tensors.size(); ++t) merge = strides[t].back() == tensors[t]->strides[d] * job.extents[d];
        if (merge)
            extents.back() *= job.extents[d];
        else
            extents.push_back(job.extents[d]);
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            if (merge)
                strides[t].back() = tensors[t]->strides[d];
            else
                strides[t].push_back(tensors[t]->strides[d]);
        }
    }
    if (extents.empty()) {
        extents.push_back(1);
        for (std::size_t t = 0; t < tensors.size(); ++t) strides[t].push_back(t + 1 == tensors.size() ? 1 : 0);
    }
    job.extents = extents;
    for (std::size_t t = 0; t < tensors.size(); ++t) tensors[t]->strides = strides[t];
}

std::uint64_t tile_bytes(const JobTensor& t, const Shape& tile) {
    std::uint64_t n = simkernel::size_of(t.type);
    for (std::size_t d = 0; d < tile.size(); ++d)
        if (t.strides[d] != 0) n *= static_cast<std::uint64_t>(tile[d]);
    return n;
}

class JobEmitter {
public:
    JobEmitter(Lowering& lowering, VectorJob job) : l_(lowering), job_(std::move(job)) {
        collapse(job_);
        copy_ = job_.is_copy();
        segments_ = copy_ || job_.expr.ops().empty() ? 1 : split(job_.expr).size();
        choose_tile();
        place();
    }

    std::int64_t run(std::int64_t step) {
        Shape at(tile_.size(), 0);
        while (true) {
            Shape extent = tile_;
            for (std::size_t d = 0; d < at.size(); ++d) extent[d] = std::min(tile_[d], job_.extents[d] - at[d]);
            emit_tile(at, extent, step++);
            std::size_t d = at.size();
            while (d-- > 0) {
                if ((at[d] += tile_[d]) < job_.extents[d]) break;
                at[d] = 0;
            }
            if (d == SIZE_MAX) return step + 1;
        }
    }

private:
    std::uint64_t bytes_for(const Shape& tile) const {
        std::uint64_t total = copy_ ? 0 : 2 * align_up(tile_bytes(job_.output, tile));
        for (const JobTensor& t : job_.inputs) total += 2 * align_up(tile_bytes(t, tile));
        std::uint64_t elements = 1;
        for (const std::int64_t e : tile) elements *= static_cast<std::uint64_t>(e);
        if (segments_ > 1) total += align_up(4 * elements);
        return total;
    }

    void choose_tile() {
        const auto budget = static_cast<std::uint64_t>(l_.chip.spm_bytes) / 2;
        tile_.assign(job_.extents.size(), 1);
        ASSAY_CHECK(bytes_for(tile_) <= budget, "one element of every operand fits half the smallest scratchpad");
        // A descriptor has five dimensions: what lies further out is looped over.
        for (std::size_t d = tile_.size(); d-- > 0 && tile_.size() - d <= 5;) {
            std::int64_t low = 1, high = job_.extents[d];
            while (low < high) {
                const std::int64_t mid = (low + high + 1) / 2;
                tile_[d] = mid;
                if (bytes_for(tile_) <= budget)
                    low = mid;
                else
                    high = mid - 1;
            }
            tile_[d] = low;
            if (low < job_.extents[d]) break;
        }
    }

    void place() {
        std::uint32_t at = l_.scratchpad_base(bytes_for(tile_));
        const auto ring = [&](const JobTensor& t) {
            const auto bytes = static_cast<std::uint32_t>(align_up(tile_bytes(t, tile_)));
            const Ring r(at, bytes, 2);
            at += 2 * bytes;
            return r;
        };
        for (const JobTensor& t : job_.inputs) rings_.push_back(ring(t));
        if (!copy_) out_ = ring(job_.output);
        temp_ = at;
        loaded_.assign(job_.inputs.size(), {});
    }

    /// Byte strides within the packed tile, by job dimension; 0 where the tensor repeats.
    static std::vector<std::int64_t> packed(const JobTensor& t, const Shape& extent) {
        std::vector<std::int64_t> strides(extent.size(), 0);
        std::int64_t at = static_cast<std::int64_t>(simkernel::size_of(t.type));
        for (std::size_t d = extent.size(); d-- > 0;)
            if (t.strides[d] != 0) {
                strides[d] = at;
                at *= extent[d];
            }
        return strides;
    }

    std::vector<DmaDim> dma_dims(const JobTensor& t, const Shape& extent) const {
        const auto local = packed(t, extent);
        std::vector<DmaDim> dims;
        for (std::size_t d = extent.size(); d-- > 0;)
            if (t.strides[d] != 0)
                dims.push_back({extent[d], t.strides[d] * static_cast<std::int64_t>(simkernel::size_of(t.type)), local[d]});
        return dims;
    }

    std::uint64_t address(const JobTensor& t, const Shape& at) const {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * t.strides[d];
        return t.addr + static_cast<std::uint64_t>(offset * static_cast<std::int64_t>(simkernel::size_of(t.type)));
    }

    VectorOperand operand(const JobTensor& t, std::uint32_t addr, const Shape& extent) const {
        VectorOperand v;
        v.addr = addr;
        v.type = t.type;
        const auto strides = packed(t, extent);
        const std::size_t rank = std::min<std::size_t>(5, extent.size());
        for (std::size_t i = 0; i < rank; ++i) v.stride[i] = static_cast<std::int32_t>(strides[extent.size() - 1 - i]);
        return v;
    }

    void emit_tile(const Shape& at, const Shape& extent, std::int64_t step) {
        std::vector<VectorOperand> streams;
        for (std::size_t i = 0; i < job_.inputs.size(); ++i) {
            const JobTensor& t = job_.inputs[i];
            Shape key{static_cast<std::int64_t>(address(t, at))};
            for (std::size_t d = 0; d < extent.size(); ++d) key.push_back(t.strides[d] != 0 ? extent[d] : 0);
            if (loaded_[i] != key) {
                l_.emitter.at(Stage::load, step, rings_[i].advance());
                emit_load(l_.emitter, address(t, at), rings_[i].addr(), static_cast<std::uint32_t>(simkernel::size_of(t.type)),
                          dma_dims(t, extent));
                loaded_[i] = key;
            }
            rings_[i].use(step);
            streams.push_back(operand(t, rings_[i].addr(), extent));
        }
        std::uint32_t result = rings_.empty() ? 0 : rings_[0].addr();
        if (!copy_) {
            out_.advance();
            result = out_.addr();
            VectorShape shape;
            for (std::size_t i = 0; i < std::min<std::size_t>(5, extent.size()); ++i)
                shape.count[i] = static_cast<std::uint32_t>(extent[extent.size() - 1 - i]);
            l_.emitter.at(Stage::compute, step);
            VectorOperand out = operand(job_.output, result, extent);
            emit_expr(l_.emitter, job_.expr, shape, streams, out, temp_);
        }
        l_.emitter.at(Stage::store, step);
        emit_store(l_.emitter, address(job_.output, at), result, static_cast<std::uint32_t>(simkernel::size_of(job_.output.type)),
                   dma_dims(job_.output, extent));
    }

    Lowering& l_;
    VectorJob job_;
    bool copy_ = false;
    std::size_t segments_ = 1;
    Shape tile_;
    std::vector<Ring> rings_;
    Ring out_;
    std::uint32_t temp_ = 0;
    std::vector<Shape> loaded_;
};

}  // namespace

std::int64_t emit_job(Lowering& lowering, VectorJob job, std::int64_t step) { return JobEmitter(lowering, std::move(job)).run(step); }

Ordered memory_order(const Shape& shape, const std::vector<std::int64_t>& strides) {
    Ordered order;
    order.dims.resize(shape.size());
    std::iota(order.dims.begin(), order.dims.end(), std::size_t{0});
    std::stable_sort(order.dims.begin(), order.dims.end(), [&](std::size_t a, std::size_t b) {
        const std::int64_t x = shape[a] == 1 ? INT64_MAX : strides[a], y = shape[b] == 1 ? INT64_MAX : strides[b];
        return x > y;
    });
    for (const std::size_t d : order.dims) order.extents.push_back(shape[d]);
    return order;
}

std::vector<std::int64_t> pick(const std::vector<std::int64_t>& strides, const std::vector<std::size_t>& dims) {
    std::vector<std::int64_t> out;
    for (const std::size_t d : dims) out.push_back(strides[d]);
    return out;
}

std::vector<int> perm_like(const Operand& operand) {
    std::vector<int> perm;
    for (const std::size_t d : memory_order(operand.shape, operand.strides).dims) perm.push_back(static_cast<int>(d));
    return perm;
}

}  // namespace assay::workloads
