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

using Operation = std::variant<std::monostate, LoadFields, FillFields, StoreFields, MatmulFields, VectorFields>;  // monostate: nop, sync

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

/// A semaphore of a program: one of the descriptor's core, or a shared one.
struct SemaphoreId {
    std::uint32_t core = 0;  ///< kShared: of the chip
    std::uint32_t number = 0;
    static constexpr std::uint32_t kShared = UINT32_MAX;
    auto operator<=>(const SemaphoreId&) const = default;
};
SemaphoreId signalled(const CommonFields& common);
SemaphoreId awaited(const CommonFields& common, std::size_t wait);
std::string semaphore_name(SemaphoreId semaphore, bool several_cores);  ///< "semaphore 3", "semaphore 3 of core 1", "shared semaphore 3"

/// Who executes a descriptor: an engine of a core. Agents are numbered core by core.
constexpr std::size_t agent_of(std::uint32_t core, Engine engine) { return core * kAllEngine.size() + static_cast<std::size_t>(engine); }
std::string agent_name(std::size_t agent, bool several_cores);  ///< "load", or "core 1 load"

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
