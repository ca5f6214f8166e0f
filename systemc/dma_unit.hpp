#pragma once
// Behavioural load or store engine. Values move at the start of the descriptor; time is that of its bursts: setup, then one burst issued a
// cycle while fewer than dma.outstanding are in flight, each reserved in the NoC and HBM at its own cycle, until the last is answered. A
// fill writes local memory only, one port width (noc.bytes_per_cycle) a cycle. An indexed transfer reads its list first: the scratchpad's
// latency and one port width a cycle; then each run is issued by itself, for neighbours in the list are not neighbours in memory.
// stall_memory: cycles in which no burst could be issued because all were in flight, or the last answers were awaited.
#include <deque>

#include "simkernel/exec/semantics.hpp"
#include "systemc/engine_ports.hpp"
#include "systemc/transfer_plan.hpp"

namespace assay::chip {

class DmaUnit final : public Unit {
public:
    explicit DmaUnit(EnginePorts& ports) : ports_(ports) {}
    bool offer(std::uint32_t id, const simkernel::Decoded& descriptor, const simkernel::DescriptorWords& words, Cycles now) override;
    Advance advance(Cycles limit) override;
    void reset() override;
    std::string_view implementation() const override { return "behavioural"; }

private:
    void plan(const simkernel::Decoded& descriptor, std::vector<std::int64_t> rows);
    bool issue_bursts(Cycles end, Advance& result);
    void spend(Cycles until, bool stalled, Advance& result);

    EnginePorts& ports_;
    bool busy_ = false;
    std::uint32_t id_ = 0;
    simkernel::Effect effect_;
    Cycles time_;              ///< the unit's clock
    Cycles private_end_;       ///< end of setup (and of a fill): no port is used before
    bool write_ = false;
    TransferPlan plan_;
    std::deque<Cycles> in_flight_;  ///< due cycles, in issue order
    Cycles last_due_;
};

}  // namespace assay::chip
