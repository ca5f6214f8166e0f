#include "simkernel/exec/decode.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace assay::simkernel {
namespace {

__extension__ using Wide = __int128;  // no sum of count * stride can overflow it

/// Checks fields in order and keeps the first fault.
class Checker {
public:
    explicit Checker(const ChipConfig& config) : config_(config) {}

    /// Texts are strings or functions that make one: most descriptors are right, and formatting would cost more than checking.
    template <class Text>
    void require(bool holds, ErrorCode code, const Text& text, std::uint64_t address = 0) {
        if (!holds && !fault_) fault_ = {code, address, made(text)};
    }
    template <class Name, class Allowed>
    void field(bool holds, const Name& name, std::uint64_t got, const Allowed& allowed) {
        if (!holds) require(false, ErrorCode::malformed_descriptor, fmt::format("{} = {}: must be {}", made(name), got, made(allowed)));
    }
    void counts(std::span<const std::uint32_t> counts, std::string_view name) {
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (counts[i] == 0) field(false, fmt::format("{}[{}]", name, i), 0, "at least 1");
    }
    /// [addr + sum of negative reaches, addr + sum of positive reaches + run) must lie in the SRAM that bit 31 selects.
    void local(std::string_view name, std::uint32_t addr, std::uint64_t run, std::span<const std::uint32_t> counts,
               std::span<const std::int32_t> strides) {
        Wide low = addr & ~kAccBit;
        Wide high = low + run;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const Wide reach = static_cast<Wide>(counts[i] - 1) * strides[i];
            (reach < 0 ? low : high) += reach;
        }
        const bool acc = addr & kAccBit;
        const std::int64_t size = acc ? config_.acc_bytes : config_.spm_bytes;
        if (low < 0 || high > size)
            require(false, ErrorCode::illegal_address,
                    fmt::format("{}: reaches [{}, {}) of the {}, which holds {} bytes", name, static_cast<std::int64_t>(low),
                                static_cast<std::int64_t>(std::min<Wide>(high, INT64_MAX)), acc ? "accumulator" : "scratchpad", size),
                    addr);
    }
    void aligned(std::string_view name, std::uint32_t addr, std::span<const std::int32_t> strides, std::size_t size) {
        bool holds = addr % size == 0;
        for (const std::int32_t stride : strides) holds = holds && stride % static_cast<std::int64_t>(size) == 0;
        if (!holds)
            require(false, ErrorCode::misaligned, fmt::format("{}: address and strides must be multiples of {} bytes", name, size), addr);
    }
    const ChipConfig& config() const { return config_; }
    Fault take() { return std::move(fault_); }

private:
    template <class Text>
    static std::string made(const Text& text) {
        if constexpr (std::is_invocable_v<Text>) return text();
        else return std::string(text);
    }

    const ChipConfig& config_;
    Fault fault_;
};

template <class Fields>
void check_transfer(Checker& c, const Fields& f) {
    c.counts(f.count, "count");
    c.field(f.run_bytes >= 1, "run_bytes", f.run_bytes, "at least 1");
    std::uint64_t runs = 1;
    bool fits = true;
    for (const std::uint32_t n : f.count) fits = fits && !__builtin_mul_overflow(runs, std::uint64_t{n}, &runs) && runs <= kMaxDmaRuns;
    c.require(fits && runs * f.run_bytes <= kMaxDmaBytes, ErrorCode::malformed_descriptor,
              [&] { return fmt::format("count: more than {} runs or {} bytes in one descriptor", kMaxDmaRuns, kMaxDmaBytes); });
    c.local("local_addr", f.local_addr, f.run_bytes, f.count, f.local_stride);
}

