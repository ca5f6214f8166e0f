#pragma once
// Pseudo-random numbers for jitter and for the contents of memories after reset: SplitMix64 (Steele, Lea, Flood 2014), one stream a user, so
// that no stream depends on the order in which others draw.
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::chip {

class RandomStream {
public:
    RandomStream(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed ^ mix(stream + 1))) {}
    std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }
    /// Uniform enough in [0, bound] for latencies.
    std::uint64_t up_to(std::uint64_t bound) { return next() % (bound + 1); }
    void fill(std::span<std::byte> bytes) {
        for (std::byte& b : bytes) b = static_cast<std::byte>(next());
    }

private:
    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

}  // namespace assay::chip
