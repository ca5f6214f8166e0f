#include "workloads/schedule/dma.hpp"

#include <functional>

#include "support/error.hpp"

namespace assay::workloads {
namespace {

struct Box {
    std::uint32_t run = 0;
    std::vector<DmaDim> dims;
};

/// Drops extents of 1 and merges what is contiguous on both sides.
Box merge(std::uint32_t size, const std::vector<DmaDim>& dims, bool external) {
    Box box{size, {}};
    for (const DmaDim& d : dims) {
        if (d.extent == 1) continue;
        ASSAY_CHECK(d.extent >= 1, "a transfer has no empty dimension");
        if (box.dims.empty() && d.local_stride == box.run && (!external || d.ext_stride == box.run)) {
            box.run = static_cast<std::uint32_t>(box.run * d.extent);
        } else if (!box.dims.empty() && box.dims.back().local_stride * box.dims.back().extent == d.local_stride &&
                   (!external || box.dims.back().ext_stride * box.dims.back().extent == d.ext_stride)) {
            box.dims.back().extent *= d.extent;
        } else {
            box.dims.push_back(d);
        }
    }
    return box;
}

template <class Fields>
void fill_fields(Fields& f, const Box& box, std::size_t used, std::int64_t local) {
    f.local_addr = static_cast<std::uint32_t>(local);
    f.run_bytes = box.run;
    for (std::size_t i = 0; i < 4; ++i) {
        f.count[i] = i < used ? static_cast<std::uint32_t>(box.dims[i].extent) : 1;
        f.local_stride[i] = i < used ? static_cast<std::int32_t>(box.dims[i].local_stride) : 0;
    }
}

/// Calls body(ext offset, local offset) for each index of the dimensions past the fourth.
void each_outer(const Box& box, std::size_t dim, std::int64_t ext, std::int64_t local,
                const std::function<void(std::int64_t, std::int64_t)>& body) {
    if (dim >= box.dims.size()) return body(ext, local);
    for (std::int64_t i = 0; i < box.dims[dim].extent; ++i)
        each_outer(box, dim + 1, ext + i * box.dims[dim].ext_stride, local + i * box.dims[dim].local_stride, body);
}

template <class Fields>
void transfer(Emitter& emitter, std::uint64_t ext_addr, std::uint32_t local_addr, std::uint32_t size, const std::vector<DmaDim>& dims) {
    const Box box = merge(size, dims, true);
    const std::size_t used = std::min<std::size_t>(4, box.dims.size());
    each_outer(box, 4, 0, 0, [&](std::int64_t ext, std::int64_t local) {
        Fields f;
        f.ext_addr = ext_addr + static_cast<std::uint64_t>(ext);
        for (std::size_t i = 0; i < used; ++i) f.ext_stride[i] = box.dims[i].ext_stride;
        fill_fields(f, box, used, local_addr + local);
        emitter.emit(f);
    });
}

}  // namespace

void emit_load(Emitter& emitter, std::uint64_t ext_addr, std::uint32_t local_addr, std::uint32_t size, std::vector<DmaDim> dims) {
    transfer<simkernel::LoadFields>(emitter, ext_addr, local_addr, size, dims);
}

void emit_store(Emitter& emitter, std::uint64_t ext_addr, std::uint32_t local_addr, std::uint32_t size, std::vector<DmaDim> dims) {
    transfer<simkernel::StoreFields>(emitter, ext_addr, local_addr, size, dims);
}

void emit_fill(Emitter& emitter, std::uint32_t local_addr, std::uint32_t pattern, std::uint32_t size, std::vector<DmaDim> dims) {
    const Box box = merge(size, dims, false);
    const std::size_t used = std::min<std::size_t>(4, box.dims.size());
    each_outer(box, 4, 0, 0, [&](std::int64_t, std::int64_t local) {
        simkernel::FillFields f;
        fill_fields(f, box, used, local_addr + local);
        f.pattern = pattern;
        f.pattern_bytes = size;
        emitter.emit(f);
    });
}

}  // namespace assay::workloads
