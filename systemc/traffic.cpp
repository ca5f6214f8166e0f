#include "systemc/traffic.hpp"

namespace assay::chip {

bool is_write(const tlm::tlm_generic_payload& tx) {
    if (tx.get_command() != tlm::TLM_IGNORE_COMMAND) return tx.is_write();
    const auto* reservation = tx.get_extension<ReservationExtension>();
    return reservation != nullptr && reservation->write;
}

Initiator::Initiator() : reservation_(new ReservationExtension) { payload_.set_extension(reservation_); }

PortReply Initiator::read(tlm::tlm_initiator_socket<>& socket, std::uint64_t address, std::span<std::byte> out, sc_core::sc_time delay) {
    return transport(socket, tlm::TLM_READ_COMMAND, address, out.data(), out.size(), delay);
}

PortReply Initiator::write(tlm::tlm_initiator_socket<>& socket, std::uint64_t address, std::span<const std::byte> in,
                           sc_core::sc_time delay) {
    // The payload's pointer is not const for reads' sake; a target must not modify a write's data (§14.11).
    return transport(socket, tlm::TLM_WRITE_COMMAND, address, const_cast<std::byte*>(in.data()), in.size(), delay);
}

PortReply Initiator::reserve(tlm::tlm_initiator_socket<>& socket, std::uint64_t address, std::uint64_t bytes, bool write, Cycles at) {
    reservation_->write = write;
    reservation_->at = at;
    payload_.set_command(tlm::TLM_IGNORE_COMMAND);
    payload_.set_address(address);
    payload_.set_data_ptr(nullptr);
    payload_.set_data_length(static_cast<unsigned>(bytes));
    payload_.set_streaming_width(static_cast<unsigned>(bytes));
    payload_.set_byte_enable_ptr(nullptr);
    payload_.set_dmi_allowed(false);
    payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    socket->b_transport(payload_, no_delay_);
    return {true, reservation_->at, !payload_.is_response_ok()};
}

PortReply Initiator::transport(tlm::tlm_initiator_socket<>& socket, tlm::tlm_command command, std::uint64_t address, std::byte* data,
                               std::uint64_t bytes, sc_core::sc_time delay) {
    payload_.set_command(command);
    payload_.set_address(address);
    payload_.set_data_ptr(reinterpret_cast<unsigned char*>(data));
    payload_.set_data_length(static_cast<unsigned>(bytes));
    payload_.set_streaming_width(static_cast<unsigned>(bytes));
    payload_.set_byte_enable_ptr(nullptr);
    payload_.set_dmi_allowed(false);
    payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    socket->b_transport(payload_, delay);
    return {true, Clock::local(delay), !payload_.is_response_ok()};
}

}  // namespace assay::chip
