#pragma once
// What the tests of the matrix unit share: local memories with a set latency (and, when asked, refusals and random delays), descriptors
// drawn at random within decode's rules, and the meaning of a descriptor as the plainest loop.
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rtl_models/rtl_mxu.hpp"
#include "systemc/unit.hpp"

namespace assay::test {

simkernel::ChipConfig chip_config(int rows, int cols);

/// Scratchpad and accumulator of one core, filled with random bytes that include every special bf16 and fp32 value often.
class FakeCore final : public chip::UnitPorts {
public:
    explicit FakeCore(simkernel::ChipConfig config) : config_(std::move(config)), spm_(kSpmBytes), acc_(kAccBytes) {}
    void fill(std::mt19937& random);

    chip::PortReply read_local(std::uint32_t addr, std::span<std::byte> out, chip::Cycles at) override;
    chip::PortReply write_local(std::uint32_t addr, std::span<const std::byte> in, chip::Cycles at) override;
    chip::PortReply read_external(std::uint64_t, std::span<std::byte>, chip::Cycles) override;
    chip::PortReply write_external(std::uint64_t, std::span<const std::byte>, chip::Cycles) override;
    simkernel::LocalMemory& local() override;
    simkernel::ExternalMemory& external() override;
    const simkernel::ChipConfig& config() const override { return config_; }

    /// Refuses and delays at random, from this seed; 0: never.
    void disturb(std::uint32_t seed) { disturbed_ = seed != 0; random_.seed(seed); }

    std::vector<std::byte>& spm() { return spm_; }
    std::vector<std::byte>& acc() { return acc_; }
    /// Time starts anew (for a new unit, or after a reset).
    void restart_time() { last_ = {}; }
    std::uint64_t refusals = 0;

    static constexpr std::size_t kSpmBytes = 1 << 16;
    static constexpr std::size_t kAccBytes = 1 << 16;

private:
    chip::PortReply answer(chip::Cycles at);
    simkernel::ChipConfig config_;
    std::vector<std::byte> spm_, acc_;
    std::mt19937 random_;
    bool disturbed_ = false;
    chip::Cycles last_;
};

/// acc after `f`, by the definition in simkernel/contract/descriptors.toml, one step at a time; bf16 by the host's fmaf under flush.
/// Shares nothing with simkernel/numerics.
void reference(const simkernel::MatmulFields& f, const std::vector<std::byte>& spm, std::vector<std::byte>& acc);

/// A legal descriptor that fits FakeCore's memories: any type, M 1 to about 40, K and N up to the array, segments, groups, strides of
/// both signs.
simkernel::MatmulFields random_matmul(std::mt19937& random, int rows, int cols);
std::string text(const simkernel::MatmulFields& f);
simkernel::DescriptorWords words_of(const simkernel::MatmulFields& f);

/// Offers `f` at `start` and advances in steps of `burst` until it retires; fails the test when it does not within `budget` cycles.
struct Outcome {
    chip::Cycles cycles;
    chip::Cycles stall_memory;
    int blocked = 0;
};
Outcome run(chip::Unit& unit, const simkernel::MatmulFields& f, chip::Cycles start, std::uint64_t burst);

}  // namespace assay::test
