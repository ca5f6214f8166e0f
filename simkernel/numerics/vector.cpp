// The vector unit at host-vector speed. Index order makes reduced dimensions the inner ones, so a group of elements that reduce together is
// consecutive and the whole descriptor is one pass over chunks.
#include "simkernel/numerics/vector.hpp"

#include <atomic>
#include <cstring>

#include "simkernel/numerics/vector_program.hpp"
#include "simkernel/numerics/workers.hpp"

namespace assay::simkernel {
namespace {

/// Elements that one worker takes at least: about 10 us of a short program, the price of waking a thread.
constexpr std::size_t kGrainElems = 16 * kChunk;

struct ByteRange {
    const std::byte* begin;
    const std::byte* end;
};
ByteRange range_of(const std::byte* base, const Extents& extents, const Strides& strides, std::size_t element_bytes) {
    ByteRange r{base, base + element_bytes};
    for (std::size_t d = 0; d < 5; ++d) {
        const std::ptrdiff_t reach = static_cast<std::ptrdiff_t>(extents[d] - 1) * strides[d];
        (reach < 0 ? r.begin : r.end) += reach;
    }
    return r;
}
bool overlap(const ByteRange& x, const ByteRange& y) { return x.begin < y.end && y.begin < x.end; }

/// True if no two indices share a byte (sufficient: each stride clears everything inside it).
bool disjoint_elements(const Extents& extents, const Strides& strides, std::size_t element_bytes) {
    std::array<std::pair<std::size_t, std::size_t>, 5> dims;  // stride, extent
    for (std::size_t d = 0; d < 5; ++d) dims[d] = {static_cast<std::size_t>(strides[d] < 0 ? -strides[d] : strides[d]), extents[d]};
    std::sort(dims.begin(), dims.end());
    std::size_t reach = element_bytes;
    for (const auto& [stride, extent] : dims) {
        if (extent == 1) continue;
        if (stride < reach) return false;
        reach += stride * (extent - 1);
    }
    return true;
}

enum class Order {
    any,         ///< chunks may run in any order, on any thread
    sequential,  ///< outputs overwrite each other: chunks in order
    scalar,      ///< an output may be read as an input later: only the definition has that order
};

Order order_of(const VectorFields& f, const VectorShape& shape, const std::array<const std::byte*, 3>& in, const std::byte* out) {
    const bool reduces = static_cast<Reduce>(f.reduce) != Reduce::none;
    const Strides to = output_strides(f, shape);
    Extents written = shape.results;
    if (f.carry_out != 0) written[0] = 1;
    const std::size_t cell = f.carry_out != 0 ? 4 * shape.partials : bytes_of(static_cast<Dtype>(f.out_type));
    const bool apart = disjoint_elements(written, to, cell);
    const ByteRange target = range_of(out, written, to, cell);
    const std::array<Strides, 3> from{strides_of(f.in0_stride), strides_of(f.in1_stride), strides_of(f.in2_stride)};
    for (std::size_t s = 0; s < 3; ++s) {
        if (s == 2 && f.carry_in != 0) {
            if (f.carry_out != 0 && shape.groups == 1) continue;  // the only group reads all of them before it writes
            const std::size_t bytes = 4 * shape.partials * shape.groups;
            if (overlap(target, {in[2], in[2] + bytes})) return Order::scalar;
            continue;
        }
        if ((f.in_used >> s & 1u) == 0) continue;
        const std::size_t size = bytes_of(static_cast<Dtype>(f.in_type[s]));
        if (!overlap(target, range_of(in[s], shape.space, from[s], size))) continue;
        bool in_place = !reduces && apart && in[s] == out && size == cell;  // each element is read before it is written, and only there
        for (std::size_t d = 0; d < 5; ++d) in_place = in_place && (shape.space[d] == 1 || from[s][d] == to[d]);
        if (!in_place) return Order::scalar;
    }
    return apart ? Order::any : Order::sequential;
}

/// Converts v0 of result elements and writes them where they belong.
class OutputWriter {
public:
    OutputWriter(const KernelTable& kernel, const VectorFields& f, const VectorShape& shape, std::byte* out)
        : kernel_(kernel), type_(static_cast<Dtype>(f.out_type)), saturate_(f.f8_overflow == 0), walk_(shape.results, output_strides(f, shape), bytes_of(type_)), out_(out) {}

