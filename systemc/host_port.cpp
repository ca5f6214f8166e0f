#include "systemc/host_port.hpp"

#include <algorithm>
#include <cstring>

namespace assay::chip {

HostPort::HostPort(sc_core::sc_module_name name, const simkernel::ChipConfig& config, RegisterFile& file, HostMemory& host)
    : sc_module(name), bytes_per_cycle_(static_cast<std::uint64_t>(config.host_bytes_per_cycle)), file_(file), host_(host) {
    registers.register_b_transport(this, &HostPort::register_transport);
    memory.register_b_transport(this, &HostPort::memory_transport);
}

void HostPort::register_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    if (tx.get_data_length() != 4) {
        tx.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
        return;
    }
    const auto offset = static_cast<std::uint32_t>(tx.get_address());
    std::uint32_t value = 0;
    if (tx.is_write()) {
        std::memcpy(&value, tx.get_data_ptr(), 4);
        file_.write(offset, value, Clock::local(delay));
    } else {
        value = file_.read(offset, Clock::local(delay));
        std::memcpy(tx.get_data_ptr(), &value, 4);
    }
    tx.set_response_status(tlm::TLM_OK_RESPONSE);
}

void HostPort::memory_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    if (tx.get_address() >= simkernel::region::host) {
        if (!access_host_memory(tx)) file_.count_bus_error();
        return;
    }
    to_noc->b_transport(tx, delay);
    delay += Clock::span({(tx.get_data_length() + bytes_per_cycle_ - 1) / bytes_per_cycle_});
    if (tx.get_response_status() == tlm::TLM_ADDRESS_ERROR_RESPONSE) file_.count_bus_error();
}

/// The host's own memory by its device address, as the runtime may use for buffers of either side: no link is crossed.
bool HostPort::access_host_memory(tlm::tlm_generic_payload& tx) {
    const std::uint64_t bytes = tx.get_data_length();
    const auto range = host_.visible(tx.get_address() - simkernel::region::host, bytes);
    if (range.size() != bytes) {
        tx.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        return false;
    }
    auto* data = reinterpret_cast<std::byte*>(tx.get_data_ptr());
    if (tx.is_read()) std::copy(range.begin(), range.end(), data);
    if (tx.is_write()) std::copy(data, data + bytes, range.begin());
    tx.set_response_status(tlm::TLM_OK_RESPONSE);
    return true;
}

}  // namespace assay::chip
