#pragma once
// The driver: loads a program, feeds it, starts it, waits for it and reads what it left, on any Target.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simkernel/exec/faults.hpp"
#include "simkernel/exec/sanitizer.hpp"
#include "simkernel/program.hpp"
#include "support/tensor.hpp"
#include "switchover/target.hpp"

namespace assay::switchover {

struct RunOptions {
    std::uint64_t seed = 0;                        ///< of the poison pattern
    bool sanitize = false;
    bool trace = true;                             ///< retire records: cycles by layer and the Perfetto trace
    std::vector<simkernel::FaultSpec> faults;
    std::uint64_t deadline_cycles = 0;             ///< 0: derived from the size of the program
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

struct RunResult {
    simkernel::CompletionRecord completion;
    std::uint64_t cycles = 0;
    double device_seconds = 0;                      ///< first doorbell to completion seen
    std::map<std::string, Tensor> tensors;          ///< every slot of the program, by name
    std::map<std::string, std::uint64_t> unwritten; ///< bytes that still hold the poison, for slots where there are some
    std::vector<CorruptConstant> corrupt;           ///< constants that the device does not hold as the program has them
    std::vector<std::uint64_t> layer_cycles;        ///< by layer; they sum to `cycles` (empty without trace)
    std::vector<TraceEvent> trace;
    std::array<EngineCounters, simkernel::kAllEngine.size()> counters{};
    std::vector<simkernel::Finding> findings;       ///< of the sanitizer
    std::string post_mortem;
};

class Runtime {
public:
    explicit Runtime(Target& target) : target_(target) {}

    /// Checks that the program fits the chip, runs it once and reads every tensor back. A job that failed on the chip is a result, not an
    /// error: see completion. Throws Error(bad_input) for inputs that do not fit and for an illegal program.
    Result<RunResult> run(const simkernel::Program& program, const std::map<std::string, Tensor>& inputs, const RunOptions& options);

private:
    struct Layout {
        DeviceAddr descriptors, trace, completion;
    };
    Status load(const simkernel::Program& program, const std::map<std::string, Tensor>& inputs, const RunOptions& options, const Layout& at,
                simkernel::Sanitizer* sanitizer);
    Status start(const simkernel::Program& program, const RunOptions& options, const Layout& at);
    Status wait(std::uint32_t sequence, std::uint64_t deadline_cycles);
    Status collect(const simkernel::Program& program, const RunOptions& options, const Layout& at, RunResult& result);
    Status check_constants(const simkernel::Program& program, RunResult& result);
    Status write(DeviceAddr addr, std::span<const std::byte> bytes);
    Status read(DeviceAddr addr, std::span<std::byte> bytes);
    Result<std::uint64_t> read64(std::uint32_t lo_offset);
    Target& target_;
};

/// Chrome/Perfetto JSON trace: one track an engine, one slice a descriptor, named by its layer.
void write_perfetto(const std::string& path, const simkernel::Program& program, const RunResult& result, double clock_mhz);

}  // namespace assay::switchover
