#include "simkernel/exec/interpreter.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace assay::simkernel {

Interpreter::Interpreter(const ChipConfig& config, ExternalMemory& external)
    : config_(config),
      external_(external),
      local_(static_cast<std::size_t>(config.cores)),
      semaphores_(local_.size() + 1, std::vector<std::uint64_t>(static_cast<std::size_t>(config.semaphores))) {}

LocalMemory& Interpreter::local(std::uint32_t core) {
    if (!local_[core]) local_[core] = std::make_unique<LocalMemory>(config_);
    return *local_[core];
}

const std::vector<std::uint64_t>& Interpreter::semaphores(std::uint32_t core) const {
    return core == SemaphoreId::kShared ? semaphores_.back() : semaphores_[core];
}

std::uint64_t& Interpreter::semaphore(SemaphoreId id) {
    return (id.core == SemaphoreId::kShared ? semaphores_.back() : semaphores_[id.core])[id.number];
}

void Interpreter::reset() {
    for (auto& local : local_)
        if (local) local->clear();
    for (auto& of_core : semaphores_) std::fill(of_core.begin(), of_core.end(), 0);
}

JobResult Interpreter::run(std::span<const DescriptorWords> program, std::uint32_t start, std::uint32_t stop_after, JobHooks* hooks) {
    if (start == 0)
        for (auto& of_core : semaphores_) std::fill(of_core.begin(), of_core.end(), 0);
    const bool several = config_.cores > 1;
    JobResult result;
    const auto fail = [&](std::uint32_t index, Engine engine, Fault fault) {
        result.status = JobStatus::failed;
        result.code = fault.code;
        result.engine = engine;
        result.descriptor = index;
        result.address = fault.address;
        result.text = std::move(fault.text);
        return result;
    };
    for (std::uint32_t i = start; i < program.size(); ++i) {
        if (i > stop_after) {
            result.status = JobStatus::stopped;
            return result;
        }
        Decoded d;
        if (Fault fault = decode(program[i], config_, d)) return fail(i, d.engine, std::move(fault));
        const std::uint32_t core = d.common.core;
        if (hooks) hooks->dispatched(core, i, d);
        for (std::size_t w = 0; w < 4; ++w) {
            const SemaphoreId id = awaited(d.common, w);
            if (semaphore(id) < d.common.wait_value[w])
                return fail(i, d.engine, {ErrorCode::deadlock, 0, fmt::format("waits for {} >= {}, which is {}", semaphore_name(id, several),
                                                                              d.common.wait_value[w], semaphore(id))});
        }
        Effect effect = execute(d, local(core), external_, config_);
        result.saturated = result.saturated || effect.saturated;
        if (effect.fault) return fail(i, d.engine, std::move(effect.fault));
        if (hooks) hooks->retired(core, i, external_);
        if (d.common.signal_add == 0 || (hooks && hooks->drops_signal(core, i))) continue;
        std::uint64_t& value = semaphore(signalled(d.common));
        value += d.common.signal_add;
        if (value > UINT32_MAX) return fail(i, d.engine, {ErrorCode::semaphore_overflow, 0, semaphore_name(signalled(d.common), several)});
    }
    return result;
}

}  // namespace assay::simkernel
