#pragma once
// The ports of a behavioural unit: those of the seam, and a reservation that takes the time of an external access whose bytes have moved
// with the whole descriptor already.
#include "simkernel/exec/semantics.hpp"
#include "systemc/unit.hpp"

namespace assay::chip {

class EnginePorts : public UnitPorts {
public:
    /// As read_external or write_external of `bytes` bytes, without moving any.
    virtual PortReply reserve_external(std::uint64_t device_addr, std::uint64_t bytes, bool write, Cycles at) = 0;
    /// The values of a whole descriptor: moved and computed when this returns, or later but before anyone can look. The effect of one that comes
    /// later has no fault, and its saturation is the queue's to tell.
    virtual simkernel::Effect values_of(const simkernel::Decoded& descriptor) = 0;
    /// Returns when all values handed over before are there.
    virtual void join_values() = 0;
};

/// The behavioural unit of an engine.
std::unique_ptr<Unit> make_behavioural_unit(simkernel::Engine engine, EnginePorts& ports);

}  // namespace assay::chip
