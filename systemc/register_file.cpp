#include "systemc/register_file.hpp"

#include <algorithm>

#include "simkernel/chip_config.hpp"

namespace assay::chip {
namespace {

namespace reg = simkernel::reg;
using simkernel::Access;

constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
constexpr std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

/// Job, error, sequence and watchdog registers: the block of the selected core.
bool per_core(std::uint32_t offset) {
    return (offset >= reg::program_lo && offset <= reg::completed_sequence) || offset == reg::watchdog_cycles ||
           (offset >= reg::error_code && offset <= reg::sticky_status) || offset == reg::error_core;
}

constexpr std::uint32_t kCountersEnd = reg::counters + simkernel::kAllEngine.size() * reg::counters_engine_stride;

bool is_counter(std::uint32_t offset) {
    return offset >= reg::counters && offset < kCountersEnd &&
           (offset - reg::counters) % reg::counters_engine_stride < simkernel::kCounterCount * 8;
}

}  // namespace

RegisterFile::RegisterFile(const simkernel::ChipConfig& config, std::vector<Core*> cores, SemaphoreFile& shared_semaphores, Actions actions)
    : config_(config), cores_(std::move(cores)), shared_semaphores_(shared_semaphores), actions_(std::move(actions)), core_storage_(cores_.size()) {
    reset_storage();
}

void RegisterFile::reset_storage() {
    for (const simkernel::RegisterInfo& info : simkernel::kRegisters) {
        if (info.access != Access::rw) continue;
        if (!per_core(info.offset)) chip_storage_[info.offset] = info.reset;
        else
            for (auto& storage : core_storage_) storage[info.offset] = info.reset;
    }
    bus_errors_ = interrupt_status_ = 0;
}

const simkernel::RegisterInfo* RegisterFile::find(std::uint32_t offset) const {
    const auto at = std::find_if(simkernel::kRegisters.begin(), simkernel::kRegisters.end(),
                                 [&](const simkernel::RegisterInfo& info) { return info.offset == offset; });
    return at == simkernel::kRegisters.end() ? nullptr : &*at;
}

Core* RegisterFile::selected() {
    const std::uint32_t core = chip_storage_.at(reg::core_select);
    return core < cores_.size() ? cores_[core] : nullptr;
}

std::map<std::uint32_t, std::uint32_t>& RegisterFile::storage_of(std::uint32_t offset) {
    return per_core(offset) ? core_storage_[chip_storage_.at(reg::core_select)] : chip_storage_;
}

std::uint32_t RegisterFile::stored(std::uint32_t offset) const {
    return per_core(offset) ? core_storage_[chip_storage_.at(reg::core_select)].at(offset) : chip_storage_.at(offset);
}

std::uint32_t RegisterFile::read(std::uint32_t offset, Cycles at) {
    const simkernel::RegisterInfo* info = find(offset);
    const bool counter = offset % 4 == 0 && is_counter(offset);
    Core* core = selected();
    if ((info == nullptr && !counter) || ((counter || per_core(offset)) && core == nullptr)) {
        ++bus_errors_;
        return 0;
    }
    if (counter) return read_counter(*core, offset, at);
    if (info->access == Access::wo) return 0;
    if (info->access == Access::rw) return stored(offset);
    switch (offset) {
        case reg::heartbeat_lo: return low(at.count);
        case reg::heartbeat_hi: return high(at.count);
        case reg::bus_error_count: return bus_errors_;
        case reg::interrupt_status: return interrupt_status_;
        default: break;
    }
    if (per_core(offset)) return read_core(*core, offset, at);
    return info->has_reset ? info->reset : read_constant(offset);
}

std::uint32_t RegisterFile::read_constant(std::uint32_t offset) const {
    switch (offset) {
        case reg::config_hash: return simkernel::config_hash(config_);
        case reg::core_count: return low(static_cast<std::uint64_t>(config_.cores));
        case reg::mxu_rows: return low(static_cast<std::uint64_t>(config_.mxu_rows));
        case reg::mxu_cols: return low(static_cast<std::uint64_t>(config_.mxu_cols));
        case reg::vpu_lanes: return low(static_cast<std::uint64_t>(config_.vpu_lanes));
        case reg::spm_bytes: return low(static_cast<std::uint64_t>(config_.spm_bytes));
        case reg::acc_bytes: return low(static_cast<std::uint64_t>(config_.acc_bytes));
        case reg::hbm_bytes_lo: return low(static_cast<std::uint64_t>(config_.hbm_bytes));
        case reg::hbm_bytes_hi: return high(static_cast<std::uint64_t>(config_.hbm_bytes));
        case reg::semaphore_count: return low(static_cast<std::uint64_t>(config_.semaphores));
        default: return 0;
    }
}

std::uint32_t RegisterFile::read_core(Core& core, std::uint32_t offset, Cycles) const {
    CommandProcessor& processor = core.processor();
    const ErrorRecord& error = processor.error();
    switch (offset) {
        case reg::last_sequence: return processor.last_sequence();
        case reg::completed_sequence: return processor.completed_sequence();
        case reg::error_code: return static_cast<std::uint32_t>(error.code);
        case reg::error_engine: return error.engine;
        case reg::error_descriptor: return error.descriptor;
        case reg::error_core: return error.core;
        case reg::error_address_lo: return low(error.address);
        case reg::error_address_hi: return high(error.address);
        case reg::sticky_status: return processor.sticky_status();
        default: return 0;
    }
}

std::uint32_t RegisterFile::read_counter(Core& core, std::uint32_t offset, Cycles at) const {
    const std::uint32_t position = offset - reg::counters;
    const auto engine = static_cast<simkernel::Engine>(position / reg::counters_engine_stride);
    const std::uint32_t within = position % reg::counters_engine_stride;
    const std::uint64_t value = core.counter(engine, static_cast<simkernel::Counter>(within / 8), at);
    return within % 8 == 0 ? low(value) : high(value);
}

void RegisterFile::write(std::uint32_t offset, std::uint32_t value, Cycles at) {
    const simkernel::RegisterInfo* info = find(offset);
    if (info == nullptr) {
        if (offset % 4 != 0 || !is_counter(offset)) ++bus_errors_;
        return;
    }
    if ((per_core(offset) || offset == reg::reset_control) && selected() == nullptr && !(offset == reg::reset_control && value == 2)) {
        ++bus_errors_;
        return;
    }
    switch (info->access) {
        case Access::ro: return;
        case Access::rw:
            storage_of(offset)[offset] = value;
            if (offset == reg::watchdog_cycles) selected()->watchdog().set_limit({value}, at);
            return;
        case Access::w1c:
            if (offset == reg::interrupt_status) interrupt_status_ &= ~value;
            if (offset == reg::sticky_status) selected()->processor().clear_sticky(value);
            return;
        case Access::wo: write_control(offset, value, at); return;
    }
}

void RegisterFile::write_control(std::uint32_t offset, std::uint32_t value, Cycles at) {
    if (offset == reg::doorbell) {
        ring({chip_storage_.at(reg::core_select)}, at);
    } else if (offset == reg::job_doorbell) {
        ring_several(value, at);
    } else if (offset == reg::reset_control && value == 1) {
        // A core that is reset takes its job along on every core of it.
        CommandProcessor& processor = selected()->processor();
        const CommandProcessor::Group dropped = processor.busy() ? processor.group() : CommandProcessor::Group{&processor};
        for (Core* core : cores_)
            if (std::find(dropped.begin(), dropped.end(), &core->processor()) != dropped.end()) reset_core(*core, at);
    } else if (offset == reg::reset_control && value == 2) {
        for (Core* core : cores_) core->reset();
        reset_storage();
        actions_.chip_reset();
    }
}

/// Registers keep their values.
void RegisterFile::reset_core(Core& core, Cycles at) {
    core.reset();
    const auto number = static_cast<std::size_t>(std::find(cores_.begin(), cores_.end(), &core) - cores_.begin());
    core.watchdog().set_limit({core_storage_[number].at(reg::watchdog_cycles)}, at);
}

void RegisterFile::ring_several(std::uint32_t value, Cycles at) {
    const std::uint64_t mask = std::uint64_t{stored(reg::job_cores_hi)} << 32 | stored(reg::job_cores_lo);
    std::vector<std::uint32_t> members;
    for (std::uint32_t core = 0; core < 64; ++core)
        if (mask >> core & 1) members.push_back(core);
    if (members.empty() || members.back() >= cores_.size()) {
        ++bus_errors_;
        return;
    }
    if (std::any_of(members.begin(), members.end(), [&](std::uint32_t core) { return cores_[core]->processor().busy(); })) return;
    if ((value & 1u) == 0) shared_semaphores_.clear();
    ring(members, at);
}

void RegisterFile::ring(const std::vector<std::uint32_t>& members, Cycles at) {
    CommandProcessor::Group group;
    std::vector<JobRequest> requests;
    for (const std::uint32_t core : members) {
        group.push_back(&cores_[core]->processor());
        requests.push_back(request_of(core));
        if (group.back()->busy()) return;
    }
    if (std::none_of(cores_.begin(), cores_.end(), [](Core* c) { return c->processor().busy(); })) actions_.before_first_job();
    CommandProcessor::start_job(group, requests, at);
}

JobRequest RegisterFile::request_of(std::uint32_t core) const {
    const auto& storage = core_storage_[core];
    const auto wide = [&](std::uint32_t lo, std::uint32_t hi) { return std::uint64_t{storage.at(hi)} << 32 | storage.at(lo); };
    JobRequest request;
    request.program = wide(reg::program_lo, reg::program_hi);
    request.count = storage.at(reg::program_count);
    request.start = storage.at(reg::program_start);
    request.stop_after = storage.at(reg::stop_after);
    request.completion = wide(reg::completion_lo, reg::completion_hi);
    request.trace = wide(reg::trace_lo, reg::trace_hi);
    request.trace_enable = (storage.at(reg::trace_enable) & 1u) != 0;
    return request;
}

}  // namespace assay::chip
