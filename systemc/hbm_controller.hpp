#pragma once
// HBM of the chip and its controller: channels interleaved by address, banks with one open row each, a data bus a channel. A loosely timed
// TLM-2.0 target: bytes move at once, time is added to `delay` and never waited for. Requests are served in the order of their calls, which
// the processes make in time order. Outside [0, hbm.bytes) nothing moves: TLM_ADDRESS_ERROR_RESPONSE (IEEE 1666-2011 §14.17).
#include <tlm_utils/simple_target_socket.h>

#include <optional>
#include <vector>

#include "systemc/traffic.hpp"

namespace assay::chip {

class HbmController final : public sc_core::sc_module {
public:
    tlm_utils::simple_target_socket<HbmController> from_noc{"from_noc"};

    HbmController(sc_core::sc_module_name name, const simkernel::ChipConfig& config);
    /// Drops reservations and precharges every bank. Contents stay.
    void reset();
    simkernel::SparseMemory& memory() { return memory_; }
    const simkernel::SparseMemory& memory() const { return memory_; }

    /// Timing alone: cycle of the last data byte of a request that arrives at `arrival`. Not for requests outside the memory.
    Cycles serve(std::uint64_t address, std::uint64_t bytes, Cycles arrival);

private:
    struct Bank {
        std::optional<std::uint64_t> open_row;
        Cycles ready;  ///< earliest next column or precharge command
    };
    struct Channel {
        std::vector<Bank> banks;
        Cycles bus_free;
    };
    void b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay);
    Cycles serve_chunk(Channel& channel, std::uint64_t channel_address, std::uint64_t bytes, Cycles arrival);

    const simkernel::ChipConfig config_;
    /// Powers of two, as shifts: this is the innermost loop of memory traffic, and divisions by variables are slow.
    const unsigned interleave_shift_, channel_shift_, row_shift_, bank_shift_;
    simkernel::SparseMemory memory_;
    std::vector<Channel> channels_;
};

}  // namespace assay::chip