/// The list lies in the scratchpad, and the table that it chooses from is no larger than what a descriptor may move: the sanitizer walks it.
template <class Fields>
void check_index(Checker& c, const Fields& f) {
    if (!f.index_enable) {
        c.field(f.index_addr == 0, "index_addr", f.index_addr, "0 without index_enable");
        c.field(f.index_limit == 0, "index_limit", f.index_limit, "0 without index_enable");
        return;
    }
    c.field(f.index_limit >= 1, "index_limit", f.index_limit, "at least 1");
    c.field(!(f.index_addr & kAccBit), "index_addr", f.index_addr, "a scratchpad address");
    c.aligned("index_addr", f.index_addr, {}, 4);
    c.local("index_addr", f.index_addr, std::uint64_t{4} * f.count[0], {}, {});
    std::uint64_t runs = f.index_limit;
    bool fits = runs <= kMaxDmaRuns;
    for (std::size_t d = 1; d < 4; ++d) fits = fits && !__builtin_mul_overflow(runs, std::uint64_t{f.count[d]}, &runs) && runs <= kMaxDmaRuns;
    c.require(fits && runs * f.run_bytes <= kMaxDmaBytes, ErrorCode::malformed_descriptor,
              [&] { return fmt::format("index_limit: a table of more than {} runs or {} bytes", kMaxDmaRuns, kMaxDmaBytes); });
}

void check(Checker& c, const LoadFields& f) {
    check_transfer(c, f);
    check_index(c, f);
}
void check(Checker& c, const StoreFields& f) {
    check_transfer(c, f);
    check_index(c, f);
}

void check(Checker& c, const FillFields& f) {
    check_transfer(c, f);
    const bool size = f.pattern_bytes == 1 || f.pattern_bytes == 2 || f.pattern_bytes == 4;
    c.field(size, "pattern_bytes", f.pattern_bytes, "1, 2 or 4");
    c.field(!size || f.run_bytes % f.pattern_bytes == 0, "run_bytes", f.run_bytes, "a multiple of pattern_bytes");
    c.field(!size || f.pattern_bytes == 4 || f.pattern >> (8 * f.pattern_bytes) == 0, "pattern", f.pattern, "zero past pattern_bytes");
}

void check(Checker& c, const MatmulFields& f) {
    constexpr std::array kMatrixTypes{Dtype::i8, Dtype::bf16, Dtype::f16, Dtype::f8e4m3, Dtype::f8e5m2};
    const bool known = std::any_of(kMatrixTypes.begin(), kMatrixTypes.end(), [&](Dtype t) { return f.dtype == static_cast<std::uint32_t>(t); });
    c.field(known, "dtype", f.dtype, "i8, bf16, f16, f8e4m3 or f8e5m2");
    c.counts(f.m_count, "m_count");
    c.counts(f.k_count, "k_count");
    const auto rows = static_cast<std::uint64_t>(c.config().mxu_rows);
    const auto cols = static_cast<std::uint64_t>(c.config().mxu_cols);
    std::uint64_t k = 1;
    for (const std::uint32_t n : f.k_count) k = std::min<std::uint64_t>(k * std::min<std::uint64_t>(n, 1 << 20), 1 << 20);
    c.field(k <= rows, "k0*k1*k2", k, [&] { return fmt::format("at most mxu.rows = {}", rows); });
    c.field(f.n_count >= 1 && f.n_count <= cols, "n_count", f.n_count, [&] { return fmt::format("1 to mxu.cols = {}", cols); });
    std::uint64_t m = 1;
    for (const std::uint32_t n : f.m_count) m = std::min<std::uint64_t>(m * n, std::uint64_t{1} << 31);
    c.field(m < std::uint64_t{1} << 31, "m0*m1*m2", m, "less than 2^31");
    const bool grouped = f.group_k != 0;
    c.field(grouped || (f.group_n == 0 && f.group_period == 0), "group_k", f.group_k, "non-zero, or group_n and group_period zero");
    if (grouped) {
        c.field(f.group_n != 0, "group_n", f.group_n, "at least 1 in grouped mode");
        c.field(f.group_period != 0 && f.group_period % f.group_k == 0, "group_period", f.group_period, "a multiple of group_k");
    }
    c.field(!(f.a_addr & kAccBit), "a_addr", f.a_addr, "a scratchpad address");
    c.field(!(f.w_addr & kAccBit), "w_addr", f.w_addr, "a scratchpad address");
    c.field((f.acc_addr & kAccBit) != 0, "acc_addr", f.acc_addr, "an accumulator address");
    const std::size_t size = size_of(static_cast<Dtype>(f.dtype));
    c.field(f.w_stride >= f.n_count * size && f.w_stride <= INT32_MAX, "w_stride", f.w_stride, "at least n_count elements");
    c.field(f.acc_stride >= 4ull * f.n_count && f.acc_stride <= INT32_MAX, "acc_stride", f.acc_stride, "at least n_count words");
    c.aligned("a_addr", f.a_addr, f.a_m_stride, size);
    c.aligned("a_k_stride", 0, f.a_k_stride, size);
    const std::array<std::int32_t, 1> w_stride{static_cast<std::int32_t>(f.w_stride)};
    const std::array<std::int32_t, 1> acc_stride{static_cast<std::int32_t>(f.acc_stride)};
    c.aligned("w_addr", f.w_addr, w_stride, size);
    c.aligned("acc_addr", f.acc_addr & ~kAccBit, acc_stride, 4);
    const std::array<std::uint32_t, 5> a_count{f.m_count[0], f.m_count[1], f.m_count[2], f.k_count[1], f.k_count[2]};
    const std::array<std::int32_t, 5> a_stride{f.a_m_stride[0], f.a_m_stride[1], f.a_m_stride[2], f.a_k_stride[0], f.a_k_stride[1]};
    c.local("a_addr", f.a_addr, f.k_count[0] * size, a_count, a_stride);
    const std::array<std::uint32_t, 1> w_count{static_cast<std::uint32_t>(k)};
    c.local("w_addr", f.w_addr, f.n_count * size, w_count, w_stride);
    const std::array<std::uint32_t, 1> acc_count{static_cast<std::uint32_t>(m)};
    c.local("acc_addr", f.acc_addr, 4ull * f.n_count, acc_count, acc_stride);
}

