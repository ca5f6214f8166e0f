#pragma once
// The sequential interpreter: one descriptor at a time in stream order. It is the meaning of a program; every other fidelity must leave
// the same bytes.
#include <cstdint>
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
    LocalMemory& local() { return local_; }
    const std::vector<std::uint64_t>& semaphores() const { return semaphores_; }
    void reset();

private:
    const ChipConfig config_;
    ExternalMemory& external_;
    LocalMemory local_;
    std::vector<std::uint64_t> semaphores_;
};

}  // namespace assay::simkernel
