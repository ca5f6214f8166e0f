#pragma once
// One fuzz target: an entry that libFuzzer and the plain driver share, and the seeds from which both start. A target fails by crashing, by
// exceeding the driver's time limit, or by expect().
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "support/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace assay::fuzz {

/// Valid inputs, made by the target itself.
std::vector<std::string> seeds();

/// Inputs so far that the code under test took as valid. A target none of whose inputs is ever valid tests only its own rejection.
inline std::uint64_t accepted = 0;

/// A property of the code under test; when it does not hold, the input is a finding.
inline void expect(bool holds, const char* property) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: this does not hold: %s\n", property);
    std::abort();
}

/// Runs `body`, in which refusing the input by a typed Error is right, and anything else that is thrown is a finding.
template <class Body>
void refusing(const Body& body) {
    try {
        body();
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) std::fprintf(stderr, "fuzz: %s\n", error.what());
        expect(error.kind() != ErrorKind::internal, "no input reaches a broken invariant");
    }
}

/// Doles out an input as numbers; zeros when it is used up.
class Bytes {
public:
    explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}
    template <class T>
    T take() {
        T value{};
        const std::size_t n = std::min(sizeof value, data_.size());
        if (n > 0) std::memcpy(&value, data_.data(), n);
        data_ = data_.subspan(n);
        return value;
    }
    /// A number in [0, below).
    std::uint32_t below(std::uint32_t below) { return take<std::uint32_t>() % below; }
    std::span<const std::uint8_t> rest() const { return data_; }
    bool empty() const { return data_.empty(); }

private:
    std::span<const std::uint8_t> data_;
};

}  // namespace assay::fuzz