/// Extent of a stream as bytes [low, high) within its SRAM.
struct Box {
    bool acc;
    Wide low, high;
};

Box box_of(std::uint32_t addr, std::uint64_t run, std::span<const std::uint32_t> counts, std::span<const std::int32_t> strides) {
    Box box{(addr & kAccBit) != 0, addr & ~kAccBit, 0};
    box.high = box.low + run;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const Wide reach = static_cast<Wide>(counts[i] - 1) * strides[i];
        (reach < 0 ? box.low : box.high) += reach;
    }
    return box;
}

bool overlap(const Box& a, const Box& b) { return a.acc == b.acc && a.low < b.high && b.low < a.high; }

bool known(Uop op) { return name_of(op) != "?"; }

void check_uops(Checker& c, const VectorFields& f, unsigned used_streams) {
    const unsigned total = f.pre_count + f.post_count;
    c.field(total <= f.uop.size(), "pre_count + post_count", total, [&] { return fmt::format("at most {}", f.uop.size()); });
    for (unsigned i = 0; i < f.uop.size(); ++i) {
        const std::uint32_t word = f.uop[i];
        if (i >= total) {
            c.field(word == 0, [&] { return fmt::format("uop[{}]", i); }, word, "zero past the micro-program");
            continue;
        }
        const auto op = static_cast<Uop>(word & 0xFF);
        c.field(known(op), [&] { return fmt::format("uop[{}] operation", i); }, word & 0xFF, "a known micro-operation");
        c.field(word >> 27 == 0, [&] { return fmt::format("uop[{}]", i); }, word, "zero in bits 31:27");
        for (const unsigned shift : {12u, 17u, 22u}) {
            const unsigned selector = word >> shift & 31;
            c.field(selector < 27, [&] { return fmt::format("uop[{}] operand", i); }, selector, "less than 27");
            if (selector >= 24 && selector < 27)
                c.field(used_streams >> (selector - 24) & 1, [&] { return fmt::format("uop[{}] operand", i); }, selector, "a stream that in_used names");
        }
    }
}

