#pragma once
// The ports of a behavioural unit: those of the seam, and a reservation that takes the time of an external access whose bytes have moved
// with the whole descriptor already.
#include "systemc/unit.hpp"

namespace assay::chip {

class EnginePorts : public UnitPorts {
public:
    /// As read_external or write_external of `bytes` bytes, without moving any.
    virtual PortReply reserve_external(std::uint64_t device_addr, std::uint64_t bytes, bool write, Cycles at) = 0;
};

/// The behavioural unit of an engine; null for an engine without instructions (collective, in this version of the contract).
std::unique_ptr<Unit> make_behavioural_unit(simkernel::Engine engine, EnginePorts& ports);

}  // namespace assay::chip
