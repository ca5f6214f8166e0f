#include "workloads/lower/vector_job.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simkernel/exec/decode.hpp"
#include "support/error.hpp"
#include "workloads/schedule/dma.hpp"
#include "workloads/schedule/shares.hpp"

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

constexpr std::size_t kVectorDims = 5;  // of a vector descriptor

/// What a job may cost more than with the best tile for having fewer of them: each takes room in the program and the processor's time.
constexpr double kWorthFewerTiles = 1.06;

/// Where a job's buffers may lie.
struct Region {
    std::uint64_t budget = 0;               ///< bytes
    std::optional<std::uint32_t> base;      ///< none: where the layer's parity says
    std::int64_t last_use = kNeverUsed;     ///< last step that used it before this job
};

class JobEmitter {
public:
    JobEmitter(Lowering& lowering, VectorJob job, const Region& region) : l_(lowering), job_(std::move(job)) {
        collapse(job_);
        copy_ = job_.is_copy();
        if (!copy_) plan_ = plan_expr(job_.expr);
        choose_cores(region.budget);
        base_ = region.base ? *region.base : l_.scratchpad_base(bytes_for(tile_));
        last_use_ = region.last_use;
    }

    /// Emits the tiles; returns the step after the last.
    std::int64_t run(std::int64_t step) {
        const std::int64_t units = tile_count(tile_);
        std::int64_t last = step;
        if (cores_ > 1) l_.emitter.begin_disjoint_stores();
        for (std::int64_t core = 0; core < cores_; ++core) {
            l_.emitter.set_core(static_cast<std::uint32_t>(core));
            place();
            last = std::max(last, run_share(share_of(units, core, cores_), step));
        }
        l_.emitter.end_disjoint_stores();
        l_.emitter.set_core(0);
        return last;
    }

private:
    std::int64_t run_share(const Share& share, std::int64_t step) {
        for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
            Shape at(tile_.size(), 0), extent = tile_;
            std::int64_t rest = unit;
            for (std::size_t d = at.size(); d-- > 0;) {
                const std::int64_t count = (job_.extents[d] + tile_[d] - 1) / tile_[d];
                at[d] = rest % count * tile_[d];
                rest /= count;
                extent[d] = std::min(tile_[d], job_.extents[d] - at[d]);
            }
            emit_tile(at, extent, step++);
        }
        return step;
    }

    std::int64_t tile_count(const Shape& tile) const {
        std::int64_t tiles = 1;
        for (std::size_t d = 0; d < tile.size(); ++d) tiles *= (job_.extents[d] + tile[d] - 1) / tile[d];
        return tiles;
    }

    /// The number of cores (1, 2, 4, … or all) and the tile that finish first.
    void choose_cores(std::uint64_t budget) {
        double best = choose_tile(budget);
        const Shape alone = tile_;
        Shape tile = alone;
        const std::int64_t most = l_.options.cores;
        for (std::int64_t cores = 2; most > 1; cores = std::min(2 * cores, most)) {
            cores_ = cores;
            const double cycles = choose_tile(budget) + sharing_cycles(l_.chip);
            if (cycles < best && tile_count(tile_) >= cores) {
                best = cycles;
                tile = tile_;
                chosen_ = cores;
            }
            if (cores == most) break;
        }
        cores_ = chosen_;
        tile_ = tile;
    }

    std::uint64_t bytes_for(const Shape& tile) const {
        std::uint64_t total = copy_ ? 0 : 2 * align_up(tile_bytes(job_.output, tile));
        for (const JobTensor& t : job_.inputs) total += 2 * align_up(tile_bytes(t, tile));
        std::uint64_t elements = 1;
        for (const std::int64_t e : tile) elements *= static_cast<std::uint64_t>(e);
        return total + temp_bytes(plan_, elements);
    }

    /// Cycles that the DMA takes for a tile of the tensor, without what it takes for any: bursts of runs that are contiguous in HBM, each a
    /// cycle at least, and its share of the latency when too few are in flight to hide it.
    double transfer_cycles(const JobTensor& t, const Shape& tile) const {
        std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride in bytes, extent
        double bytes = static_cast<double>(simkernel::size_of(t.type));
        auto run = static_cast<std::int64_t>(simkernel::size_of(t.type));
        for (std::size_t d = 0; d < tile.size(); ++d) {
            if (t.strides[d] == 0 || tile[d] == 1) continue;
            dims.emplace_back(std::abs(t.strides[d]) * static_cast<std::int64_t>(simkernel::size_of(t.type)), tile[d]);
            bytes *= static_cast<double>(tile[d]);
        }
        std::sort(dims.begin(), dims.end());
        for (const auto& [stride, extent] : dims) {
            if (stride != run) break;
            run *= extent;
        }
        const auto burst = static_cast<double>(l_.chip.dma_burst_bytes), length = static_cast<double>(run);
        const double bursts = bytes / length * std::ceil(length / burst);
        const double wide = bytes_per_cycle(l_.chip, cores_);
        return std::max(bursts * std::max(1.0, latency() / static_cast<double>(l_.chip.dma_outstanding)), bytes / wide);
    }

    double latency() const { return static_cast<double>(2 * l_.chip.noc_latency_cycles + l_.chip.hbm_t_rcd_cycles + l_.chip.hbm_t_cl_cycles); }

    /// Cycles of the whole job with this tile: the slowest of the three engines' stages, and two steps to fill and drain the pipeline.
    double job_cycles(const Shape& tile) const {
        const auto tiles = static_cast<double>((tile_count(tile) + cores_ - 1) / cores_);  // of the core that has most
        double elements = 1;
        for (const std::int64_t n : tile) elements *= static_cast<double>(n);
        const double fixed = static_cast<double>(l_.chip.dma_setup_cycles) + latency();
        double load = 0;
        for (const JobTensor& t : job_.inputs) load += fixed + transfer_cycles(t, tile);
        const double store = fixed + transfer_cycles(job_.output, tile);
        const double compute = copy_ ? 0 : static_cast<double>(plan_.segments.size()) * (static_cast<double>(l_.chip.vpu_setup_cycles) +
                                               elements / static_cast<double>(l_.chip.vpu_lanes) * static_cast<double>(job_.expr.ops().size() + 1));
        return (tiles + 2) * std::max({load, store, compute});
    }

    /// Dimensions that a descriptor of this tile has.
    static std::size_t active_dims(const Shape& tile) {
        return static_cast<std::size_t>(std::count_if(tile.begin(), tile.end(), [](std::int64_t n) { return n > 1; }));
    }

    /// From one element, the dimension whose doubling pays most is doubled until nothing fits; the largest tile on the way that is about as cheap as
    /// the cheapest is taken. Returns the job's cycles with it, on cores_ cores.
    double choose_tile(std::uint64_t budget) {
        Shape tile(job_.extents.size(), 1);
        ASSAY_CHECK(bytes_for(tile) <= budget, "one element of every operand fits a quarter of the smallest scratchpad");
        tile_ = tile;
        double best = job_cycles(tile);
        while (true) {
            Shape grown;
            double cheapest = 0;
            for (std::size_t d = tile.size(); d-- > 0;) {
                if (tile[d] == job_.extents[d]) continue;
                Shape candidate = tile;
                candidate[d] = std::min(job_.extents[d], 2 * tile[d]);
                if (bytes_for(candidate) > budget) candidate[d] = fitting(tile, d, budget);
                if (candidate[d] == tile[d] || active_dims(candidate) > kVectorDims) continue;
                const double cycles = job_cycles(candidate);
                if (grown.empty() || cycles < cheapest) {
                    cheapest = cycles;
                    grown = candidate;
                }
            }
            if (grown.empty()) break;
            tile = grown;
            best = std::min(best, cheapest);
            if (cheapest <= kWorthFewerTiles * best) tile_ = tile;
        }
        // Tiles of about equal size, so that the last step is not a sliver.
        for (std::size_t d = 0; d < tile_.size(); ++d) {
            const std::int64_t count = (job_.extents[d] + tile_[d] - 1) / tile_[d];
            tile_[d] = (job_.extents[d] + count - 1) / count;
        }
        return best;
    }

    /// The largest extent of dimension d that fits.
    std::int64_t fitting(Shape tile, std::size_t d, std::uint64_t budget) const {
        std::int64_t low = tile[d], high = job_.extents[d];
        while (low < high) {
            const std::int64_t mid = low + (high - low + 1) / 2;
            tile[d] = mid;
            if (bytes_for(tile) <= budget)
                low = mid;
            else
                high = mid - 1;
        }
        return low;
    }

    /// The buffers of one core, unused yet.
    void place() {
        std::uint32_t at = base_;
        rings_.clear();
        const auto ring = [&](const JobTensor& t) {
            const auto bytes = static_cast<std::uint32_t>(align_up(tile_bytes(t, tile_)));
            const Ring r(at, bytes, 2, last_use_);
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

    /// The device address goes through memory in ascending order: contiguous bytes become long bursts whatever their place in the tile is.
    static std::vector<DmaDim> dma_dims(const JobTensor& t, const std::vector<std::int64_t>& local, const Shape& extent) {
        std::vector<DmaDim> dims;
        for (std::size_t d = extent.size(); d-- > 0;)
            if (t.strides[d] != 0 && extent[d] > 1)
                dims.push_back({extent[d], t.strides[d] * static_cast<std::int64_t>(simkernel::size_of(t.type)), local[d]});
        std::stable_sort(dims.begin(), dims.end(),
                         [](const DmaDim& a, const DmaDim& b) { return std::abs(a.ext_stride) < std::abs(b.ext_stride); });
        return dims;
    }

    std::uint64_t address(const JobTensor& t, const Shape& at) const {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * t.strides[d];
        return t.addr + static_cast<std::uint64_t>(offset * static_cast<std::int64_t>(simkernel::size_of(t.type)));
    }

    /// The dimensions of a tile that a vector descriptor has, innermost first.
    std::vector<std::size_t> vector_dims() const {
        std::vector<std::size_t> dims;
        for (std::size_t d = tile_.size(); d-- > 0;)
            if (tile_[d] > 1) dims.push_back(d);
        return dims;
    }

    VectorOperand operand(const JobTensor& t, std::uint32_t addr, const Shape& extent) const {
        VectorOperand v;
        v.addr = addr;
        v.type = t.type;
        const auto strides = packed(t, extent);
        std::size_t i = 0;
        for (const std::size_t d : vector_dims()) v.stride[i++] = static_cast<std::int32_t>(strides[d]);
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
                          dma_dims(t, packed(t, extent), extent));
                loaded_[i] = key;
            }
            rings_[i].use(step);
            streams.push_back(operand(t, rings_[i].addr(), extent));
        }
        std::uint32_t result = rings_.empty() ? 0 : rings_[0].addr();
        // A copy is stored from where it was loaded, so a dimension along which the input repeats is read again and again.
        const std::vector<std::int64_t> local = packed(copy_ ? job_.inputs[0] : job_.output, extent);
        if (!copy_) {
            out_.advance();
            result = out_.addr();
            VectorShape shape;
            std::size_t i = 0;
            for (const std::size_t d : vector_dims()) shape.count[i++] = static_cast<std::uint32_t>(extent[d]);
            l_.emitter.at(Stage::compute, step);
            VectorOperand out = operand(job_.output, result, extent);
            emit_plan(l_.emitter, plan_, shape, streams, out, temp_);
        }
        l_.emitter.at(Stage::store, step);
        emit_store(l_.emitter, address(job_.output, at), result, static_cast<std::uint32_t>(simkernel::size_of(job_.output.type)),
                   dma_dims(job_.output, local, extent));
    }

    Lowering& l_;
    VectorJob job_;
    bool copy_ = false;
    ExprPlan plan_;
    Shape tile_;
    std::int64_t cores_ = 1, chosen_ = 1;
    std::uint32_t base_ = 0;
    std::int64_t last_use_ = kNeverUsed;
    std::vector<Ring> rings_;
    Ring out_;
    std::uint32_t temp_ = 0;
    std::vector<Shape> loaded_;
};

}  // namespace