    void write(ChunkBuffers& buffers, std::size_t flat, std::size_t count, const std::uint32_t* values) {
        std::ptrdiff_t offset = 0;
        bool clipped = false;
        if (walk_.dense(flat, count, offset)) {
            clipped = kernel_.write(type_, saturate_, values, out_ + offset, count);
        } else {
            auto* raw = reinterpret_cast<std::byte*>(buffers.raw.data());
            clipped = kernel_.write(type_, saturate_, values, raw, count);
            walk_.scatter(out_, flat, count, raw);
        }
        if (clipped) saturated_.store(true, std::memory_order_relaxed);
    }
    bool saturated() const { return saturated_.load(); }

private:
    const KernelTable& kernel_;
    const Dtype type_;
    const bool saturate_;
    const StridedWalk walk_;
    std::byte* const out_;
    std::atomic<bool> saturated_{false};
};

void run_elements(const ChunkProgram& program, OutputWriter& writer, std::size_t begin, std::size_t end) {
    ChunkBuffers& buffers = chunk_buffers();
    program.prepare(buffers, true);
    for (std::size_t flat = begin; flat < end; flat += program.chunk()) {
        const std::size_t count = std::min(program.chunk(), end - flat);
        writer.write(buffers, flat, count, program.run(buffers, flat, count, nullptr));
    }
}

/// Groups of elements to results: holds the partials of the group in progress and the results that wait to fill a chunk.
class Reducer {
public:
    Reducer(const KernelTable& kernel, const VectorFields& f, const VectorShape& shape, const std::byte* carried, std::byte* out,
            const ChunkProgram& after, OutputWriter& writer, ChunkBuffers& buffers)
        : kernel_(kernel), f_(f), shape_(shape), op_(static_cast<Reduce>(f.reduce)), carried_(carried), out_(out), to_(output_strides(f, shape)),
          after_(after), writer_(writer), buffers_(buffers) {
        buffers_.partial.assign(shape.partials + 16, 0);
    }

