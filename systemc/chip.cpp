#include "systemc/chip.hpp"

#include <algorithm>
#include <cstdio>

#include "support/error.hpp"
#include "systemc/device_memory.hpp"
#include "systemc/host_link.hpp"
#include "systemc/host_port.hpp"
#include "systemc/shared_semaphore_port.hpp"

// libsystemc.so refers to sc_main. A program with a main of its own needs no other; one whose main the linker took from libsystemc must
// define sc_main, and would otherwise do nothing and say so.
extern "C" __attribute__((weak)) int sc_main(int, char*[]);
extern "C" int sc_main(int, char*[]) {
    std::fputs("assay: main() of libsystemc runs, but the program defines no sc_main; put its own main in its objects\n", stderr);
    return 3;
}

namespace assay::chip {
namespace {

/// Longest piece of a front-door transfer, which bounds the payload's 32-bit length.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 26;

class Top final : public sc_core::sc_module {
public:
    tlm_utils::simple_initiator_socket<Top> to_registers{"to_registers"};
    tlm_utils::simple_initiator_socket<Top> to_memory{"to_memory"};

    /// The name must outlive construction: it is what makes this module the parent of the members built below.
    Top(sc_core::sc_module_name name, const simkernel::ChipConfig& chip_config, const ChipOptions& chip_options)
        : sc_module(name),
          config(chip_config),
          options(chip_options),
          timeline("timeline", {std::max<std::uint64_t>(1, options.quantum_cycles)}),
          hbm("hbm", config),
          host_link("host_link", config, host_memory),
          noc("noc", config, options.jitter || options.silicon_shaped, options.seed),
          device_memory(hbm.memory(), host_memory),
          values(config, options.lag_values && options.units.empty()),
          shared_semaphores(static_cast<std::size_t>(config.semaphores), {static_cast<std::uint64_t>(config.noc_latency_cycles)}),
          cores(make_cores()),
          shared_semaphore_port("shared_semaphores", {static_cast<std::uint64_t>(config.spm_latency_cycles)}, shared_semaphores, [this] { return busy(); }),
          registers(config, core_pointers(), shared_semaphores, {[this] { drop_traffic(); }, [this] { reset(); }}),
          host_port("host_port", config, registers, host_memory) {
        to_registers.bind(host_port.registers);
        to_memory.bind(host_port.memory);
        host_port.to_noc.bind(noc.from_host);
        noc.to_hbm.bind(hbm.from_noc);
        noc.to_host.bind(host_link.from_noc);
        noc.to_shared_semaphores.bind(shared_semaphore_port.from_noc);
        for (auto& core : cores)
            core->processor().on_completion([this](Cycles at) {
                registers.job_completed();
                timeline.job_completed(at);
            });
        scramble();
    }
    ~Top() override {
        try {
            values.join();  // its thread uses the memories of cores, which go before it
        } catch (...) {  // what failed was reported at the job's end, or nobody waits for it any more
        }
    }

    const simkernel::ChipConfig config;
    const ChipOptions options;
    Timeline timeline;
    HostMemory host_memory;
    HbmController hbm;
    HostLink host_link;
    Noc noc;
    DeviceMemory device_memory;
    simkernel::ValueQueue values;
    SemaphoreFile shared_semaphores;
    std::vector<std::unique_ptr<Core>> cores;
    SharedSemaphorePort shared_semaphore_port;
    RegisterFile registers;
    HostPort host_port;
    Initiator initiator;

private:
    std::vector<std::unique_ptr<Core>> make_cores() {
        std::vector<std::unique_ptr<Core>> made;
        for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(config.cores); ++i)
            made.push_back(std::make_unique<Core>(("core" + std::to_string(i)).c_str(), timeline, config, options, i, shared_semaphores,
                                                  device_memory, values, noc));
        return made;
    }
    std::vector<Core*> core_pointers() const {
        std::vector<Core*> pointers;
        for (const auto& core : cores) pointers.push_back(core.get());
        return pointers;
    }
    bool busy() const {
        return std::any_of(cores.begin(), cores.end(), [](const auto& core) { return core->processor().busy(); });
    }
    /// An idle chip precharges its banks and has nothing in flight, so a job's cycles do not depend on what ran before.
    void drop_traffic() {
        values.join();
        hbm.reset();
        noc.drop_traffic();
        host_link.reset();
    }
    /// Chip reset: traffic, jitter and the contents of HBM and SRAMs as after power-on.
    void reset() {
        drop_traffic();
        shared_semaphores.clear();
        noc.reset();
        ++resets_;
        scramble();
    }
    /// Zero, or on a silicon-shaped chip what nobody can rely upon.
    void scramble() {
        const std::uint64_t seed = options.silicon_shaped ? contents_seed() : 0;
        hbm.memory().clear(seed);
        for (auto& core : cores) core->scramble(seed);
    }
    /// Not zero, and another after each reset: contents must not be relied upon.
    std::uint64_t contents_seed() const { return RandomStream(options.seed, resets_).next() | 1u; }

    std::uint64_t resets_ = 0;
};

bool elaborated = false;

/// Of an address among the shared semaphores.
std::optional<std::uint64_t> shared_offset(simkernel::DeviceAddr addr) {
    if (addr.value < simkernel::region::shared_semaphores || addr.value >= simkernel::region::host) return std::nullopt;
    return addr.value - simkernel::region::shared_semaphores;
}

}  // namespace

