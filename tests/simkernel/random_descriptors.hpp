#pragma once
// Random well-formed descriptors over small ranges of memory that collide often: HBM [0x1000, 0x5000), scratchpad [0, 0x1000) and the
// accumulator's first 0x400 bytes. They name no semaphores.
#include <random>

#include "tests/simkernel/program_builder.hpp"

namespace assay::simkernel::testing {

class RandomDescriptors {
public:
    static constexpr std::uint64_t kHbmBase = 0x1000, kHbmBytes = 0x4000;

    RandomDescriptors(std::mt19937_64& random, const ChipConfig& config) : random_(random), config_(config) {}

    /// A transfer, fill, matmul, vector descriptor or nop.
    DescriptorWords next() {
        switch (below(6)) {
            case 0: return transfer<LoadFields>(Opcode::load);
            case 1: return transfer<StoreFields>(Opcode::store);
            case 2: return fill();
            case 3: return matmul();
            case 4: return vector();
            default: return {};
        }
    }

private:
    static constexpr std::uint32_t kSpmBytes = 0x1000, kAccBytes = 0x400;

    std::uint32_t below(std::uint64_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
    /// A local address at which `bytes` bytes fit, a multiple of 4.
    std::uint32_t local(std::uint32_t bytes, bool accumulator) {
        const std::uint32_t size = accumulator ? kAccBytes : kSpmBytes;
        return below((size - bytes) / 4 + 1) * 4 | (accumulator ? kAccBit : 0);
    }

    template <class Fields>
    DescriptorWords transfer(Opcode opcode) {
        Fields f;
        f.run_bytes = 1 + below(24);
        f.count = {1 + below(4), 1 + below(4), 1, 1};
        f.local_stride = {static_cast<std::int32_t>(f.run_bytes), 128, 0, 0};
        f.ext_stride = {static_cast<std::int64_t>(f.run_bytes + below(2) * 40), 1024, 0, 0};
        f.local_addr = local(512, below(4) == 0);
        f.ext_addr = kHbmBase + below(kHbmBytes - 0x1000);
        return descriptor(opcode, f);
    }
    DescriptorWords fill() {
        FillFields f;
        f.run_bytes = 4 * (1 + below(20));
        f.count = {1 + below(3), 1, 1, 1};
        f.local_stride = {96, 0, 0, 0};
        f.local_addr = local(3 * 96, below(4) == 0);
        f.pattern = below(256);
        f.pattern_bytes = 1;
        return descriptor(Opcode::fill, f);
    }
    DescriptorWords matmul() {
        const std::uint32_t m = 1 + below(16), k = 1 + below(static_cast<std::uint64_t>(config_.mxu_rows)), n = 1 + below(8);
        auto words = testing::matmul(m, k, n, local(m * k, false), local(k * n, false), local(4 * m * n, true) & ~kAccBit);
        words[9] |= below(2) << 4;  // accumulate
        return words;
    }
    DescriptorWords vector() {
        const std::uint32_t count = 1 + below(64);
        auto words = drain(count, local(4 * count, true) & ~kAccBit, local(4 * count, false));
        return words;
    }

    std::mt19937_64& random_;
    const ChipConfig& config_;
};

}  // namespace assay::simkernel::testing
