#include "systemc/dma_unit.hpp"

#include <algorithm>

namespace assay::chip {
namespace {

std::uint64_t fill_cycles(const simkernel::FillFields& f, std::uint64_t width) {
    std::uint64_t runs = 1;
    for (const std::uint32_t count : f.count) runs *= count;
    return runs * ((f.run_bytes + width - 1) / width);
}

}  // namespace

bool DmaUnit::offer(std::uint32_t id, const simkernel::Decoded& descriptor, const simkernel::DescriptorWords&, Cycles now) {
    if (busy_) return false;
    busy_ = true;
    id_ = id;
    time_ = now;
    // A descriptor takes a cycle even when nothing is to be set up.
    private_end_ = now + Cycles{static_cast<std::uint64_t>(std::max<std::int64_t>(1, ports_.config().dma_setup_cycles))};
    in_flight_.clear();
    last_due_ = {};
    plan_ = {};
    std::vector<std::int64_t> rows;
    if (simkernel::is_indexed(descriptor)) {
        ports_.join_values();  // its time depends on the list
        rows = simkernel::transfer_rows(descriptor, ports_.local());
    }
    effect_ = ports_.values_of(descriptor);
    if (!effect_.fault) plan(descriptor, std::move(rows));
    return true;
}

void DmaUnit::plan(const simkernel::Decoded& descriptor, std::vector<std::int64_t> rows) {
    const auto burst = static_cast<std::uint64_t>(ports_.config().dma_burst_bytes);
    if (!rows.empty()) {
        const auto width = static_cast<std::uint64_t>(ports_.config().noc_bytes_per_cycle);
        private_end_ += Cycles{static_cast<std::uint64_t>(ports_.config().spm_latency_cycles) + (4 * rows.size() + width - 1) / width};
    }
    if (const auto* load = std::get_if<simkernel::LoadFields>(&descriptor.op)) {
        write_ = false;
        plan_ = TransferPlan(*load, burst, std::move(rows));
    } else if (const auto* store = std::get_if<simkernel::StoreFields>(&descriptor.op)) {
        write_ = true;
        plan_ = TransferPlan(*store, burst, std::move(rows));
    } else if (const auto* fill = std::get_if<simkernel::FillFields>(&descriptor.op)) {
        private_end_ += Cycles{fill_cycles(*fill, static_cast<std::uint64_t>(ports_.config().noc_bytes_per_cycle))};
    }
}

Advance DmaUnit::advance(Cycles limit) {
    Advance result;
    if (!busy_) return result;
    const Cycles end = time_ + limit;
    result.state = UnitState::running;
    spend(std::min(private_end_, end), false, result);
    if (time_ < private_end_ || !issue_bursts(end, result)) return result;
    const Cycles finish = std::max(last_due_, private_end_);
    spend(std::min(finish, end), true, result);
    if (time_ < finish) return result;
    busy_ = false;
    result.state = UnitState::retired;
    result.retired_id = id_;
    result.fault = effect_.fault;
    return result;
}

/// True when every burst has been issued; false at the limit or at a refused port.
bool DmaUnit::issue_bursts(Cycles end, Advance& result) {
    const auto outstanding = static_cast<std::size_t>(ports_.config().dma_outstanding);
    while (!plan_.done()) {
        if (in_flight_.size() == outstanding) {
            spend(std::min(in_flight_.front(), end), true, result);
            if (time_ < in_flight_.front()) return false;
            in_flight_.pop_front();
        }
        if (time_ >= end) return false;
        const Burst burst = plan_.front();
        const PortReply reply = ports_.reserve_external(burst.address, burst.bytes, write_, time_);
        if (!reply.accepted) {
            result.state = UnitState::blocked;
            return false;
        }
        plan_.pop();
        in_flight_.push_back(reply.due);
        last_due_ = std::max(last_due_, reply.due);
        spend(time_ + Cycles{1}, false, result);
    }
    return true;
}

void DmaUnit::spend(Cycles until, bool stalled, Advance& result) {
    if (until <= time_) return;
    const Cycles span = until - time_;
    time_ = until;
    result.ran += span;
    if (stalled) result.stall_memory += span;
}

void DmaUnit::reset() {
    busy_ = false;
    in_flight_.clear();
}

}  // namespace assay::chip
