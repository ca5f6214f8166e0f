// Text of descriptors for people.
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simkernel/exec/decode.hpp"
#include "simkernel/program.hpp"
#include "simkernel/types.hpp"

namespace assay::simkernel {
namespace {

std::string local(std::uint32_t addr) { return fmt::format("{}+{:#x}", addr & kAccBit ? "acc" : "spm", addr & ~kAccBit); }

/// "[4:+64 2:-128]": extents above 1 with their strides, innermost first.
template <class Counts, class Strides>
std::string dims(const Counts& counts, const Strides& strides) {
    std::string text;
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (counts[i] > 1) text += fmt::format("{}{}:{:+}", text.empty() ? "[" : " ", counts[i], strides[i]);
    return text.empty() ? "" : text + "]";
}

std::string operand(std::uint32_t selector, const VectorFields& f) {
    if (selector < 16) return fmt::format("v{}", selector);
    if (selector < 24) {
        const std::uint32_t raw = f.imm[selector - 16];
        const auto value = static_cast<std::int32_t>(raw);
        return value > -65536 && value < 65536 ? fmt::format("#{}", value) : fmt::format("#{}f", std::bit_cast<float>(raw));
    }
    return fmt::format("in{}", selector - 24);
}

unsigned operands(Uop op) {
    switch (op) {
        case Uop::fma_f32: case Uop::select: return 3;
        case Uop::mov: case Uop::sqrt_f32: case Uop::floor_f32: case Uop::round_f32: case Uop::recip_f32: case Uop::rsqrt_f32:
        case Uop::exp2_f32: case Uop::log2_f32: case Uop::to_bf16: case Uop::i32_to_f32: case Uop::f32_to_i32: return 1;
        default: return 2;
    }
}

/// " rows spm+0x40 of 32000": the index list of an indexed transfer.
template <class Fields>
std::string rows(const Fields& f) {
    return f.index_enable ? fmt::format(" rows {} of {}", local(f.index_addr), f.index_limit) : "";
}

struct Describe {
    std::string operator()(const std::monostate&) const { return ""; }
    std::string operator()(const LoadFields& f) const {
        return fmt::format("{} <- {:#x} run={} ext{} local{}{}", local(f.local_addr), f.ext_addr, f.run_bytes, dims(f.count, f.ext_stride), dims(f.count, f.local_stride),
                           rows(f));
    }
    std::string operator()(const StoreFields& f) const {
        return fmt::format("{:#x} <- {} run={} ext{} local{}{}", f.ext_addr, local(f.local_addr), f.run_bytes, dims(f.count, f.ext_stride), dims(f.count, f.local_stride),
                           rows(f));
    }
    std::string operator()(const FillFields& f) const {
        return fmt::format("{} <- {:#x}*{} run={} {}", local(f.local_addr), f.pattern, f.pattern_bytes, f.run_bytes, dims(f.count, f.local_stride));
    }
    std::string operator()(const MatmulFields& f) const {
        std::string text = fmt::format("{} {} {} a={} m{} k={}{} w={} pitch={} n={}", name_of(static_cast<Dtype>(f.dtype)), local(f.acc_addr),
                                       f.accumulate ? "+=" : "=", local(f.a_addr), dims(f.m_count, f.a_m_stride), f.k_count[0],
                                       dims(std::array{f.k_count[1], f.k_count[2]}, f.a_k_stride), local(f.w_addr), f.w_stride, f.n_count);
        if (f.group_k) text += fmt::format(" groups k={} n={} period={}", f.group_k, f.group_n, f.group_period);
        return text;
    }
    std::string operator()(const VectorFields& f) const {
        const std::array<const std::array<std::int32_t, 5>*, 3> strides{&f.in0_stride, &f.in1_stride, &f.in2_stride};
        std::string text = fmt::format("{}:{} n=[{}]{}", local(f.out_addr), name_of(static_cast<Dtype>(f.out_type)), fmt::join(f.count, " "), dims(f.count, f.out_stride));
        for (std::size_t i = 0; i < 3; ++i)
            if (f.in_used >> i & 1) text += fmt::format(" in{}={}:{}{}", i, local(f.in_addr[i]), name_of(static_cast<Dtype>(f.in_type[i])), dims(f.count, *strides[i]));
        if (f.reduce) text += fmt::format(" reduce={} dims={}{}{}{}", name_of(static_cast<Reduce>(f.reduce)), f.reduce_dims, f.reduce_lanes ? " lanes" : "",
                                          f.carry_in ? " carry_in" : "", f.carry_out ? " carry_out" : "");
        text += " {";
        for (unsigned i = 0; i < f.pre_count + f.post_count && i < f.uop.size(); ++i) {
            const std::uint32_t word = f.uop[i];
            const auto op = static_cast<Uop>(word & 0xFF);
            text += fmt::format("{}{} v{}", i == 0 ? "" : i == f.pre_count ? " | " : "; ", name_of(op), word >> 8 & 15);
            for (unsigned o = 0; o < operands(op); ++o) text += fmt::format(" {}", operand(word >> (12 + 5 * o) & 31, f));
        }
        return text + "}";
    }
};

}  // namespace

std::string disassemble(std::uint32_t index, const DescriptorWords& words) {
    const std::uint32_t code = words[0] & 0xFF;
    std::string body;
    switch (static_cast<Opcode>(code)) {
        case Opcode::nop:
        case Opcode::sync: break;
        case Opcode::load: body = Describe{}(decode_load_fields(words)); break;
        case Opcode::fill: body = Describe{}(decode_fill_fields(words)); break;
        case Opcode::store: body = Describe{}(decode_store_fields(words)); break;
        case Opcode::matmul: body = Describe{}(decode_matmul_fields(words)); break;
        case Opcode::vector: body = Describe{}(decode_vector_fields(words)); break;
        default: return fmt::format("{:6} ? opcode {}", index, code);
    }
    const CommonFields common = decode_common_fields(words);
    std::string text = fmt::format("{:6} {:<6} {}", index, name_of(static_cast<Opcode>(code)), body);
    if (common.core) text = fmt::format("{:6} c{} {:<6} {}", index, common.core, name_of(static_cast<Opcode>(code)), body);
    const auto semaphore = [](std::uint32_t shared, std::uint32_t number) { return fmt::format("{}{}", shared ? "S" : "s", number); };
    for (std::size_t w = 0; w < 4; ++w)
        if (common.wait_value[w]) text += fmt::format(" wait {}>={}", semaphore(common.wait_shared[w], common.wait_sem[w]), common.wait_value[w]);
    if (common.signal_add) text += fmt::format(" signal {}+{}", semaphore(common.signal_shared, common.signal_sem), common.signal_add);
    return text;
}

}  // namespace assay::simkernel
