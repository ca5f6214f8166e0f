#pragma once
// A chip behind some connection: simulated, real, remote. The runtime is written once against this interface and asks only for
// capabilities, never who it is. Calls come from one thread at a time; none throws for a failing device (docs/target.md).
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/exec/hooks.hpp"
#include "simkernel/types.hpp"
#include "switchover/result.hpp"

namespace assay::switchover {

using simkernel::Cycles;
using simkernel::DeviceAddr;

/// Facts with names and values: "hbm_bytes" 1073741824, "memory_after_reset" "zero" | "random", "interrupt" false, "backdoor" true,
/// "job_hooks" true (an observer can watch descriptors), "cores" 1, "numerics" "bit-exact",
/// "matrix_types" "i8 bf16" (what matmul descriptors may hold; absent: all).
using Fact = std::variant<bool, std::int64_t, std::string>;
using Capabilities = std::map<std::string, Fact>;
bool has(const Capabilities& capabilities, const std::string& flag);  ///< true only for a boolean fact that holds

struct Identity {
    std::string target;   ///< as named on the command line
    std::uint32_t magic = 0, abi_version = 0, config_hash = 0;
    std::vector<std::string> units;  ///< "core0.matrix: rtl 32x32", one an engine
};

/// Host memory that the device can reach. Stays valid until the target is destroyed.
struct HostBuffer {
    std::span<std::byte> host;
    DeviceAddr device;
};
enum class SyncDirection { to_device, from_device };
enum class ResetKind { core = 1, chip = 2 };
struct ResetReport {
    ResetKind kind = ResetKind::chip;
    bool verified = false;  ///< the postcondition was read back
    std::string text;
};

class Target {
public:
    virtual ~Target() = default;
    virtual Result<Identity> identity() = 0;
    virtual Capabilities capabilities() const = 0;

    /// Exactly one 32-bit transaction each, in program order.
    virtual Result<std::uint32_t> read_register(std::uint32_t offset) = 0;
    virtual Status write_register(std::uint32_t offset, std::uint32_t value) = 0;
    /// Front door, bulk. On bus_error nothing is guaranteed about the destination.
    virtual Status read_memory(DeviceAddr addr, std::span<std::byte> out) = 0;
    virtual Status write_memory(DeviceAddr addr, std::span<const std::byte> in) = 0;
    virtual Result<HostBuffer> allocate_host(std::uint64_t bytes) = 0;
    virtual Status sync_host(const HostBuffer& buffer, SyncDirection direction) = 0;
    /// After it returns, earlier writes are visible to the device and to later reads.
    virtual Status fence() = 0;
    /// Lets the device run for about `budget` cycles; returns early when a job completes. A back-off on silicon. Returns the cycles passed.
    virtual Result<Cycles> advance(Cycles budget) = 0;
    /// Resets and verifies by reading back that the device is idle with its identity.
    virtual Result<ResetReport> reset(ResetKind kind) = 0;

    /// Loading and post-mortem without time; capability "backdoor".
    virtual Status backdoor_read(DeviceAddr addr, std::span<std::byte> out);
    virtual Status backdoor_write(DeviceAddr addr, std::span<const std::byte> in);
    /// Watches and disturbs jobs; capability "job_hooks". Not owned; nullptr removes.
    virtual Status set_hooks(simkernel::JobHooks* hooks);
    /// The configuration of a simulated chip; nullptr when only the device's own registers know it.
    virtual const simkernel::ChipConfig* chip() const { return nullptr; }
    /// Text about the last failed job beyond the completion record (a wait graph); empty when there is none.
    virtual std::string post_mortem() const { return {}; }
};

struct TargetOptions {
    simkernel::ChipConfig chip;
    std::uint64_t seed = 0;
    bool silicon_shaped = false;
    bool jitter = false;
    std::uint64_t quantum_cycles = 1000;
    std::string wave_path;
    std::uint64_t wave_from = 0, wave_count = 0;
};

/// Makes a target from its name: "tlm", "hybrid:mxu". Throws Error(usage) naming what is known.
std::unique_ptr<Target> make_target(const std::string& name, const TargetOptions& options);

struct TargetListing {
    std::string name, text;
};
std::vector<TargetListing> list_targets();

}  // namespace assay::switchover
