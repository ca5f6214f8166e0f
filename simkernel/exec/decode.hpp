#pragma once
// Decoding and checking of descriptors: every rule that makes a descriptor well formed for a chip, in one place for interpreter, TLM,
// loader and fuzzers. Also the exact ranges that a descriptor reads and writes.
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <boost/container/static_vector.hpp>

#include "aurum_contract.hpp"
#include "simkernel/types.hpp"

namespace assay::simkernel {

using Operation = std::variant<std::monostate, LoadFields, FillFields, StoreFields, MatmulFields, VectorFields>;  // monostate: nop

struct Fault {
    ErrorCode code = ErrorCode::none;
    std::uint64_t address = 0;
    std::string text;  ///< names the field, got against allowed
    explicit operator bool() const { return code != ErrorCode::none; }
};

struct Decoded {
    CommonFields common;
    Engine engine = Engine::vector;
    Opcode opcode = Opcode::nop;
    Operation op;
};

/// Architectural bounds on one descriptor, so that no program can keep an engine busy without end.
inline constexpr std::uint64_t kMaxDmaBytes = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kMaxDmaRuns = std::uint64_t{1} << 24;
inline constexpr std::uint64_t kMaxVectorElements = std::uint64_t{1} << 26;

std::size_t size_of(Dtype type);  ///< bytes of one element

/// Decodes and checks against the chip: reserved bits, ranges of fields, alignment, local ranges (HBM and host ranges are checked when
/// accessed as well). On a fault `out` is unspecified.
Fault decode(const DescriptorWords& words, const ChipConfig& config, Decoded& out);

/// A strided set of byte runs, for the sanitizer: for i in count: [base + sum(i*stride), + run).
struct AccessRange {
    enum class Space { spm, acc, ext } space = Space::spm;
    bool write = false;
    std::uint64_t base = 0;
    std::uint64_t run = 0;
    /// (count, stride), outermost first. In place: every descriptor's ranges are asked for while it runs.
    boost::container::static_vector<std::pair<std::uint64_t, std::int64_t>, 5> dims;
};
std::vector<AccessRange> accesses(const Decoded& decoded, const ChipConfig& config);

}  // namespace assay::simkernel
