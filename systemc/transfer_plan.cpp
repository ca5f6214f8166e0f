#include "systemc/transfer_plan.hpp"

#include <algorithm>

namespace assay::chip {

TransferPlan::TransferPlan(std::uint64_t address, std::uint64_t run_bytes, const std::array<std::uint32_t, 4>& count,
                           const std::array<std::int64_t, 4>& stride, std::uint64_t burst_bytes, std::vector<std::int64_t> rows)
    : burst_bytes_(burst_bytes), run_bytes_(run_bytes), count_(count), stride_(stride), rows_(std::move(rows)), first_address_(address),
      run_address_(address), address_(address) {
    // A dimension whose runs follow each other without a gap at the device address is one longer run; the DMA scatters it into (or
    // gathers it from) local memory on the way, whose port is its own.
    for (std::size_t d = 0; d < count_.size() && rows_.empty(); ++d) {
        if (count_[d] != 1 && static_cast<std::uint64_t>(stride_[d]) != run_bytes_) break;
        run_bytes_ *= count_[d];
        count_[d] = 1;
    }
    left_in_run_ = run_bytes_;
    if (!rows_.empty()) run_address_ = address_ = address_of_run();
}

std::uint64_t TransferPlan::address_of_run() const {
    std::uint64_t at = first_address_ + static_cast<std::uint64_t>(rows_[index_[0]]) * static_cast<std::uint64_t>(stride_[0]);
    for (std::size_t d = 1; d < count_.size(); ++d) at += std::uint64_t{index_[d]} * static_cast<std::uint64_t>(stride_[d]);
    return at;
}

Burst TransferPlan::front() const { return {address_, std::min(left_in_run_, burst_bytes_ - address_ % burst_bytes_)}; }

void TransferPlan::pop() {
    const std::uint64_t bytes = front().bytes;
    address_ += bytes;
    left_in_run_ -= bytes;
    if (left_in_run_ == 0) next_run();
}

void TransferPlan::next_run() {
    for (std::size_t d = 0; d < count_.size(); ++d) {
        const auto stride = static_cast<std::uint64_t>(stride_[d]);  // device addresses wrap like the hardware's 64-bit adders
        if (++index_[d] < count_[d]) {
            run_address_ = rows_.empty() ? run_address_ + stride : address_of_run();
            address_ = run_address_;
            left_in_run_ = run_bytes_;
            return;
        }
        run_address_ -= stride * (count_[d] - 1);
        index_[d] = 0;
    }
}

}  // namespace assay::chip
