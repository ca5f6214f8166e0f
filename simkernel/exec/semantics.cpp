#include "simkernel/exec/semantics.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "simkernel/numerics/matrix.hpp"
#include "simkernel/numerics/vector.hpp"
#include "support/error.hpp"

namespace assay::simkernel {
namespace {

std::byte* at(LocalMemory& local, std::uint32_t addr) {
    const std::span<std::byte> bytes = local.range(addr, 1);
    ASSAY_CHECK(!bytes.empty(), "decode() admits no address outside local memory");
    return bytes.data();
}

/// Calls body(local offset, external offset) for each run, outermost dimension slowest; stops when it returns false.
template <class Fields, class Body>
bool for_each_run(const Fields& f, const Body& body) {
    for (std::uint32_t i3 = 0; i3 < f.count[3]; ++i3)
        for (std::uint32_t i2 = 0; i2 < f.count[2]; ++i2)
            for (std::uint32_t i1 = 0; i1 < f.count[1]; ++i1)
                for (std::uint32_t i0 = 0; i0 < f.count[0]; ++i0) {
                    const std::array<std::int64_t, 4> i{i0, i1, i2, i3};
                    if (!body(i)) return false;
                }
    return true;
}

template <class Strides>
std::int64_t offset(const std::array<std::int64_t, 4>& i, const Strides& strides) {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < 4; ++d)  // wraps like the hardware's 64-bit adders
        sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(i[d]) * static_cast<std::uint64_t>(std::int64_t{strides[d]}));
    return sum;
}

/// The list's words with negative ones counted from the limit; a word that is out of range stays outside [0, limit).
template <class Fields>
std::vector<std::int64_t> index_rows(const Fields& f, LocalMemory& local) {
    std::vector<std::int64_t> rows(f.count[0]);
    const std::byte* list = at(local, f.index_addr);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::int32_t word = 0;
        std::memcpy(&word, list + 4 * i, 4);
        rows[i] = word < 0 ? std::int64_t{word} + f.index_limit : word;
    }
    return rows;
}

/// Makes dense inner dimensions part of the run: fewer, longer copies with the same bytes.
template <class Fields>
Fields coalesced(Fields f) {
    if (f.index_enable) return f;
    for (std::size_t d = 0; d < 4; ++d) {
        if (f.count[0] == 1) {
            std::rotate(f.count.begin(), f.count.begin() + 1, f.count.end());
            std::rotate(f.ext_stride.begin(), f.ext_stride.begin() + 1, f.ext_stride.end());
            std::rotate(f.local_stride.begin(), f.local_stride.begin() + 1, f.local_stride.end());
            continue;
        }
        const std::uint64_t run = std::uint64_t{f.run_bytes} * f.count[0];
        if (f.local_stride[0] != static_cast<std::int64_t>(f.run_bytes) || f.ext_stride[0] != static_cast<std::int64_t>(f.run_bytes) || run > UINT32_MAX) break;
        f.run_bytes = static_cast<std::uint32_t>(run);
        f.count[0] = 1;
    }
    return f;
}

template <class Fields, class Move>
Fault transfer(const Fields& original, LocalMemory& local, const Move& move) {
    const Fields f = coalesced(original);
    std::byte* base = at(local, f.local_addr);
    Fault fault;
    std::vector<std::int64_t> rows;
    if (f.index_enable) {
        rows = index_rows(f, local);
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (rows[i] < 0 || rows[i] >= f.index_limit)
                return {ErrorCode::illegal_address, f.index_addr + 4 * i,
                        fmt::format("index {} of {}: {} rows to choose from", i, rows[i] < 0 ? rows[i] - f.index_limit : rows[i], f.index_limit)};
    }
    for_each_run(f, [&](const std::array<std::int64_t, 4>& i) {
        std::array<std::int64_t, 4> place = i;
        if (f.index_enable) place[0] = rows[static_cast<std::size_t>(i[0])];
        const std::uint64_t ext = f.ext_addr + static_cast<std::uint64_t>(offset(place, f.ext_stride));
        if (move(ext, std::span(base + offset(i, f.local_stride), f.run_bytes))) return true;
        fault = {ErrorCode::illegal_address, ext, fmt::format("ext_addr: {} bytes at {:#x} are outside device memory", f.run_bytes, ext)};
        return false;
    });
    return fault;
}

