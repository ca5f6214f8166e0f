#include "tests/rtl_models/mxu_harness.hpp"

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace assay::test {

using chip::Cycles;
using simkernel::MatmulFields;

simkernel::ChipConfig chip_config(int rows, int cols) {
    simkernel::ChipConfig config;
    config.name = "test";
    config.mxu_rows = rows;
    config.mxu_cols = cols;
    config.spm_bytes = FakeCore::kSpmBytes;
    config.acc_bytes = FakeCore::kAccBytes;
    return config;
}

void FakeCore::fill(std::mt19937& random) {
    // Half-words: a third random, the rest bf16 values whose products and sums stay in range, and specials.
    const auto half = [&]() -> std::uint16_t {
        const auto r = random();
        if (r % 3 == 0) return static_cast<std::uint16_t>(random());
        if (r % 64 == 1) return static_cast<std::uint16_t>((r >> 8 & 1) << 15 | 0x7F80);
        if (r % 32 == 2) return static_cast<std::uint16_t>((r >> 8 & 1) << 15);
        return static_cast<std::uint16_t>((r >> 8 & 1) << 15 | (0x3C00 + (r >> 9 & 0x7FF)));
    };
    for (auto* memory : {&spm_, &acc_})
        for (std::size_t i = 0; i < memory->size(); i += 2) {
            const std::uint16_t value = half();
            std::memcpy(memory->data() + i, &value, 2);
        }
}

chip::PortReply FakeCore::answer(Cycles at) {
    if (at < last_) throw std::logic_error("a request in the past: `at` must never decrease");
    last_ = at;
    const Cycles latency{static_cast<std::uint64_t>(config_.spm_latency_cycles)};
    if (!disturbed_) return {true, at + latency};
    if (random_() % 4 == 0) {
        ++refusals;
        return {};
    }
    return {true, at + latency + Cycles{random_() % 3 == 0 ? random_() % 20 : 0}};
}

chip::PortReply FakeCore::read_local(std::uint32_t addr, std::span<std::byte> out, Cycles at) {
    const auto& memory = addr & simkernel::kAccBit ? acc_ : spm_;
    const std::size_t offset = addr & ~simkernel::kAccBit;
    if (offset + out.size() > memory.size()) return {true, at, true};
    const chip::PortReply reply = answer(at);
    if (reply.accepted) std::memcpy(out.data(), memory.data() + offset, out.size());
    return reply;
}

chip::PortReply FakeCore::write_local(std::uint32_t addr, std::span<const std::byte> in, Cycles at) {
    auto& memory = addr & simkernel::kAccBit ? acc_ : spm_;
    const std::size_t offset = addr & ~simkernel::kAccBit;
    if (offset + in.size() > memory.size()) return {true, at, true};
    const chip::PortReply reply = answer(at);
    if (reply.accepted) std::memcpy(memory.data() + offset, in.data(), in.size());
    return reply;
}

chip::PortReply FakeCore::read_external(std::uint64_t, std::span<std::byte>, Cycles) { throw std::logic_error("external read"); }
chip::PortReply FakeCore::write_external(std::uint64_t, std::span<const std::byte>, Cycles) { throw std::logic_error("external write"); }
simkernel::LocalMemory& FakeCore::local() { throw std::logic_error("the RTL uses its ports"); }
simkernel::ExternalMemory& FakeCore::external() { throw std::logic_error("the RTL uses its ports"); }

namespace {

template <class T>
T load(const std::vector<std::byte>& memory, std::int64_t offset) {
    T value;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
}

float bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint32_t canonical(std::uint32_t bits) {
    if ((bits & 0x7FFF'FFFFu) > 0x7F80'0000u) return 0x7FC0'0000u;
    return (bits & 0x7F80'0000u) == 0 ? bits & 0x8000'0000u : bits;
}

}  // namespace

void reference(const MatmulFields& f, const std::vector<std::byte>& spm, std::vector<std::byte>& acc) {
    const bool is_bf16 = f.dtype == static_cast<std::uint32_t>(simkernel::Dtype::bf16);
    const std::int64_t size = is_bf16 ? 2 : 1;
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u);  // FTZ | DAZ
    std::int64_t m = 0;
    for (std::uint32_t m2 = 0; m2 < f.m_count[2]; ++m2)
        for (std::uint32_t m1 = 0; m1 < f.m_count[1]; ++m1)
            for (std::uint32_t m0 = 0; m0 < f.m_count[0]; ++m0, ++m)
                for (std::uint32_t n = 0; n < f.n_count; ++n) {
                    const std::int64_t at = static_cast<std::int64_t>(f.acc_addr & ~simkernel::kAccBit) + m * f.acc_stride + 4 * n;
                    std::uint32_t sum = f.accumulate ? load<std::uint32_t>(acc, at) : 0;
                    if (is_bf16) sum = canonical(sum);
                    std::int64_t k = 0;
                    for (std::uint32_t k2 = 0; k2 < f.k_count[2]; ++k2)
                        for (std::uint32_t k1 = 0; k1 < f.k_count[1]; ++k1)
                            for (std::uint32_t k0 = 0; k0 < f.k_count[0]; ++k0, ++k) {
                                if (f.group_k != 0 && (k % f.group_period) / f.group_k != n / f.group_n) continue;
                                const std::int64_t a = static_cast<std::int64_t>(f.a_addr) + std::int64_t{m0} * f.a_m_stride[0] +
                                                       std::int64_t{m1} * f.a_m_stride[1] + std::int64_t{m2} * f.a_m_stride[2] +
                                                       std::int64_t{k1} * f.a_k_stride[0] + std::int64_t{k2} * f.a_k_stride[1] + k0 * size;
                                const std::int64_t w = static_cast<std::int64_t>(f.w_addr) + k * f.w_stride + n * size;
                                if (is_bf16) {
                                    const volatile float x = bf16(load<std::uint16_t>(spm, a)), y = bf16(load<std::uint16_t>(spm, w));
                                    const volatile float r = std::fmaf(x, y, std::bit_cast<float>(sum));
                                    sum = canonical(std::bit_cast<std::uint32_t>(static_cast<float>(r)));
                                } else {
                                    sum += static_cast<std::uint32_t>(load<std::int8_t>(spm, a) * load<std::int8_t>(spm, w));
                                }
                            }
                    std::memcpy(acc.data() + at, &sum, 4);
                }
    _mm_setcsr(saved);
}

MatmulFields random_matmul(std::mt19937& random, int rows, int cols) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
        return static_cast<std::uint32_t>(low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)));
    };
    MatmulFields f;
    const bool is_bf16 = pick(0, 1) == 1;
    const std::uint32_t size = is_bf16 ? 2 : 1;
    f.dtype = static_cast<std::uint32_t>(is_bf16 ? simkernel::Dtype::bf16 : simkernel::Dtype::i8);
    f.accumulate = pick(0, 1);
    // K: a product of three; often the whole array.
    f.k_count = {pick(1, rows), 1, 1};
    if (pick(0, 2) == 0) f.k_count[0] = static_cast<std::uint32_t>(rows);
    if (pick(0, 2) == 0) {
        f.k_count[1] = pick(1, rows);
        f.k_count[2] = pick(1, rows / static_cast<int>(f.k_count[1]));
        f.k_count[0] = pick(1, rows / static_cast<int>(f.k_count[1] * f.k_count[2]));
    }
    f.m_count = {pick(1, 8), pick(0, 1) ? pick(1, 3) : 1, pick(0, 2) ? 1 : pick(1, 3)};
    f.n_count = pick(0, 1) ? static_cast<std::uint32_t>(cols) : pick(1, cols);
    f.w_stride = (f.n_count + pick(0, 8)) * size;
    f.acc_stride = 4 * (f.n_count + pick(0, 4));
    for (auto& stride : f.a_m_stride) stride = static_cast<std::int32_t>((pick(0, 128) - 64u) * size);
    for (auto& stride : f.a_k_stride) stride = static_cast<std::int32_t>((pick(0, 128) - 64u) * size);
    f.a_addr = static_cast<std::uint32_t>(FakeCore::kSpmBytes / 2) + pick(0, 63) * size;  // strides reach at most 3 KiB either way
    f.w_addr = pick(0, 1000) * size;
    f.acc_addr = simkernel::kAccBit | 4 * pick(0, 1000);
    if (pick(0, 2) == 0) {  // grouped: depthwise and small groups, groups beyond N or beyond K as well
        f.group_k = pick(1, 4);
        f.group_n = pick(1, 4);
        f.group_period = f.group_k * pick(1, 2 * rows / static_cast<int>(f.group_k) + 1);
    }
    return f;
}

