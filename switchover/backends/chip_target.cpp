#include "switchover/backends/chip_target.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rtl_models/rtl_units.hpp"
#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "systemc/chip.hpp"

namespace assay::switchover {

using namespace simkernel;

namespace {

/// Units that exist as RTL: the only place that lists them.
struct RtlUnit {
    std::string_view name;
    Engine engine;
    std::unique_ptr<chip::Unit> (*make)(const ChipConfig&, chip::UnitPorts&, const chip::WaveOptions&);
};
constexpr RtlUnit kRtlUnits[] = {{"mxu", Engine::matrix, &rtl::make_mxu}};

chip::ChipOptions chip_options(const std::vector<std::string>& rtl_units, const TargetOptions& options) {
    chip::ChipOptions out;
    out.seed = options.seed;
    out.quantum_cycles = options.quantum_cycles;
    out.silicon_shaped = options.silicon_shaped;
    out.jitter = options.jitter;
    for (const std::string& name : rtl_units) {
        const auto* unit = std::find_if(std::begin(kRtlUnits), std::end(kRtlUnits), [&](const RtlUnit& u) { return u.name == name; });
        if (unit == std::end(kRtlUnits)) {
            std::vector<std::string_view> known;
            for (const RtlUnit& u : kRtlUnits) known.push_back(u.name);
            throw Error(ErrorKind::usage, fmt::format("--target hybrid:{}: no RTL of that unit; known: {}", name, fmt::join(known, ", ")));
        }
        for (std::uint32_t core = 0; core < static_cast<std::uint32_t>(options.chip.cores); ++core)
            out.units[{core, unit->engine}] = [unit, core, options](chip::UnitPorts& ports) {
                // One wave file: core 0's unit.
                const chip::WaveOptions wave{core == 0 ? options.wave_path : "", options.wave_from, options.wave_count};
                return unit->make(options.chip, ports, wave);
            };
    }
    return out;
}

class ChipTarget final : public Target {
public:
    ChipTarget(std::string name, const std::vector<std::string>& rtl_units, const TargetOptions& options)
        : name_(std::move(name)), options_(options), rtl_matrix_(std::find(rtl_units.begin(), rtl_units.end(), "mxu") != rtl_units.end()), chip_(options.chip, chip_options(rtl_units, options)) {}

    Result<Identity> identity() override {
        Identity id;
        id.target = name_;
        id.magic = chip_.read_register(reg::magic);
        id.abi_version = chip_.read_register(reg::abi_version);
        id.config_hash = chip_.read_register(reg::config_hash);
        for (std::uint32_t core = 0; core < static_cast<std::uint32_t>(options_.chip.cores); ++core)
            for (const Engine engine : kAllEngine)
                id.units.push_back(fmt::format("core{}.{}: {}", core, simkernel::name_of(engine), chip_.unit_implementation(core, engine)));
        return id;
    }

    Capabilities capabilities() const override {
        return {{"cores", options_.chip.cores},       {"hbm_bytes", options_.chip.hbm_bytes}, {"spm_bytes", options_.chip.spm_bytes},
                {"backdoor", !options_.silicon_shaped}, {"interrupt", false},                    {"job_hooks", true},
                {"harvesting", false},                {"numerics", std::string("bit-exact")},
                {"matrix_types", std::string(rtl_matrix_ ? "i8 bf16" : "i8 bf16 f16 f8e4m3 f8e5m2")},
                {"memory_after_reset", std::string(options_.silicon_shaped ? "random" : "zero")}};
    }

    Result<std::uint32_t> read_register(std::uint32_t offset) override { return chip_.read_register(offset); }
    Status write_register(std::uint32_t offset, std::uint32_t value) override {
        chip_.write_register(offset, value);
        return Done{};
    }
    Status read_memory(DeviceAddr addr, std::span<std::byte> out) override { return moved(chip_.read_memory(addr, out), "read_memory", addr, out.size()); }
    Status write_memory(DeviceAddr addr, std::span<const std::byte> in) override {
        return moved(chip_.write_memory(addr, in), "write_memory", addr, in.size());
    }
    Result<HostBuffer> allocate_host(std::uint64_t bytes) override {
        const std::uint64_t offset = host_used_;
        host_used_ += (bytes + 4095) / 4096 * 4096;
        return HostBuffer{chip_.host_memory(offset, bytes), DeviceAddr{region::host + offset}};
    }
    Status sync_host(const HostBuffer&, SyncDirection) override { return Done{}; }  // the simulated device shares the host's memory
    Status fence() override { return Done{}; }                                      // writes above have completed when they return
    Result<Cycles> advance(Cycles budget) override { return chip_.advance(budget); }

    Result<ResetReport> reset(ResetKind kind) override {
        chip_.write_register(reg::reset_control, static_cast<std::uint32_t>(kind));
        ResetReport report{kind, false, ""};
        const bool idle = chip_.read_register(reg::last_sequence) == chip_.read_register(reg::completed_sequence) || kind == ResetKind::core;
        const bool alive = chip_.read_register(reg::magic) == kRegisters[0].reset && chip_.read_register(reg::error_code) == 0;
        report.verified = idle && alive;
        report.text = report.verified ? "idle, identity and error registers as after reset" : "registers do not read as after reset";
        return report;
    }

    Status backdoor_read(DeviceAddr addr, std::span<std::byte> out) override {
        if (options_.silicon_shaped) return Target::backdoor_read(addr, out);
        return moved(chip_.backdoor_read(addr, out), "backdoor_read", addr, out.size());
    }
    Status backdoor_write(DeviceAddr addr, std::span<const std::byte> in) override {
        if (options_.silicon_shaped) return Target::backdoor_write(addr, in);
        return moved(chip_.backdoor_write(addr, in), "backdoor_write", addr, in.size());
    }
    Status set_hooks(JobHooks* hooks) override {
        chip_.set_hooks(hooks);
        return Done{};
    }
    const ChipConfig* chip() const override { return &options_.chip; }
    std::string post_mortem() const override { return chip_.wait_graph(); }

private:
    Status moved(bool ok, const char* operation, DeviceAddr addr, std::size_t bytes) const {
        if (ok) return Done{};
        return TargetError{TargetErrorKind::bus_error, fmt::format("{}: {}: {} bytes at {:#x} are outside the device", name_, operation, bytes, addr.value)};
    }

    std::string name_;
    TargetOptions options_;
    const bool rtl_matrix_;  ///< the Verilated matrix unit multiplies int8 and bf16 alone
    chip::Chip chip_;
    std::uint64_t host_used_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_chip_target(const std::string& name, const std::vector<std::string>& rtl_units, const TargetOptions& options) {
    return std::make_unique<ChipTarget>(name, rtl_units, options);
}

}  // namespace assay::switchover
