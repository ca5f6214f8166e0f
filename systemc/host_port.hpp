#pragma once
// The chip's host port: BAR0 registers and the memory front door (BAR2 and host DMA), two loosely timed TLM-2.0 targets. A register access
// is one aligned 32-bit word; memory is addressed by device address. Time of the link: host.latency_cycles before the access happens and
// bytes / host.bytes_per_cycle after; the initiator adds the first itself by acting that much later, so that a register is read when the
// request reaches it.
#include <tlm_utils/simple_target_socket.h>

#include "systemc/host_memory.hpp"
#include "systemc/register_file.hpp"

namespace assay::chip {

class HostPort final : public sc_core::sc_module {
public:
    tlm_utils::simple_target_socket<HostPort> registers{"registers"};
    tlm_utils::simple_target_socket<HostPort> memory{"memory"};
    tlm_utils::simple_initiator_socket<HostPort> to_noc{"to_noc"};

    HostPort(sc_core::sc_module_name name, const simkernel::ChipConfig& config, RegisterFile& file, HostMemory& host);

private:
    void register_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    void memory_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    bool access_host_memory(tlm::tlm_generic_payload& tx);

    const std::uint64_t bytes_per_cycle_;
    RegisterFile& file_;
    HostMemory& host_;
};

}  // namespace assay::chip