std::int64_t emit_job(Lowering& lowering, VectorJob job, std::int64_t step) {
    const Region region{static_cast<std::uint64_t>(lowering.chip.spm_bytes) / 2, std::nullopt, kNeverUsed};
    return JobEmitter(lowering, std::move(job), region).run(step) + 1;
}

JobSequence::JobSequence(Lowering& lowering, std::int64_t step)
    : l_(lowering), step_(step), quarter_(static_cast<std::uint64_t>(lowering.chip.spm_bytes) / 4 / 64 * 64) {
    last_use_.fill(step - 2 < 0 ? kNeverUsed : step - 2);
}

void JobSequence::add(VectorJob job) {
    const auto which = static_cast<std::size_t>(count_++ % 2);
    const auto base = static_cast<std::uint32_t>(l_.scratchpad_base(2 * quarter_) + which * quarter_);
    step_ = JobEmitter(l_, std::move(job), {quarter_, base, last_use_[which]}).run(step_);
    last_use_[which] = step_ - 1;
}

Ordered memory_order(const Shape& shape, const std::vector<std::int64_t>& strides) {
    Ordered order;
    order.dims.resize(shape.size());
    std::iota(order.dims.begin(), order.dims.end(), std::size_t{0});
    std::stable_sort(order.dims.begin(), order.dims.end(), [&](std::size_t a, std::size_t b) {
        const auto reach = [&](std::size_t d) { return shape[d] == 1 || strides[d] == 0 ? INT64_MAX : std::abs(strides[d]); };
        return reach(a) > reach(b);
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
