#pragma once
// A job as its core sees it, and what the engines of a core ask of its command processor.
#include <array>
#include <cstdint>

#include "simkernel/exec/hooks.hpp"
#include "systemc/unit.hpp"

namespace assay::chip {

/// The job registers, latched at the doorbell.
struct JobRequest {
    std::uint64_t program = 0;
    std::uint32_t count = 0;
    std::uint32_t start = 0;
    std::uint32_t stop_after = 0;
    std::uint64_t completion = 0;
    std::uint64_t trace = 0;
    bool trace_enable = false;
};

/// `engine` of errors that no engine raised: the command processor's own (unknown opcode, fetch, completion record).
inline constexpr std::uint32_t kNoEngine = 0xFF;

struct ErrorRecord {
    simkernel::ErrorCode code = simkernel::ErrorCode::none;
    std::uint32_t engine = 0;
    std::uint32_t descriptor = 0;
    std::uint64_t address = 0;
    std::uint32_t core = 0;
};

/// Performance counters of one engine. Each cycle of a job (doorbell to the cycle in which the last engine drained) belongs to exactly one of
///   busy            executing a descriptor and not waiting for memory,
///   stall_memory    executing, but the unit could do nothing until memory answered,
///   stall_semaphore free to start its head descriptor, but a semaphore is below the value awaited,
///   idle            no descriptor at hand: the rest.
struct EngineCounters {
    std::uint64_t busy = 0, stall_semaphore = 0, stall_memory = 0;
    std::uint64_t retired = 0;
    std::uint64_t work = 0;
};

class JobControl {
public:
    virtual ~JobControl() = default;
    /// Records the job's first error and stops it: nothing more is dispatched or started, running descriptors drain.
    virtual void raise(const ErrorRecord& error, Cycles at) = 0;
    virtual bool failing() const = 0;
    /// An engine took a descriptor out of its queue.
    virtual void slot_freed(simkernel::Engine engine, Cycles at) = 0;
    /// An engine's step ended without its asking for another: it waits for others, or has nothing to do.
    virtual void parked(Cycles at) = 0;
    virtual void descriptor_retired(bool saturated, Cycles at) = 0;
    /// A write that no engine waits for is acknowledged at `due`; the job completes after it.
    virtual void posted_write(Cycles due) = 0;
    virtual const JobRequest& request() const = 0;
    virtual Cycles doorbell() const = 0;
    virtual simkernel::JobHooks* hooks() const = 0;
};

}  // namespace assay::chip
