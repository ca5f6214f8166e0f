#pragma once
// The seam: one execution unit as a resumable machine, behavioural or Verilated, interchangeable per instance at run time.
// A unit never blocks its caller and knows no SystemC. Contract:
//   - offer() hands over one checked descriptor whose waits are met; `full` means call again after it retires.
//   - advance(limit) runs at most `limit` cycles from the unit's own clock and says how far it came and why it stopped. It returns early
//     at retirement, before an access to a shared resource that is refused (`blocked`), and at the limit.
//   - Memory ports split request from response: a request is accepted at a cycle or refused; its data is due at a later cycle.
//   - reset() returns the unit to idle from any state and drops what is in flight.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "aurum_contract.hpp"
#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/memory.hpp"
#include "simkernel/types.hpp"

namespace assay::chip {

using simkernel::Cycles;

struct PortReply {
    bool accepted = false;  ///< refused: nothing happened; ask again at a later cycle
    Cycles due;             ///< absolute cycle of the data (read) or of the acknowledgement (write)
    bool error = false;     ///< address outside the memory
};

/// What a unit sees of its core. `at` is the absolute core cycle of the request and never decreases for one unit.
class UnitPorts {
public:
    virtual ~UnitPorts() = default;
    /// Local SRAM (bit 31: accumulator). Each engine has ports of its own, so requests are never refused; data is due after
    /// spm_latency_cycles. The bytes move at the call.
    virtual PortReply read_local(std::uint32_t local_addr, std::span<std::byte> out, Cycles at) = 0;
    virtual PortReply write_local(std::uint32_t local_addr, std::span<const std::byte> in, Cycles at) = 0;
    /// HBM or host memory through the NoC: a shared resource, reserved in time order. Refused while `at` is past the caller's
    /// synchronised time (the engine then synchronises and calls advance again).
    virtual PortReply read_external(std::uint64_t device_addr, std::span<std::byte> out, Cycles at) = 0;
    virtual PortReply write_external(std::uint64_t device_addr, std::span<const std::byte> in, Cycles at) = 0;
    /// Direct view for behavioural units, which move a whole descriptor's values at once.
    virtual simkernel::LocalMemory& local() = 0;
    virtual simkernel::ExternalMemory& external() = 0;
    virtual const simkernel::ChipConfig& config() const = 0;
};

enum class UnitState { idle, running, blocked, retired };

struct Advance {
    Cycles ran;                 ///< cycles consumed by this call, <= limit
    UnitState state = UnitState::idle;
    std::uint32_t retired_id = 0;  ///< descriptor index, when retired
    Cycles stall_memory;        ///< of `ran`, cycles spent waiting for memory
    simkernel::Fault fault;     ///< set when the descriptor failed; state is then retired
    bool saturated = false;
};

class Unit {
public:
    virtual ~Unit() = default;
    /// True: taken; the unit starts at absolute cycle `now`. False: it is busy.
    [[nodiscard]] virtual bool offer(std::uint32_t id, const simkernel::Decoded& descriptor, const simkernel::DescriptorWords& words, Cycles now) = 0;
    [[nodiscard]] virtual Advance advance(Cycles limit) = 0;
    virtual void reset() = 0;
    virtual std::string_view implementation() const = 0;  ///< "behavioural", "rtl mxu 32x32 …"
};

/// Bounded waves of one RTL unit.
struct WaveOptions {
    std::string path;            ///< .fst; empty: none
    std::uint64_t from_cycle = 0;
    std::uint64_t cycle_count = 0;  ///< 0: to the end
};

}  // namespace assay::chip
