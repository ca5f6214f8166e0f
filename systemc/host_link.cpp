#include "systemc/host_link.hpp"

#include <algorithm>

namespace assay::chip {

HostLink::HostLink(sc_core::sc_module_name name, const simkernel::ChipConfig& config, HostMemory& memory)
    : sc_module(name),
      latency_{static_cast<std::uint64_t>(config.host_latency_cycles)},
      bytes_per_cycle_(static_cast<std::uint64_t>(config.host_bytes_per_cycle)),
      memory_(memory) {
    from_noc.register_b_transport(this, &HostLink::b_transport);
}

void HostLink::b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    const std::uint64_t bytes = tx.get_data_length();
    const std::span<std::byte> range = memory_.visible(tx.get_address() - simkernel::region::host, bytes);
    TransactionTime time(tx, delay);
    const Cycles at = time.at();
    if (range.empty()) {
        tx.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        time.add(latency_ + latency_);
        return;
    }
    auto* data = reinterpret_cast<std::byte*>(tx.get_data_ptr());
    if (tx.is_read()) std::copy(range.begin(), range.end(), data);
    if (tx.is_write()) std::copy(data, data + bytes, range.begin());
    const Cycles beats{(bytes + bytes_per_cycle_ - 1) / bytes_per_cycle_};
    Cycles end;
    if (is_write(tx)) {
        to_host_free_ = std::max(at, to_host_free_) + beats;
        end = to_host_free_ + latency_ + latency_;
    } else {
        to_chip_free_ = std::max(at + latency_, to_chip_free_) + beats;
        end = to_chip_free_ + latency_;
    }
    time.add(end - at);
    tx.set_response_status(tlm::TLM_OK_RESPONSE);
}

}  // namespace assay::chip
