// The exact byte ranges that a descriptor reads and writes.
#include <algorithm>

#include "simkernel/exec/decode.hpp"

namespace assay::simkernel {
namespace {

using Space = AccessRange::Space;

AccessRange local_range(std::uint32_t addr, bool write, std::uint64_t run) {
    AccessRange range;
    range.space = addr & kAccBit ? Space::acc : Space::spm;
    range.write = write;
    range.base = addr & ~kAccBit;
    range.run = run;
    return range;
}

template <class Counts, class Strides>
void add_dims(AccessRange& range, const Counts& counts, const Strides& strides) {
    for (std::size_t i = counts.size(); i-- > 0;)
        if (counts[i] > 1 && strides[i] != 0) range.dims.emplace_back(counts[i], strides[i]);
}

/// Merges a dense innermost dimension into the run, so that contiguous data is one run.
void coalesce(AccessRange& range) {
    while (!range.dims.empty() && range.dims.back().second == static_cast<std::int64_t>(range.run)) {
        range.run *= range.dims.back().first;
        range.dims.pop_back();
    }
}

template <class Fields>
std::vector<AccessRange> transfer(const Fields& f, bool to_local) {
    AccessRange local = local_range(f.local_addr, to_local, f.run_bytes);
    add_dims(local, f.count, f.local_stride);
    AccessRange ext;
    ext.space = Space::ext;
    ext.write = !to_local;
    ext.base = f.ext_addr;
    ext.run = f.run_bytes;
    // Which rows an indexed transfer touches is known at run time only: the whole table counts.
    std::array<std::uint32_t, 4> rows = f.count;
    if (f.index_enable) rows[0] = f.index_limit;
    add_dims(ext, rows, f.ext_stride);
    if (f.index_enable) return {local_range(f.index_addr, false, std::uint64_t{4} * f.count[0]), local, ext};
    return {local, ext};
}

std::vector<AccessRange> ranges(const std::monostate&, const ChipConfig&) { return {}; }
std::vector<AccessRange> ranges(const LoadFields& f, const ChipConfig&) { return transfer(f, true); }
std::vector<AccessRange> ranges(const StoreFields& f, const ChipConfig&) { return transfer(f, false); }

std::vector<AccessRange> ranges(const FillFields& f, const ChipConfig&) {
    AccessRange local = local_range(f.local_addr, true, f.run_bytes);
    add_dims(local, f.count, f.local_stride);
    return {local};
}

std::vector<AccessRange> ranges(const MatmulFields& f, const ChipConfig&) {
    const std::uint64_t size = size_of(static_cast<Dtype>(f.dtype));
    AccessRange a = local_range(f.a_addr, false, f.k_count[0] * size);
    add_dims(a, f.m_count, f.a_m_stride);
    add_dims(a, std::array{f.k_count[1], f.k_count[2]}, f.a_k_stride);
    const std::uint64_t k = std::uint64_t{f.k_count[0]} * f.k_count[1] * f.k_count[2];
    const std::uint64_t m = std::uint64_t{f.m_count[0]} * f.m_count[1] * f.m_count[2];
    AccessRange w = local_range(f.w_addr, false, f.n_count * size);
    if (k > 1) w.dims.emplace_back(k, f.w_stride);
    AccessRange acc = local_range(f.acc_addr, true, std::uint64_t{4} * f.n_count);
    if (m > 1) acc.dims.emplace_back(m, f.acc_stride);
    std::vector<AccessRange> all{a, w, acc};
    if (f.accumulate) {
        acc.write = false;
        all.push_back(acc);
    }
    return all;
}

std::vector<AccessRange> ranges(const VectorFields& f, const ChipConfig& config) {
    std::vector<AccessRange> all;
    all.reserve(5);
    const std::array<const std::array<std::int32_t, 5>*, 3> strides{&f.in0_stride, &f.in1_stride, &f.in2_stride};
    for (std::size_t i = 0; i < 3; ++i) {
        if (!(f.in_used >> i & 1)) continue;
        AccessRange in = local_range(f.in_addr[i], false, size_of(static_cast<Dtype>(f.in_type[i])));
        add_dims(in, f.count, *strides[i]);
        all.push_back(in);
    }
    const std::uint64_t live = f.reduce_lanes ? std::min<std::uint64_t>(f.count[0], static_cast<std::uint64_t>(config.vpu_lanes)) : f.count[0];
    if (f.carry_in) {
        std::uint64_t results = 1;
        for (unsigned i = f.reduce_dims + 1; i < 5; ++i) results *= f.count[i];
        all.push_back(local_range(f.in_addr[2], false, results * live * 4));
    }
    AccessRange out = local_range(f.out_addr, true, f.carry_out ? live * 4 : size_of(static_cast<Dtype>(f.out_type)));
    add_dims(out, f.count, f.out_stride);  // strides of reduced dimensions are zero
    all.push_back(out);
    return all;
}

}  // namespace

std::vector<AccessRange> accesses(const Decoded& decoded, const ChipConfig& config) {
    std::vector<AccessRange> all = std::visit([&](const auto& f) { return ranges(f, config); }, decoded.op);
    for (AccessRange& range : all) coalesce(range);
    return all;
}

}  // namespace assay::simkernel
