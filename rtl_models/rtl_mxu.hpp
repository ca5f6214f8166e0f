#pragma once
// The Verilated matrix unit behind the seam: clocks the model in bursts and turns its port handshakes into UnitPorts calls. Every cycle
// it reports is a clock edge of the RTL.
#include <memory>
#include <string>
#include <vector>

#include "rtl_models/mxu_model.hpp"
#include "systemc/unit.hpp"

namespace assay::rtl {

/// Answers of one port in request order, each with the cycle from which it may be delivered.
class ReplyQueue {
public:
    explicit ReplyQueue(std::size_t payload_bytes) : payload_bytes_(payload_bytes) { grow(); }
    /// Storage for the next answer's data; valid until the next call.
    std::byte* prepare();
    void push(chip::Cycles due);  ///< commits what prepare() gave
    bool ready(chip::Cycles now) const { return head_ != tail_ && due_[head_ & mask_] <= now; }
    const std::byte* front() const { return &data_[(head_ & mask_) * payload_bytes_]; }
    void pop() { ++head_; }
    void clear() { head_ = tail_; }

private:
    void grow();
    std::size_t payload_bytes_;
    std::size_t head_ = 0, tail_ = 0, mask_ = 0;
    std::vector<chip::Cycles> due_;
    std::vector<std::byte> data_;
};

class RtlMxu final : public chip::Unit {
public:
    /// `model` has the chip's geometry; `ports` outlives the unit.
    RtlMxu(std::unique_ptr<MxuModel> model, chip::UnitPorts& ports);
    [[nodiscard]] bool offer(std::uint32_t id, const simkernel::Decoded& descriptor, const simkernel::DescriptorWords& words,
                             chip::Cycles now) override;
    [[nodiscard]] chip::Advance advance(chip::Cycles limit) override;
    void reset() override;
    std::string_view implementation() const override { return name_; }

private:
    enum class Access { done, refused, failed };
    void deliver();
    Access serve(chip::Advance& a);
    Access read(bool valid, std::uint32_t addr, std::size_t bytes, bool& accepted, ReplyQueue& queue, chip::Advance& a);
    void clock();

    std::unique_ptr<MxuModel> model_;
    chip::UnitPorts& ports_;
    std::string name_;
    ReplyQueue spm_replies_, acc_replies_, write_acks_;
    chip::Cycles now_;
    std::uint32_t id_ = 0;
    bool busy_ = false;
    bool spm_accepted_ = false, acc_accepted_ = false, write_accepted_ = false;  // in the present cycle
    bool told_blocked_ = false;  // the present cycle's refusal has been reported to the caller
};

}  // namespace assay::rtl