struct Executor {
    LocalMemory& local;
    ExternalMemory& external;
    const ChipConfig& config;
    Effect effect;

    void operator()(const std::monostate&) {}
    void operator()(const LoadFields& f) {
        effect.fault = transfer(f, local, [&](std::uint64_t ext, std::span<std::byte> to) { return external.read(ext, to); });
    }
    void operator()(const StoreFields& f) {
        effect.fault = transfer(f, local, [&](std::uint64_t ext, std::span<std::byte> from) { return external.write(ext, from); });
    }
    void operator()(const FillFields& f) {
        std::byte* base = at(local, f.local_addr);
        for_each_run(f, [&](const std::array<std::int64_t, 4>& i) {
            std::byte* to = base + offset(i, f.local_stride);
            const std::uint32_t first = f.pattern & 0xFFu;
            const bool one_byte = f.pattern_bytes == 1 || f.pattern == first * (f.pattern_bytes == 2 ? 0x0101u : 0x0101'0101u);
            if (one_byte) std::memset(to, static_cast<int>(first), f.run_bytes);
            else
                for (std::uint32_t b = 0; b < f.run_bytes; b += f.pattern_bytes) std::memcpy(to + b, &f.pattern, f.pattern_bytes);
            return true;
        });
    }
    void operator()(const MatmulFields& f) { run_matmul(f, at(local, f.a_addr), at(local, f.w_addr), at(local, f.acc_addr)); }
    void operator()(const VectorFields& f) {
        std::array<const std::byte*, 3> in{};
        for (std::size_t i = 0; i < 3; ++i)
            if (f.in_used >> i & 1 || (i == 2 && f.carry_in)) in[i] = at(local, f.in_addr[i]);
        effect.saturated = run_vector(f, in, at(local, f.out_addr), static_cast<int>(config.vpu_lanes)).saturated;
    }
};

struct Work {
    std::uint64_t operator()(const std::monostate&) const { return 0; }
    template <class Fields>
    std::uint64_t operator()(const Fields& f) const {
        std::uint64_t bytes = f.run_bytes;
        for (const std::uint32_t n : f.count) bytes *= n;
        return bytes;
    }
    std::uint64_t operator()(const MatmulFields& f) const { return matmul_macs(f); }
    std::uint64_t operator()(const VectorFields& f) const {
        std::uint64_t elements = 1;
        for (const std::uint32_t n : f.count) elements *= n;
        return elements * std::max<std::uint32_t>(f.pre_count, 1);
    }
};

}  // namespace

Effect execute(const Decoded& decoded, LocalMemory& local, ExternalMemory& external, const ChipConfig& config) {
    Executor executor{local, external, config, {}};
    std::visit(executor, decoded.op);
    executor.effect.work = work_of(decoded);
    return std::move(executor.effect);
}

bool is_indexed(const Decoded& decoded) {
    if (const auto* load = std::get_if<LoadFields>(&decoded.op)) return load->index_enable != 0;
    if (const auto* store = std::get_if<StoreFields>(&decoded.op)) return store->index_enable != 0;
    return false;
}

std::vector<std::int64_t> transfer_rows(const Decoded& decoded, LocalMemory& local) {
    if (const auto* load = std::get_if<LoadFields>(&decoded.op); load && load->index_enable) return index_rows(*load, local);
    if (const auto* store = std::get_if<StoreFields>(&decoded.op); store && store->index_enable) return index_rows(*store, local);
    return {};
}

std::uint64_t work_of(const Decoded& decoded) { return std::visit(Work{}, decoded.op); }

}  // namespace assay::simkernel
