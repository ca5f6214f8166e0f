#pragma once
// Device time on the SystemC kernel. The only maker of sc_time in the model: everything else counts Cycles.
//
// One core cycle is kUnitsPerCycle kernel time units, whatever the chip's frequency, so that no period is ever rounded (940 MHz would be
// 1063.83 ps). clock_mhz turns cycles into seconds in reports only. Inside a cycle every process acts at a phase of its own, so events of
// one cycle have one order that neither the kernel's scheduling nor the quantum can change. Phase 0 is the host's.
#include <systemc>

#include "simkernel/types.hpp"

namespace assay::chip {

using simkernel::Cycles;
using Phase = unsigned;

class Clock {
public:
    static constexpr std::uint64_t kUnitsPerCycle = 1000;

    /// Kernel time of `cycles` cycles and `phase` phases; phase < kUnitsPerCycle.
    static sc_core::sc_time span(Cycles cycles, Phase phase = 0) {
        return sc_core::sc_time::from_value(cycles.count * kUnitsPerCycle + phase);
    }
    /// The cycle in which the instant `time` lies.
    static Cycles cycle_of(const sc_core::sc_time& time) { return {time.value() / kUnitsPerCycle}; }
    /// The initiator's local cycle of a b_transport call (IEEE 1666-2011 §11.1.2: sc_time_stamp() + delay).
    static Cycles local(const sc_core::sc_time& delay) { return cycle_of(sc_core::sc_time_stamp() + delay); }
};

}  // namespace assay::chip
