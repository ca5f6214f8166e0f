#pragma once
// The network on chip: each core has one port, whose two directions carry bytes_per_cycle each; a hop takes latency_cycles. A read's data
// occupies the response direction, a write's data the request direction; ports are reserved in the order of the calls. Routes device
// addresses of cores to HBM or host memory, and of the host to HBM, to the local memories of a core or to the shared semaphores (region table of the
// contract).
// An address in no region, or outside its region, moves nothing: TLM_ADDRESS_ERROR_RESPONSE after a round trip.
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <memory>
#include <vector>

#include "systemc/random.hpp"
#include "systemc/traffic.hpp"

namespace assay::chip {

class Noc final : public sc_core::sc_module {
public:
    /// Sockets of one core in binding order: its engines, then its command processor.
    static constexpr std::size_t kInitiatorsPerCore = simkernel::kAllEngine.size() + 1;
    tlm_utils::multi_passthrough_target_socket<Noc> from_cores{"from_cores"};
    tlm_utils::simple_target_socket<Noc> from_host{"from_host"};
    tlm_utils::simple_initiator_socket<Noc> to_hbm{"to_hbm"};
    tlm_utils::simple_initiator_socket<Noc> to_host{"to_host"};
    sc_core::sc_vector<tlm_utils::simple_initiator_socket<Noc>> to_cores;
    tlm_utils::simple_initiator_socket<Noc> to_shared_semaphores{"to_shared_semaphores"};

    /// `jitter`: each transaction takes up to kJitterCycles more, from `seed`.
    Noc(sc_core::sc_module_name name, const simkernel::ChipConfig& config, bool jitter, std::uint64_t seed);
    void reset();          ///< drops reservations and starts the jitter anew
    void drop_traffic();   ///< drops reservations only

    static constexpr std::uint64_t kJitterCycles = 31;  ///< no unit's latency: only to reorder what may be reordered

private:
    struct Port {
        Cycles request_free, response_free;
        RandomStream random;
    };
    void core_transport(int id, tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    void host_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    Cycles jitter(Port& port) { return {jitter_ ? port.random.up_to(kJitterCycles) : 0}; }

    const simkernel::ChipConfig config_;
    const bool jitter_;
    const std::uint64_t seed_;
    std::vector<Port> ports_;
};

}  // namespace assay::chip
