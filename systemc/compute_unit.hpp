#pragma once
// Behavioural matrix and vector units: values by the one meaning of a descriptor (simkernel::execute), in the order of their starts; cycles by a
// timing function of the descriptor alone. All its work is private.
#include "simkernel/exec/semantics.hpp"
#include "systemc/engine_ports.hpp"

namespace assay::chip {

class ComputeUnit : public Unit {
public:
    explicit ComputeUnit(EnginePorts& ports) : ports_(ports) {}
    bool offer(std::uint32_t id, const simkernel::Decoded& descriptor, const simkernel::DescriptorWords& words, Cycles now) override;
    Advance advance(Cycles limit) override;
    void reset() override { busy_ = false; }
    std::string_view implementation() const override { return "behavioural"; }

protected:
    /// Decode to retirement, at least 1.
    virtual Cycles cycles_of(const simkernel::Decoded& descriptor, const simkernel::ChipConfig& config) const = 0;

private:
    EnginePorts& ports_;
    bool busy_ = false;
    std::uint32_t id_ = 0;
    Cycles left_;
    simkernel::Effect effect_;
};

}  // namespace assay::chip
