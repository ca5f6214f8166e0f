#pragma once
// Small hand-made programs for tests, on aurum-nano's geometry unless told otherwise.
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/chip_config.hpp"
#include "simkernel/numerics/vector.hpp"
#include "simkernel/types.hpp"

namespace assay::simkernel::testing {

inline ChipConfig nano() { return load_chip_config(ASSAY_SOURCE_DIR "/configs/aurum-nano.toml"); }

template <class Fields>
DescriptorWords descriptor(Opcode opcode, const Fields& fields) {
    DescriptorWords words{};
    words[0] = static_cast<std::uint32_t>(opcode);
    encode(fields, words);
    return words;
}

struct Wait {
    std::uint32_t sem, value;
};

inline void add_waits(DescriptorWords& words, std::vector<Wait> waits) {
    CommonFields common = decode_common_fields(words);
    for (std::size_t i = 0; i < waits.size(); ++i) {
        common.wait_sem[i] = waits[i].sem;
        common.wait_value[i] = waits[i].value;
    }
    encode(common, words);
}

inline void add_signal(DescriptorWords& words, std::uint32_t sem, std::uint32_t add = 1) {
    CommonFields common = decode_common_fields(words);
    common.signal_sem = sem;
    common.signal_add = add;
    encode(common, words);
}

inline void set_core(DescriptorWords& words, std::uint32_t core) {
    CommonFields common = decode_common_fields(words);
    common.core = core;
    encode(common, words);
}
inline void share_signal(DescriptorWords& words) {
    CommonFields common = decode_common_fields(words);
    common.signal_shared = 1;
    encode(common, words);
}
inline void share_wait(DescriptorWords& words, std::size_t wait, bool shared = true) {
    CommonFields common = decode_common_fields(words);
    common.wait_shared[wait] = shared;
    encode(common, words);
}
inline void unshare_wait(DescriptorWords& words, std::size_t wait) { share_wait(words, wait, false); }

inline DescriptorWords load(std::uint64_t ext, std::uint32_t local, std::uint32_t bytes) {
    LoadFields f;
    f.ext_addr = ext;
    f.local_addr = local;
    f.run_bytes = bytes;
    f.count = {1, 1, 1, 1};
    return descriptor(Opcode::load, f);
}

inline DescriptorWords store(std::uint64_t ext, std::uint32_t local, std::uint32_t bytes) {
    StoreFields f;
    f.ext_addr = ext;
    f.local_addr = local;
    f.run_bytes = bytes;
    f.count = {1, 1, 1, 1};
    return descriptor(Opcode::store, f);
}

/// int8 M x K by K x N, activations and weights dense.
inline DescriptorWords matmul(std::uint32_t m, std::uint32_t k, std::uint32_t n, std::uint32_t a, std::uint32_t w, std::uint32_t acc) {
    MatmulFields f;
    f.a_addr = a;
    f.w_addr = w;
    f.w_stride = n;
    f.acc_addr = acc | kAccBit;
    f.acc_stride = 4 * n;
    f.m_count = {m, 1, 1};
    f.a_m_stride = {static_cast<std::int32_t>(k), 0, 0};
    f.k_count = {k, 1, 1};
    f.n_count = n;
    return descriptor(Opcode::matmul, f);
}

/// Copies `count` int32 words from the accumulator to the scratchpad.
inline DescriptorWords drain(std::uint32_t count, std::uint32_t acc, std::uint32_t to) {
    VectorFields f;
    f.pre_count = 1;
    f.in_type = {static_cast<std::uint32_t>(Dtype::i32), 0, 0};
    f.out_type = static_cast<std::uint32_t>(Dtype::i32);
    f.in_used = 1;
    f.count = {count, 1, 1, 1, 1};
    f.in_addr = {acc | kAccBit, 0, 0};
    f.out_addr = to;
    f.in0_stride = {4, 0, 0, 0, 0};
    f.out_stride = {4, 0, 0, 0, 0};
    f.uop[0] = encode_uop(Uop::mov, 0, kUopIn);
    return descriptor(Opcode::vector, f);
}

/// load a and w, matmul, drain, store: semaphores 0 load, 2 matrix, 3 vector.
inline std::vector<DescriptorWords> gemm_program(std::uint32_t m, std::uint32_t k, std::uint32_t n) {
    std::vector<DescriptorWords> p{load(0x1000, 0, m * k), load(0x2000, 0x4000, k * n), matmul(m, k, n, 0, 0x4000, 0),
                                   drain(m * n, 0, 0x8000), store(0x3000, 0x8000, 4 * m * n)};
    add_signal(p[1], 0);
    add_waits(p[2], {{0, 1}});
    add_signal(p[2], 2);
    add_waits(p[3], {{2, 1}});
    add_signal(p[3], 3);
    add_waits(p[4], {{3, 1}});
    return p;
}

}  // namespace assay::simkernel::testing