void check(Checker& c, const VectorFields& f) {
    c.counts(f.count, "count");
    const auto is_dtype = [](std::uint32_t type) { return type <= static_cast<std::uint32_t>(Dtype::f8e5m2); };
    for (std::size_t i = 0; i < 3; ++i) c.field(is_dtype(f.in_type[i]), [&] { return fmt::format("in_type[{}]", i); }, f.in_type[i], "a known dtype");
    c.field(is_dtype(f.out_type), "out_type", f.out_type, "a known dtype");
    const bool f8_out = f.out_type == static_cast<std::uint32_t>(Dtype::f8e4m3) || f.out_type == static_cast<std::uint32_t>(Dtype::f8e5m2);
    c.field(f8_out || f.f8_overflow == 0, "f8_overflow", f.f8_overflow, "0 unless out_type is an f8");
    c.field(f.reduce <= static_cast<std::uint32_t>(Reduce::min_i32), "reduce", f.reduce, "a known reduction");
    const bool reduces = f.reduce != static_cast<std::uint32_t>(Reduce::none);
    c.field(reduces || (f.reduce_dims == 0 && !f.reduce_lanes && !f.carry_in && !f.carry_out && f.post_count == 0), "reduce", f.reduce,
            "set when a reduction field is");
    c.field(!reduces || f.reduce_dims > 0 || f.reduce_lanes, "reduce_dims", f.reduce_dims, "at least 1 unless lanes reduce");
    c.field(f.reduce_dims <= 4, "reduce_dims", f.reduce_dims, "at most 4");
    c.field(!f.carry_out || f.post_count == 0, "post_count", f.post_count, "0 when partials are carried out");
    c.field(!f.carry_in || !(f.in_used & 4), "in_used", f.in_used, "without in2 when partials are carried in");
    std::uint64_t elements = 1;
    for (const std::uint32_t n : f.count) elements = std::min<std::uint64_t>(elements * n, std::uint64_t{1} << 31);
    c.field(elements <= kMaxVectorElements, "count", elements, [&] { return fmt::format("at most {} elements in all", kMaxVectorElements); });
    check_uops(c, f, f.in_used);
    if (Fault fault = c.take()) {  // the ranges below need sound counts
        c.require(false, fault.code, fault.text, fault.address);
        return;
    }
    const std::array<std::span<const std::int32_t>, 3> strides{f.in0_stride, f.in1_stride, f.in2_stride};
    const std::size_t out_size = f.carry_out ? 4 : size_of(static_cast<Dtype>(f.out_type));
    // The dimensions that the output has: reduced ones are 1 there.
    std::array<std::uint32_t, 5> out_count = f.count;
    for (unsigned i = 1; i <= f.reduce_dims; ++i) out_count[i] = 1;
    const std::uint32_t live = f.reduce_lanes ? std::min<std::uint32_t>(f.count[0], static_cast<std::uint32_t>(c.config().vpu_lanes)) : f.count[0];
    std::uint64_t out_run = out_size;
    if (f.reduce_lanes || f.carry_out) out_count[0] = 1;
    if (f.carry_out) out_run = std::uint64_t{4} * live;
    for (unsigned i = 0; i < 5; ++i) {
        const bool reduced = (i >= 1 && i <= f.reduce_dims) || (i == 0 && (f.reduce_lanes || f.carry_out));
        if (reduced) c.field(f.out_stride[i] == 0, [&] { return fmt::format("out_stride[{}]", i); }, static_cast<std::uint32_t>(f.out_stride[i]), "0 for a reduced dimension");
        else c.field(out_count[i] == 1 || f.out_stride[i] != 0, [&] { return fmt::format("out_stride[{}]", i); }, 0, "non-zero where count is above 1");
    }
    c.aligned("out_addr", f.out_addr & ~kAccBit, f.out_stride, out_size);
    c.local("out_addr", f.out_addr, out_run, out_count, f.out_stride);
    const Box out = box_of(f.out_addr, out_run, out_count, f.out_stride);
    for (std::size_t i = 0; i < 3; ++i) {
        if (!(f.in_used >> i & 1)) continue;
        const std::size_t size = size_of(static_cast<Dtype>(f.in_type[i]));
        const std::string name = fmt::format("in_addr[{}]", i);
        c.aligned(name, f.in_addr[i] & ~kAccBit, strides[i], size);
        c.local(name, f.in_addr[i], size, f.count, strides[i]);
        bool same = !reduces && size == out_size && f.in_addr[i] == f.out_addr;
        for (std::size_t d = 0; d < 5; ++d) same = same && (f.count[d] == 1 || strides[i][d] == f.out_stride[d]);
        c.require(same || !overlap(box_of(f.in_addr[i], size, f.count, strides[i]), out), ErrorCode::malformed_descriptor,
                  [&] { return fmt::format("out overlaps in{}: they must be disjoint, or the same element for element without reduction", i); }, f.out_addr);
    }
    if (f.carry_in) {
        std::uint64_t results = 1;
        for (unsigned i = f.reduce_dims + 1; i < 5; ++i) results *= f.count[i];
        const std::uint64_t run = results * live * 4;
        c.aligned("in_addr[2]", f.in_addr[2] & ~kAccBit, {}, 4);
        c.local("in_addr[2]", f.in_addr[2], run, {}, {});
        const Box carried = box_of(f.in_addr[2], run, {}, {});
        c.require(!overlap(carried, out) || (f.carry_out && f.in_addr[2] == f.out_addr && results == 1), ErrorCode::malformed_descriptor,
                  "out overlaps the carried partials", f.out_addr);
    }
}

}  // namespace