struct Chip::Impl {
    Impl(const simkernel::ChipConfig& config, const ChipOptions& options) : top("chip", config, options) {
        sc_core::sc_start(sc_core::SC_ZERO_TIME);  // ends elaboration; processes start asleep
    }
    Top top;

    /// Register accesses and transfers happen host.latency_cycles after the host asked.
    void reach_chip() { pass({static_cast<std::uint64_t>(top.config.host_latency_cycles)}); }
    void pass(Cycles span) { top.timeline.run_until(Timeline::now() + span, false); }

    template <class Transfer>
    bool front_door(simkernel::DeviceAddr addr, std::uint64_t bytes, const Transfer& transfer) {
        reach_chip();
        for (std::uint64_t done = 0; done < bytes;) {
            const std::uint64_t piece = std::min(kPieceBytes, bytes - done);
            top.values.join();
            const PortReply reply = transfer(addr.value + done, done, piece);
            if (reply.error) return false;
            pass(reply.due - Timeline::now());
            done += piece;
        }
        return true;
    }
    /// The core whose local region holds `addr`; null for HBM, host memory and addresses of no core.
    Core* core_of(std::uint64_t addr) {
        namespace region = simkernel::region;
        if (addr < region::spm || addr >= region::host) return nullptr;
        const std::uint64_t core = (addr & (region::spm - 1)) / region::spm_core_stride;
        return core < top.cores.size() ? top.cores[core].get() : nullptr;
    }
};

Chip::Chip(const simkernel::ChipConfig& config, ChipOptions options) {
    if (elaborated)
        throw Error(ErrorKind::internal, "chip: SystemC elaborates once a process; reset this chip, or start another process for the next one");
    elaborated = true;
    impl_ = std::make_unique<Impl>(config, options);
}

Chip::~Chip() = default;

std::uint32_t Chip::read_register(std::uint32_t offset) {
    impl_->reach_chip();
    std::uint32_t value = 0;
    (void)impl_->top.initiator.read(impl_->top.to_registers, offset, std::as_writable_bytes(std::span(&value, 1)), sc_core::SC_ZERO_TIME);
    return value;
}

void Chip::write_register(std::uint32_t offset, std::uint32_t value) {
    impl_->reach_chip();
    (void)impl_->top.initiator.write(impl_->top.to_registers, offset, std::as_bytes(std::span(&value, 1)), sc_core::SC_ZERO_TIME);
}

bool Chip::read_memory(simkernel::DeviceAddr addr, std::span<std::byte> out) {
    return impl_->front_door(addr, out.size(), [&](std::uint64_t at, std::uint64_t offset, std::uint64_t bytes) {
        return impl_->top.initiator.read(impl_->top.to_memory, at, out.subspan(offset, bytes), sc_core::SC_ZERO_TIME);
    });
}

bool Chip::write_memory(simkernel::DeviceAddr addr, std::span<const std::byte> in) {
    return impl_->front_door(addr, in.size(), [&](std::uint64_t at, std::uint64_t offset, std::uint64_t bytes) {
        return impl_->top.initiator.write(impl_->top.to_memory, at, in.subspan(offset, bytes), sc_core::SC_ZERO_TIME);
    });
}

bool Chip::backdoor_read(simkernel::DeviceAddr addr, std::span<std::byte> out) {
    if (impl_->top.options.silicon_shaped) return false;
    impl_->top.values.join();
    if (Core* core = impl_->core_of(addr.value)) return core->memory_port().read(addr.value, out, Timeline::now());
    if (const auto offset = shared_offset(addr)) return impl_->top.shared_semaphores.read(*offset, out, Timeline::now());
    return impl_->top.device_memory.read(addr.value, out);
}

bool Chip::backdoor_write(simkernel::DeviceAddr addr, std::span<const std::byte> in) {
    if (impl_->top.options.silicon_shaped) return false;
    impl_->top.values.join();
    if (Core* core = impl_->core_of(addr.value)) return core->memory_port().write(addr.value, in);
    if (const auto offset = shared_offset(addr)) return impl_->top.shared_semaphores.write(*offset, in);
    return impl_->top.device_memory.write(addr.value, in);
}

std::span<std::byte> Chip::host_memory(std::uint64_t offset, std::uint64_t bytes) { return impl_->top.host_memory.allocate(offset, bytes); }

simkernel::Cycles Chip::advance(simkernel::Cycles limit) {
    const Cycles before = Timeline::now();
    impl_->top.timeline.run_until(before + limit, true);
    return Timeline::now() - before;
}

simkernel::Cycles Chip::now() const { return Timeline::now(); }

void Chip::set_hooks(simkernel::JobHooks* hooks) {
    for (auto& core : impl_->top.cores) core->processor().set_hooks(hooks);
}

std::string Chip::wait_graph() const {
    std::string text;
    for (const auto& core : impl_->top.cores) text += core->processor().wait_graph();
    return text;
}

std::string Chip::unit_implementation(std::uint32_t core, simkernel::Engine engine) const {
    ASSAY_CHECK(core < impl_->top.cores.size(), "callers name a core of the chip");
    return std::string(impl_->top.cores[core]->engine(engine).implementation());
}

std::uint64_t Chip::touched_bytes() const { return impl_->top.hbm.memory().touched_bytes(); }

}  // namespace assay::chip
