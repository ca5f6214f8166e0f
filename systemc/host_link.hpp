#pragma once
// The chip's end of the host link: reads and writes of host memory by the chip's DMA. Each takes a round trip of host.latency_cycles a way
// and occupies one direction of the link for its bytes; requests are served in the order of their calls.
#include <tlm_utils/simple_target_socket.h>

#include "systemc/host_memory.hpp"
#include "systemc/traffic.hpp"

namespace assay::chip {

class HostLink final : public sc_core::sc_module {
public:
    tlm_utils::simple_target_socket<HostLink> from_noc{"from_noc"};

    HostLink(sc_core::sc_module_name name, const simkernel::ChipConfig& config, HostMemory& memory);
    void reset() { to_host_free_ = to_chip_free_ = {}; }

private:
    void b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    const Cycles latency_;
    const std::uint64_t bytes_per_cycle_;
    HostMemory& memory_;
    Cycles to_host_free_, to_chip_free_;
};

}  // namespace assay::chip
