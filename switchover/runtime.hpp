#pragma once
// The driver: loads a program, feeds it, starts it, waits for it and reads what it left, on any Target.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simkernel/exec/faults.hpp"
#include "simkernel/exec/sanitizer.hpp"
#include "simkernel/program.hpp"
#include "support/tensor.hpp"
#include "switchover/target.hpp"

namespace assay::switchover {

/// Executes the model of a host step: its outputs by name. May throw Error.
using HostExecutor = std::function<std::map<std::string, Tensor>(const simkernel::HostStep&, const std::map<std::string, Tensor>& inputs)>;

struct RunOptions {
    std::uint64_t seed = 0;                        ///< of the poison pattern
    bool sanitize = false;
    bool trace = true;                             ///< retire records: cycles by layer and the Perfetto trace
    std::vector<simkernel::FaultSpec> faults;
    std::uint64_t deadline_cycles = 0;             ///< of one job; 0: derived from the size of the program
    std::set<std::string> resident;                ///< inputs that device memory holds already, from the program before
    HostExecutor host;                             ///< needed by programs with host steps
};

struct TraceEvent {
    std::uint32_t descriptor = 0;
    simkernel::TraceRecord record;
};

/// A constant (weight, bias, scale) whose device bytes after the run are not those of the program: memory corruption.
struct CorruptConstant {
    std::uint64_t address = 0;       ///< first wrong byte
    std::uint64_t wrong_bytes = 0;
    std::string constant;            ///< its slot's name; "" when no slot covers it
    std::uint32_t layer = 0;         ///< first layer that loads it
};

using EngineCounters = std::array<std::uint64_t, simkernel::kCounterCount>;
using CoreCounters = std::array<EngineCounters, simkernel::kAllEngine.size()>;

struct RunResult {
    simkernel::CompletionRecord completion;
    std::uint64_t cycles = 0;                       ///< over all jobs; those of host steps are not the chip's
    double device_seconds = 0;                      ///< doorbell to completion seen, over all jobs of the program
    double host_seconds = 0;                        ///< in host steps, with their transfers
    std::map<std::string, Tensor> tensors;          ///< every slot of the program, by name
    std::map<std::string, std::uint64_t> unwritten; ///< bytes that still hold the poison, for slots where there are some
    std::vector<CorruptConstant> corrupt;           ///< constants that the device does not hold as the program has them
    std::vector<std::uint64_t> layer_cycles;        ///< by layer; they sum to `cycles` (empty without trace)
    std::vector<TraceEvent> trace;
    CoreCounters counters{};                        ///< over all cores of the program
    std::vector<CoreCounters> core_counters;         ///< by core that the program runs on
    std::vector<simkernel::Finding> findings;       ///< of the sanitizer
    std::string post_mortem;
};

class Runtime {
public:
    explicit Runtime(Target& target) : target_(target) {}

    /// Checks that the program fits the chip, runs it once and reads every tensor back. A job that failed on the chip is a result, not an
    /// error: see completion, whose descriptor counts in the program's stream. A program with host steps runs as several jobs, the steps between
    /// them; a job runs on every core that the program names. Throws Error(bad_input) for inputs that
    /// do not fit and for an illegal program.
    Result<RunResult> run(const simkernel::Program& program, const std::map<std::string, Tensor>& inputs, const RunOptions& options);

private:
    struct Layout {
        std::vector<DeviceAddr> descriptors, trace;  ///< by core
        DeviceAddr completion;
    };
    struct Job;  ///< what one run shares between its jobs
    Status load(const Job& job);
    Status load_descriptors(const Job& job);
    Status run_job(Job& job, std::uint32_t first, std::uint32_t last);
    Status run_host_step(Job& job, const simkernel::HostStep& step);
    Status wait(std::uint32_t sequence, std::uint64_t deadline_cycles);
    Status collect_trace(Job& job, std::uint32_t core, std::uint32_t first, std::uint32_t last);
    Status add_counters(RunResult& result, std::uint32_t cores);
    Status write64(std::uint32_t lo_offset, std::uint64_t value);
    Status collect(Job& job);
    Status check_constants(const simkernel::Program& program, RunResult& result);
    Status write(DeviceAddr addr, std::span<const std::byte> bytes);
    Status read(DeviceAddr addr, std::span<std::byte> bytes);
    Result<std::uint64_t> read64(std::uint32_t lo_offset);
    Target& target_;
};

/// Chrome/Perfetto JSON trace: one track an engine (of each core), one slice a descriptor, named by its layer.
void write_perfetto(const std::string& path, const simkernel::Program& program, const RunResult& result, double clock_mhz);

}  // namespace assay::switchover
