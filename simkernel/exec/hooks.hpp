#pragma once
// What an observer may do to a running job at any fidelity: see each descriptor at dispatch (in stream order) and at retirement, and plant
// faults. The sanitizer and the fault plan are the implementations.
#include <cstdint>

#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/memory.hpp"

namespace assay::simkernel {

class JobHooks {
public:
    virtual ~JobHooks() = default;
    /// Called once for each descriptor when the command processor dispatches it, in stream order.
    virtual void dispatched(std::uint32_t core, std::uint32_t index, const Decoded& descriptor) { (void)core, (void)index, (void)descriptor; }
    /// True: this descriptor's signal is lost (fault injection).
    virtual bool drops_signal(std::uint32_t core, std::uint32_t index) { (void)core, (void)index; return false; }
    /// Called when it retires, before its signal is seen by anyone. May change device memory (fault injection).
    virtual void retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) { (void)core, (void)index, (void)memory; }
};

}  // namespace assay::simkernel
