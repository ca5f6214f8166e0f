#include "systemc/hbm_controller.hpp"

#include <algorithm>
#include <bit>

namespace assay::chip {
namespace {

unsigned log2_of(std::int64_t power_of_two) { return static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(power_of_two))); }

}  // namespace

HbmController::HbmController(sc_core::sc_module_name name, const simkernel::ChipConfig& config)
    : sc_module(name),
      config_(config),
      interleave_shift_(log2_of(config.hbm_interleave_bytes)),
      channel_shift_(log2_of(config.hbm_channels)),
      row_shift_(log2_of(config.hbm_row_bytes)),
      bank_shift_(log2_of(config.hbm_banks)),
      memory_(static_cast<std::uint64_t>(config.hbm_bytes)),
      channels_(static_cast<std::size_t>(config.hbm_channels)) {
    from_noc.register_b_transport(this, &HbmController::b_transport);
    reset();
}

void HbmController::reset() {
    for (Channel& channel : channels_) {
        channel.banks.assign(static_cast<std::size_t>(config_.hbm_banks), Bank{});
        channel.bus_free = {};
    }
}

void HbmController::b_transport(tlm::tlm_generic_payload& tx, sc_core::sc_time& delay) {
    const std::uint64_t bytes = tx.get_data_length();
    auto* data = reinterpret_cast<std::byte*>(tx.get_data_ptr());
    if (tx.get_address() > memory_.size() || bytes > memory_.size() - tx.get_address()) {
        tx.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
        return;
    }
    if (tx.is_read()) memory_.read(tx.get_address(), {data, bytes});
    if (tx.is_write()) memory_.write(tx.get_address(), {data, bytes});
    TransactionTime time(tx, delay);
    const Cycles arrival = time.at();
    time.add(serve(tx.get_address(), bytes, arrival) - arrival);
    tx.set_response_status(tlm::TLM_OK_RESPONSE);
}

Cycles HbmController::serve(std::uint64_t address, std::uint64_t bytes, Cycles arrival) {
    const std::uint64_t interleave_mask = (std::uint64_t{1} << interleave_shift_) - 1;
    const std::uint64_t row_bytes = std::uint64_t{1} << row_shift_;
    Cycles done = arrival;
    while (bytes > 0) {
        const std::uint64_t stripe = address >> interleave_shift_;
        const std::uint64_t in_stripe = address & interleave_mask;
        const std::uint64_t channel_address = ((stripe >> channel_shift_) << interleave_shift_) + in_stripe;
        // A chunk stays in one stripe (one channel) and in one row (one activation).
        const std::uint64_t chunk = std::min({bytes, interleave_mask + 1 - in_stripe, row_bytes - (channel_address & (row_bytes - 1))});
        Channel& channel = channels_[stripe & (channels_.size() - 1)];
        done = std::max(done, serve_chunk(channel, channel_address, chunk, arrival));
        address += chunk;
        bytes -= chunk;
    }
    return done;
}

Cycles HbmController::serve_chunk(Channel& channel, std::uint64_t channel_address, std::uint64_t bytes, Cycles arrival) {
    const auto cycles = [](std::int64_t count) { return Cycles{static_cast<std::uint64_t>(count)}; };
    // Consecutive rows lie in different banks, so a stream activates one bank while another transfers.
    const std::uint64_t row = channel_address >> row_shift_;
    Bank& bank = channel.banks[row & (channel.banks.size() - 1)];
    const std::uint64_t bank_row = row >> bank_shift_;

    Cycles column = std::max(arrival, bank.ready);
    if (bank.open_row != bank_row) {
        if (bank.open_row) column += cycles(config_.hbm_t_rp_cycles);
        column += cycles(config_.hbm_t_rcd_cycles);
        bank.open_row = bank_row;
    }
    const auto width = static_cast<std::uint32_t>(config_.hbm_bytes_per_cycle);
    const Cycles beats{(static_cast<std::uint32_t>(bytes) + width - 1) / width};  // a chunk is at most interleave_bytes
    const Cycles data = std::max(column + cycles(config_.hbm_t_cl_cycles), channel.bus_free);
    channel.bus_free = data + beats;
    bank.ready = data + beats - cycles(config_.hbm_t_cl_cycles);  // column commands run t_cl ahead of their data
    return data + beats;
}

}  // namespace assay::chip