SemaphoreId signalled(const CommonFields& c) { return {c.signal_shared ? SemaphoreId::kShared : c.core, c.signal_sem}; }
SemaphoreId awaited(const CommonFields& c, std::size_t wait) { return {c.wait_shared[wait] ? SemaphoreId::kShared : c.core, c.wait_sem[wait]}; }

std::string semaphore_name(SemaphoreId s, bool several_cores) {
    if (s.core == SemaphoreId::kShared) return fmt::format("shared semaphore {}", s.number);
    return several_cores ? fmt::format("semaphore {} of core {}", s.number, s.core) : fmt::format("semaphore {}", s.number);
}

std::string agent_name(std::size_t agent, bool several_cores) {
    const std::string_view engine = name_of(kAllEngine[agent % kAllEngine.size()]);
    return several_cores ? fmt::format("core {} {}", agent / kAllEngine.size(), engine) : std::string(engine);
}

std::size_t size_of(Dtype type) {
    switch (type) {
        case Dtype::i8: case Dtype::u8: case Dtype::f8e4m3: case Dtype::f8e5m2: return 1;
        case Dtype::bf16: case Dtype::f16: return 2;
        case Dtype::i32: case Dtype::f32: return 4;
    }
    return 1;
}

Fault decode(const DescriptorWords& words, const ChipConfig& config, Decoded& out) {
    Checker c(config);
    const std::uint32_t code = words[0] & 0xFF;
    const auto* info = std::find_if(kOpcodes.begin(), kOpcodes.end(), [&](const OpcodeInfo& i) { return static_cast<std::uint32_t>(i.opcode) == code; });
    if (info == kOpcodes.end()) return {ErrorCode::malformed_descriptor, 0, fmt::format("opcode = {}: unknown", code)};
    for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i] & info->reserved[i])
            return {ErrorCode::malformed_descriptor, 0, fmt::format("word {} = {:#010x}: reserved bits {:#010x} must be zero", i, words[i], info->reserved[i])};
    out.common = decode_common_fields(words);
    out.opcode = info->opcode;
    out.engine = info->engine;
    const auto below = [&](std::uint32_t got, std::int64_t limit, const auto& name, const char* what) {
        if (got >= static_cast<std::uint64_t>(limit)) c.field(false, name(), got, fmt::format("less than {} = {}", what, limit));
    };
    below(out.common.core, config.cores, [] { return std::string("core"); }, "cores");
    below(out.common.signal_sem, config.semaphores, [] { return std::string("signal_sem"); }, "semaphores");
    for (std::size_t i = 0; i < 4; ++i) below(out.common.wait_sem[i], config.semaphores, [&] { return fmt::format("wait_sem[{}]", i); }, "semaphores");
    const auto take = [&](auto fields) {
        out.op = fields;
        check(c, fields);
    };
    switch (info->opcode) {
        case Opcode::nop:
        case Opcode::sync: out.op = std::monostate{}; break;
        case Opcode::load: take(decode_load_fields(words)); break;
        case Opcode::fill: take(decode_fill_fields(words)); break;
        case Opcode::store: take(decode_store_fields(words)); break;
        case Opcode::matmul: take(decode_matmul_fields(words)); break;
        case Opcode::vector: take(decode_vector_fields(words)); break;
    }
    return c.take();
}

}  // namespace assay::simkernel
