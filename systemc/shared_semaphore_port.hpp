#pragma once
// The chip's shared semaphores in the device address space: read and written by the host while no core runs a job. A loosely timed TLM-2.0 target:
// otherwise, and for accesses that are not whole words, nothing moves, TLM_ADDRESS_ERROR_RESPONSE (IEEE 1666-2011 §14.17).
#include <tlm_utils/simple_target_socket.h>

#include <functional>

#include "systemc/semaphore_file.hpp"
#include "systemc/traffic.hpp"

namespace assay::chip {

class SharedSemaphorePort final : public sc_core::sc_module {
public:
    tlm_utils::simple_target_socket<SharedSemaphorePort> from_noc{"from_noc"};

    /// `busy` tells whether any core runs a job.
    SharedSemaphorePort(sc_core::sc_module_name name, Cycles latency, SemaphoreFile& semaphores, std::function<bool()> busy)
        : sc_module(name), latency_(latency), semaphores_(semaphores), busy_(std::move(busy)) {
        from_noc.register_b_transport(this, &SharedSemaphorePort::b_transport);
    }

private:
    void b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
        auto* data = reinterpret_cast<std::byte*>(tx.get_data_ptr());
        const std::uint64_t bytes = tx.get_data_length(), offset = tx.get_address() - simkernel::region::shared_semaphores;
        bool moved = false;
        if (!busy_() && tx.is_read()) moved = semaphores_.read(offset, {data, bytes}, Clock::local(delay));
        if (!busy_() && tx.is_write()) moved = semaphores_.write(offset, {data, bytes});
        delay += Clock::span(latency_);
        tx.set_response_status(moved ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    }

    const Cycles latency_;
    SemaphoreFile& semaphores_;
    const std::function<bool()> busy_;
};

}  // namespace assay::chip
