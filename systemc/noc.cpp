#include "systemc/noc.hpp"

#include <algorithm>

namespace assay::chip {
namespace {

namespace region = simkernel::region;

bool in_hbm(const tlm::tlm_generic_payload& tx, const simkernel::ChipConfig& config) {
    const auto size = static_cast<std::uint64_t>(config.hbm_bytes);
    return tx.get_address() < size && tx.get_data_length() <= size - tx.get_address();
}

}  // namespace

Noc::Noc(sc_core::sc_module_name name, const simkernel::ChipConfig& config, bool jitter, std::uint64_t seed)
    : sc_module(name),
      to_cores("to_cores", static_cast<std::size_t>(config.cores)),
      config_(config),
      jitter_(jitter),
      seed_(seed) {
    from_cores.register_b_transport(this, &Noc::core_transport);
    from_host.register_b_transport(this, &Noc::host_transport);
    reset();
}

void Noc::reset() {
    ports_.clear();
    for (std::uint64_t core = 0; core < static_cast<std::uint64_t>(config_.cores); ++core)
        ports_.push_back({{}, {}, RandomStream(seed_, core)});
}

void Noc::drop_traffic() {
    for (Port& port : ports_) port.request_free = port.response_free = {};
}

void Noc::core_transport(int id, tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    Port& port = ports_[static_cast<std::size_t>(id) / kInitiatorsPerCore];
    TransactionTime time(tx, delay);
    const Cycles at = time.at();
    const Cycles latency{static_cast<std::uint64_t>(config_.noc_latency_cycles)};
    const bool hbm = in_hbm(tx, config_);
    if (!hbm && tx.get_address() < region::host) {
        tx.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        time.add(latency + latency);
        return;
    }
    const auto width = static_cast<std::uint64_t>(config_.noc_bytes_per_cycle);
    const Cycles beats{(tx.get_data_length() + width - 1) / width};
    const bool write = is_write(tx);
    Cycles arrival = at + latency + jitter(port);
    if (write) {
        const Cycles start = std::max(at, port.request_free);
        port.request_free = start + beats;
        arrival += start + beats - at;
    }
    time.add(arrival - at);
    (hbm ? to_hbm : to_host)->b_transport(tx, delay);
    const Cycles served = time.at();
    Cycles end = served + latency;
    if (!write) {
        // The last beat leaves the port when both the memory has sent it and the earlier responses are through.
        end = std::max(end, port.response_free + beats);
        port.response_free = end;
    }
    time.add(end - served);
}

void Noc::host_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    if (in_hbm(tx, config_)) {
        to_hbm->b_transport(tx, delay);
        return;
    }
    // Local memories: spm, acc and semaphores have one layout, a block of core_stride a core.
    static_assert(region::spm_core_stride == region::acc_core_stride && region::spm_core_stride == region::semaphores_core_stride);
    const std::uint64_t address = tx.get_address();
    if (address >= region::shared_semaphores && address < region::host) {
        to_shared_semaphores->b_transport(tx, delay);
        return;
    }
    const std::uint64_t core = (address & (region::spm - 1)) / region::spm_core_stride;
    if (address < region::spm || address >= region::host || core >= to_cores.size()) {
        tx.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        return;
    }
    to_cores[core]->b_transport(tx, delay);
}

}  // namespace assay::chip