    void begin_group(std::size_t group) {
        group_ = group;
        if (f_.carry_in != 0) std::memcpy(buffers_.partial.data(), carried_ + 4 * group * shape_.partials, 4 * shape_.partials);
    }
    /// Elements [at, at + count) of the group.
    void take(std::size_t at, const std::uint32_t* values, std::size_t count) {
        while (count > 0) {
            const std::size_t i0 = at % shape_.space[0], p = i0 % shape_.lanes;
            const std::size_t run = std::min({count, shape_.space[0] - i0, shape_.lanes - p});
            // The first contribution to a partial is taken as it is: no operation has an identity that keeps -0 and NaN.
            if (f_.carry_in == 0 && at < shape_.partials) std::memcpy(&buffers_.partial[p], values, 4 * run);
            else kernel_.combine(op_, &buffers_.partial[p], values, run);
            at += run, values += run, count -= run;
        }
    }
    void end_group() {
        std::uint32_t* partial = buffers_.partial.data();
        const std::size_t results = shape_.results[0];
        if (f_.carry_out != 0) {
            std::memcpy(out_ + offset_of(shape_.results, to_, group_ * results), partial, 4 * shape_.partials);
            return;
        }
        if (f_.reduce_lanes != 0)
            for (std::size_t half = shape_.lanes / 2; half >= 1; half /= 2)
                if (half < shape_.partials) kernel_.combine(op_, partial, partial + half, std::min(half, shape_.partials - half));
        for (std::size_t i = 0; i < results;) {
            if (waiting_ == 0) first_ = group_ * results + i;
            const std::size_t count = std::min(results - i, kChunk - waiting_);
            std::memcpy(buffers_.pending.data() + waiting_, partial + i, 4 * count);
            waiting_ += count, i += count;
            if (waiting_ == kChunk) flush();
        }
    }
    void flush() {
        if (waiting_ == 0) return;
        writer_.write(buffers_, first_, waiting_, after_.run(buffers_, first_, waiting_, buffers_.pending.data()));
        waiting_ = 0;
    }

private:
    const KernelTable& kernel_;
    const VectorFields& f_;
    const VectorShape& shape_;
    const Reduce op_;
    const std::byte* const carried_;
    std::byte* const out_;
    const Strides to_;
    const ChunkProgram& after_;
    OutputWriter& writer_;
    ChunkBuffers& buffers_;
    std::size_t group_ = 0;
    std::size_t first_ = 0;    ///< index of the first result that waits
    std::size_t waiting_ = 0;
};

void run_groups(const ChunkProgram& before, const ChunkProgram& after, Reducer& reducer, ChunkBuffers& buffers, const VectorShape& shape,
                std::size_t first_group, std::size_t last_group) {
    before.prepare(buffers, false);
    after.prepare(buffers, false);
    const std::size_t end = last_group * shape.group;
    for (std::size_t flat = first_group * shape.group; flat < end;) {
        const std::size_t count = std::min(kChunk, end - flat);
        // The reducer may run the program after the reduction, which uses the same registers: the values move out of its way.
        const std::uint32_t* v0 = before.run(buffers, flat, count, nullptr);
        std::memcpy(buffers.values.data(), v0, 4 * count);
        for (std::size_t i = 0; i < count;) {
            const std::size_t at = (flat + i) % shape.group;
            if (at == 0) reducer.begin_group((flat + i) / shape.group);
            const std::size_t run = std::min(count - i, shape.group - at);
            reducer.take(at, buffers.values.data() + i, run);
            i += run;
            if (at + run == shape.group) reducer.end_group();
        }
        flat += count;
    }
    reducer.flush();
}

}  // namespace

VectorStatus run_vector(const VectorFields& f, const std::array<const std::byte*, 3>& in, std::byte* out, int lanes) {
    const KernelTable* kernel = kernels();
    const VectorShape shape(f, lanes);
    const Order order = kernel == nullptr ? Order::scalar : order_of(f, shape, in, out);
    if (order == Order::scalar) return run_vector_scalar(f, in, out, lanes);

    OutputWriter writer(*kernel, f, shape, out);
    const ChunkProgram before(*kernel, f, in, shape.space, 0, f.pre_count);
    const std::size_t total = product(shape.space);
    if (static_cast<Reduce>(f.reduce) == Reduce::none) {
        const auto body = [&](std::size_t begin, std::size_t end) {
            const FtzScope ftz;
            run_elements(before, writer, begin * before.chunk(), std::min(total, end * before.chunk()));
        };
        const std::size_t chunks = (total + before.chunk() - 1) / before.chunk();
        if (order == Order::any) parallel_for(chunks, kGrainElems / before.chunk(), body);
        else body(0, chunks);
    } else {
        const ChunkProgram after(*kernel, f, in, shape.results, f.pre_count, f.pre_count + f.post_count);
        const auto body = [&](std::size_t begin, std::size_t end) {
            const FtzScope ftz;
            ChunkBuffers& buffers = chunk_buffers();
            Reducer reducer(*kernel, f, shape, in[2], out, after, writer, buffers);
            run_groups(before, after, reducer, buffers, shape, begin, end);
        };
        if (order == Order::any) parallel_for(shape.groups, std::max<std::size_t>(1, kGrainElems / shape.group), body);
        else body(0, shape.groups);
    }
    return {writer.saturated()};
}

}  // namespace assay::simkernel