simkernel::DescriptorWords words_of(const MatmulFields& f) {
    simkernel::DescriptorWords words{};
    simkernel::CommonFields common;
    common.opcode = static_cast<std::uint32_t>(simkernel::Opcode::matmul);
    encode(common, words);
    encode(f, words);
    return words;
}

std::string text(const MatmulFields& f) {
    std::string s = f.dtype == static_cast<std::uint32_t>(simkernel::Dtype::bf16) ? "bf16" : "i8";
    const auto add = [&](const char* name, auto value) { s += std::string(" ") + name + "=" + std::to_string(value); };
    add("accumulate", f.accumulate);
    for (const auto count : f.m_count) add("m", count);
    for (const auto count : f.k_count) add("k", count);
    add("n", f.n_count);
    for (const auto stride : f.a_m_stride) add("a_m_stride", stride);
    for (const auto stride : f.a_k_stride) add("a_k_stride", stride);
    add("w_stride", f.w_stride);
    add("acc_stride", f.acc_stride);
    add("group_k", f.group_k);
    add("group_n", f.group_n);
    add("group_period", f.group_period);
    return s;
}

Outcome run(chip::Unit& unit, const MatmulFields& f, Cycles start, std::uint64_t burst) {
    const auto words = words_of(f);
    simkernel::Decoded decoded;
    decoded.engine = simkernel::Engine::matrix;
    decoded.opcode = simkernel::Opcode::matmul;
    decoded.op = f;
    constexpr std::uint32_t kId = 7;
    if (!unit.offer(kId, decoded, words, start)) throw std::logic_error("an idle unit refused a descriptor");
    if (unit.offer(kId, decoded, words, start)) throw std::logic_error("a busy unit took a second descriptor");
    Outcome outcome;
    constexpr std::uint64_t kBudget = 1'000'000;  // the longest random descriptor is far below
    while (outcome.cycles.count < kBudget) {
        const chip::Advance a = unit.advance(Cycles{burst});
        if (a.ran > Cycles{burst}) throw std::logic_error("advance ran past its limit");
        outcome.cycles += a.ran;
        outcome.stall_memory += a.stall_memory;
        if (a.state == chip::UnitState::blocked) ++outcome.blocked;
        if (a.fault) throw std::logic_error("unexpected fault: " + a.fault.text);
        if (a.state == chip::UnitState::retired) {
            if (a.retired_id != kId) throw std::logic_error("another descriptor retired");
            return outcome;
        }
    }
    throw std::logic_error("the descriptor never retired: " + text(f));
}

}  // namespace assay::test
