#include "systemc/local_memory_port.hpp"

#include <algorithm>

namespace assay::chip {
namespace {

namespace region = simkernel::region;

/// Offset of a device address within its core's block of a region.
std::uint64_t offset_of(std::uint64_t address) { return address % region::spm_core_stride; }

}  // namespace

LocalMemoryPort::LocalMemoryPort(sc_core::sc_module_name name, const simkernel::ChipConfig& config, simkernel::LocalMemory& memory,
                                 SemaphoreFile& semaphores, std::function<bool()> busy)
    : sc_module(name),
      latency_{static_cast<std::uint64_t>(config.spm_latency_cycles)},
      memory_(memory),
      semaphores_(semaphores),
      busy_(std::move(busy)) {
    from_noc.register_b_transport(this, &LocalMemoryPort::b_transport);
}

void LocalMemoryPort::b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    auto* data = reinterpret_cast<std::byte*>(tx.get_data_ptr());
    const std::uint64_t bytes = tx.get_data_length();
    bool moved = false;
    if (!busy_() && tx.is_read()) moved = read(tx.get_address(), {data, bytes}, Clock::local(delay));
    if (!busy_() && tx.is_write()) moved = write(tx.get_address(), {data, bytes});
    delay += Clock::span(latency_);
    tx.set_response_status(moved ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

bool LocalMemoryPort::read(std::uint64_t address, std::span<std::byte> out, Cycles at) {
    if (address >= region::semaphores) return semaphores_.read(offset_of(address), out, at);
    const auto range = sram(address, out.size());
    if (range.size() != out.size()) return false;
    std::copy(range.begin(), range.end(), out.begin());
    return true;
}

bool LocalMemoryPort::write(std::uint64_t address, std::span<const std::byte> in) {
    if (address >= region::semaphores) return semaphores_.write(offset_of(address), in);
    const auto range = sram(address, in.size());
    if (range.size() != in.size()) return false;
    std::copy(in.begin(), in.end(), range.begin());
    return true;
}

std::span<std::byte> LocalMemoryPort::sram(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t offset = offset_of(address);
    const auto whole = address >= region::acc ? memory_.accumulator() : memory_.scratchpad();
    if (offset > whole.size() || bytes > whole.size() - offset) return {};
    return whole.subspan(offset, bytes);
}

}  // namespace assay::chip
