#include "rtl_models/rtl_mxu.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "support/error.hpp"

namespace assay::rtl {

using chip::Advance;
using chip::Cycles;
using chip::UnitState;

std::byte* ReplyQueue::prepare() {
    if (tail_ - head_ > mask_) grow();
    return &data_[(tail_ & mask_) * payload_bytes_];
}

void ReplyQueue::push(Cycles due) {
    due_[tail_ & mask_] = due;
    ++tail_;
}

void ReplyQueue::grow() {
    const std::size_t capacity = due_.empty() ? 8 : 2 * due_.size();  // 8: the default latency of two cycles, with room
    std::vector<Cycles> due(capacity);
    std::vector<std::byte> data(capacity * payload_bytes_);
    std::size_t n = 0;
    for (std::size_t i = head_; i != tail_; ++i, ++n) {
        due[n] = due_[i & mask_];
        std::copy_n(&data_[(i & mask_) * payload_bytes_], payload_bytes_, &data[n * payload_bytes_]);
    }
    due_.swap(due);
    data_.swap(data);
    head_ = 0;
    tail_ = n;
    mask_ = capacity - 1;
}

RtlMxu::RtlMxu(std::unique_ptr<MxuModel> model, chip::UnitPorts& ports)
    : model_(std::move(model)), ports_(ports),
      name_("rtl mxu " + std::to_string(model_->rows) + "x" + std::to_string(model_->cols) + " (Verilated)"),
      spm_replies_(model_->port_bytes), acc_replies_(static_cast<std::size_t>(model_->cols) * 4), write_acks_(1) {
    *model_->pins.setup_cycles = static_cast<std::uint16_t>(ports_.config().mxu_setup_cycles);
    reset();
}

bool RtlMxu::offer(std::uint32_t id, const simkernel::Decoded&, const simkernel::DescriptorWords& words, Cycles now) {
    if (busy_) return false;
    std::copy(words.begin(), words.end(), model_->pins.desc);
    *model_->pins.desc_valid = 1;
    id_ = id;
    now_ = now;
    busy_ = true;
    return true;
}

void RtlMxu::deliver() {
    const MxuPins& p = model_->pins;
    if (spm_replies_.ready(now_)) {
        std::memcpy(p.spm_rsp_data, spm_replies_.front(), model_->port_bytes);
        spm_replies_.pop();
        *p.spm_rsp_valid = 1;
    }
    if (acc_replies_.ready(now_)) {
        std::memcpy(p.acc_rsp_data, acc_replies_.front(), static_cast<std::size_t>(model_->cols) * 4);
        acc_replies_.pop();
        *p.acc_rsp_valid = 1;
    }
    if (write_acks_.ready(now_)) {
        write_acks_.pop();
        *p.acc_wr_ack = 1;
    }
}

RtlMxu::Access RtlMxu::read(bool valid, std::uint32_t addr, std::size_t bytes, bool& accepted, ReplyQueue& queue, Advance& a) {
    if (!valid || accepted) return Access::done;
    const chip::PortReply reply = ports_.read_local(addr, std::span(queue.prepare(), bytes), now_);
    if (reply.error) {
        a.fault = {simkernel::ErrorCode::illegal_address, addr, "matmul: a read left the local memory"};
        return Access::failed;
    }
    if (!reply.accepted) return Access::refused;
    queue.push(reply.due);
    accepted = true;
    return Access::done;
}

RtlMxu::Access RtlMxu::serve(Advance& a) {
    const MxuPins& p = model_->pins;
    Access worst = read(*p.spm_req_valid != 0, *p.spm_req_addr, *p.spm_req_bytes, spm_accepted_, spm_replies_, a);
    worst = std::max(worst, read(*p.acc_req_valid != 0, *p.acc_req_addr, *p.acc_bytes, acc_accepted_, acc_replies_, a));
    if (*p.acc_wr_valid != 0 && !write_accepted_) {
        const auto data = std::as_bytes(std::span(p.acc_wr_data, *p.acc_bytes / 4));
        const chip::PortReply reply = ports_.write_local(*p.acc_wr_addr, data, now_);
        if (reply.error) {
            a.fault = {simkernel::ErrorCode::illegal_address, *p.acc_wr_addr, "matmul: a write left the accumulator"};
            return Access::failed;
        }
        if (!reply.accepted) return std::max(worst, Access::refused);
        write_acks_.prepare();
        write_acks_.push(reply.due);
        write_accepted_ = true;
    }
    return worst;
}

void RtlMxu::clock() {
    const MxuPins& p = model_->pins;
    deliver();
    *p.spm_req_ready = spm_accepted_;
    *p.acc_req_ready = acc_accepted_;
    model_->set_wave_cycle(now_.count);
    model_->tick();
    *p.desc_valid = 0;
    *p.spm_rsp_valid = 0;
    *p.acc_rsp_valid = 0;
    *p.acc_wr_ack = 0;
    spm_accepted_ = acc_accepted_ = write_accepted_ = false;
}

Advance RtlMxu::advance(Cycles limit) {
    Advance a;
    if (!busy_) return a;
    while (a.ran < limit) {
        const Access access = serve(a);
        if (access == Access::failed) {
            a.state = UnitState::retired;
            a.retired_id = id_;
            reset();
            return a;
        }
        if (access == Access::refused && !told_blocked_) {
            told_blocked_ = true;
            a.state = UnitState::blocked;
            return a;
        }
        // Refused again in the same cycle: the cycle passes. A refused write has no ready to hold it, so the unit's clock is gated.
        told_blocked_ = false;
        if (access == Access::refused) a.stall_memory += Cycles{1};
        if (*model_->pins.acc_wr_valid == 0 || write_accepted_) clock();
        now_ += Cycles{1};
        a.ran += Cycles{1};
        if (*model_->pins.done != 0) {
            ASSAY_CHECK(!model_->failed(), "an assertion of the matrix unit's RTL failed (its text precedes this)");
            busy_ = false;
            a.state = UnitState::retired;
            a.retired_id = id_;
            return a;
        }
    }
    ASSAY_CHECK(!model_->failed(), "an assertion of the matrix unit's RTL failed (its text precedes this)");
    a.state = UnitState::running;
    return a;
}

void RtlMxu::reset() {
    const MxuPins& p = model_->pins;
    spm_replies_.clear();
    acc_replies_.clear();
    write_acks_.clear();
    *p.desc_valid = *p.spm_rsp_valid = *p.acc_rsp_valid = *p.acc_wr_ack = 0;
    *p.spm_req_ready = *p.acc_req_ready = 0;
    spm_accepted_ = acc_accepted_ = write_accepted_ = told_blocked_ = busy_ = false;
    *p.rst_n = 0;
    model_->tick();  // reset is synchronous; these edges are no device time
    model_->tick();
    *p.rst_n = 1;
}

}  // namespace assay::rtl
