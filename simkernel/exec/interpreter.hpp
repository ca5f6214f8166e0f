#pragma once
// The sequential interpreter: one descriptor at a time in stream order, whichever core it belongs to. It is the meaning of a program; every other fidelity must leave
// the same bytes.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simkernel/exec/hooks.hpp"
#include "simkernel/exec/semantics.hpp"

namespace assay::simkernel {

struct JobResult {
    JobStatus status = JobStatus::done;
    ErrorCode code = ErrorCode::none;
    Engine engine = Engine::load;
    std::uint32_t descriptor = 0;  ///< faulting one
    std::uint64_t address = 0;
    std::string text;
    bool saturated = false;
};

/// HBM alone as an external memory.
class HbmOnly final : public ExternalMemory {
public:
    explicit HbmOnly(SparseMemory& memory) : memory_(memory) {}
    bool read(std::uint64_t addr, std::span<std::byte> out) override { return memory_.read(addr, out); }
    bool write(std::uint64_t addr, std::span<const std::byte> in) override { return memory_.write(addr, in); }

private:
    SparseMemory& memory_;
};

class Interpreter {
public:
    Interpreter(const ChipConfig& config, ExternalMemory& external);
    /// Runs descriptors [start, min(stop_after, last)]. Semaphores start at zero when start is 0 and keep their values otherwise.
    JobResult run(std::span<const DescriptorWords> program, std::uint32_t start = 0, std::uint32_t stop_after = UINT32_MAX,
                  JobHooks* hooks = nullptr);
    LocalMemory& local(std::uint32_t core = 0);
    /// Values of a core's own semaphores; of the shared ones for SemaphoreId::kShared.
    const std::vector<std::uint64_t>& semaphores(std::uint32_t core = 0) const;
    void reset();

private:
    std::uint64_t& semaphore(SemaphoreId id);
    const ChipConfig config_;
    ExternalMemory& external_;
    std::vector<std::unique_ptr<LocalMemory>> local_;    ///< by core, made when first used
    std::vector<std::vector<std::uint64_t>> semaphores_;  ///< by core; last: shared
};

}  // namespace assay::simkernel
