#include "systemc/core.hpp"

#include <string>

#include "support/error.hpp"

namespace assay::chip {
namespace {

Cycles reset_watchdog_limit() {
    for (const simkernel::RegisterInfo& info : simkernel::kRegisters)
        if (info.offset == simkernel::reg::watchdog_cycles) return {info.reset};
    return {};
}

}  // namespace

Core::Core(sc_core::sc_module_name name, Timeline& timeline, const simkernel::ChipConfig& config, const ChipOptions& options,
           std::uint32_t number, SemaphoreFile& shared_semaphores, simkernel::ExternalMemory& external, simkernel::ValueQueue& values, Noc& noc)
    : sc_module(name),
      number_(number),
      memory_(config),
      semaphores_(static_cast<std::size_t>(config.semaphores)),
      processor_("processor", timeline, phase(number, simkernel::kAllEngine.size()), config, number, semaphores_, values),
      watchdog_("watchdog", timeline, phase(number, simkernel::kAllEngine.size() + 1)),
      memory_port_("memory_port", config, memory_, semaphores_, [this] { return processor_.busy(); }) {
    ASSAY_CHECK(number < kMostCores, "each process of the chip has a phase of its own within a cycle");
    std::vector<EngineProcess*> engines;
    for (const simkernel::Engine engine : simkernel::kAllEngine) {
        const EngineContext context{config, number, engine, semaphores_, shared_semaphores, memory_, external, values,
                                    options.jitter || options.silicon_shaped, options.seed};
        engines_.push_back(std::make_unique<EngineProcess>(std::string(name_of(engine)).c_str(), timeline,
                                                           phase(number, static_cast<std::size_t>(engine)), context));
        engines_.back()->to_noc.bind(noc.from_cores);
        const auto unit = options.units.find({number, engine});
        engines_.back()->install(unit == options.units.end() ? UnitFactory{} : unit->second);
        engines.push_back(engines_.back().get());
    }
    processor_.to_noc.bind(noc.from_cores);
    processor_.connect(engines, watchdog_);
    watchdog_.on_expiry([this](Cycles at) { processor_.watchdog_expired(at); });
    noc.to_cores[number].bind(memory_port_.from_noc);
    reset();
}

void Core::reset() {
    for (auto& engine : engines_) engine->reset();
    processor_.reset();
    watchdog_.reset(reset_watchdog_limit());
    semaphores_.clear();
}

void Core::scramble(std::uint64_t seed) {
    memory_.clear();
    if (seed == 0) return;
    RandomStream random(seed, number_);
    random.fill(memory_.scratchpad());
    random.fill(memory_.accumulator());
}

std::uint64_t Core::counter(simkernel::Engine engine, simkernel::Counter counter, Cycles at) const {
    const EngineCounters sums = engines_[static_cast<std::size_t>(engine)]->counters(at);
    switch (counter) {
        case simkernel::Counter::busy: return sums.busy;
        case simkernel::Counter::stall_semaphore: return sums.stall_semaphore;
        case simkernel::Counter::stall_memory: return sums.stall_memory;
        case simkernel::Counter::idle: return processor_.job_cycles(at).count - sums.busy - sums.stall_semaphore - sums.stall_memory;
        case simkernel::Counter::retired: return sums.retired;
        case simkernel::Counter::work: return sums.work;
    }
    return 0;
}

}  // namespace assay::chip
