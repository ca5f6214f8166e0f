#pragma once
// Memory traffic as TLM-2.0 generic payloads. A read or write moves bytes and takes time; a *reservation* (TLM_IGNORE_COMMAND with this
// extension) takes the time of a read or write without moving bytes, for units whose values were moved a whole descriptor at once.
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include <span>

#include "systemc/clock.hpp"
#include "systemc/unit.hpp"

namespace assay::chip {

struct ReservationExtension final : tlm::tlm_extension<ReservationExtension> {
    bool write = false;
    /// In: the cycle of the request; each component on the way moves it on; out: that of the data or acknowledgement. The transport's `delay`
    /// plays no part: making kernel times for each burst took a third of the cost of all traffic.
    Cycles at;
    tlm_extension_base* clone() const override { return new ReservationExtension(*this); }
    void copy_from(const tlm_extension_base& other) override { *this = static_cast<const ReservationExtension&>(other); }
};

/// Direction of a read, a write or a reservation.
bool is_write(const tlm::tlm_generic_payload& tx);

/// The time of a transaction at a component: read as cycles, moved on in cycles, whichever way it travels.
class TransactionTime {
public:
    TransactionTime(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay)
        : reservation_(tx.get_command() == tlm::TLM_IGNORE_COMMAND ? tx.get_extension<ReservationExtension>() : nullptr), delay_(delay) {}
    Cycles at() const { return reservation_ != nullptr ? reservation_->at : Clock::local(delay_); }
    void add(Cycles span) {
        if (reservation_ != nullptr) reservation_->at += span;
        else delay_ += Clock::span(span);
    }

private:
    ReservationExtension* const reservation_;
    sc_core::sc_time& delay_;
};

/// One initiator's payload, used again for every transaction.
class Initiator {
public:
    Initiator();
    /// Each starts at the local time sc_time_stamp() + delay; `due` is the absolute cycle of the data or acknowledgement.
    PortReply read(tlm::tlm_initiator_socket<>& socket, std::uint64_t address, std::span<std::byte> out, sc_core::sc_time delay);
    PortReply write(tlm::tlm_initiator_socket<>& socket, std::uint64_t address, std::span<const std::byte> in, sc_core::sc_time delay);
    PortReply reserve(tlm::tlm_initiator_socket<>& socket, std::uint64_t address, std::uint64_t bytes, bool write, Cycles at);

private:
    PortReply transport(tlm::tlm_initiator_socket<>& socket, tlm::tlm_command command, std::uint64_t address, std::byte* data,
                        std::uint64_t bytes, sc_core::sc_time delay);
    tlm::tlm_generic_payload payload_;
    sc_core::sc_time no_delay_;  ///< of reservations, whose time is in their extension
    ReservationExtension* reservation_;  ///< owned by payload_, whose destructor frees its extensions (IEEE 1666-2011 §14.21.2)
};

}  // namespace assay::chip
