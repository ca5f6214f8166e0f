#include "simkernel/exec/interpreter.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace assay::simkernel {

Interpreter::Interpreter(const ChipConfig& config, ExternalMemory& external)
    : config_(config), external_(external), local_(config), semaphores_(static_cast<std::size_t>(config.semaphores)) {}

void Interpreter::reset() {
    local_.clear();
    std::fill(semaphores_.begin(), semaphores_.end(), 0);
}

JobResult Interpreter::run(std::span<const DescriptorWords> program, std::uint32_t start, std::uint32_t stop_after, JobHooks* hooks) {
    if (start == 0) std::fill(semaphores_.begin(), semaphores_.end(), 0);
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
        if (hooks) hooks->dispatched(0, i, d);
        for (std::size_t w = 0; w < 4; ++w)
            if (semaphores_[d.common.wait_sem[w]] < d.common.wait_value[w])
                return fail(i, d.engine, {ErrorCode::deadlock, 0, fmt::format("waits for semaphore {} >= {}, which is {}", d.common.wait_sem[w],
                                                                              d.common.wait_value[w], semaphores_[d.common.wait_sem[w]])});
        Effect effect = execute(d, local_, external_, config_);
        result.saturated = result.saturated || effect.saturated;
        if (effect.fault) return fail(i, d.engine, std::move(effect.fault));
        if (hooks) hooks->retired(0, i, external_);
        if (d.common.signal_add == 0 || (hooks && hooks->drops_signal(0, i))) continue;
        std::uint64_t& semaphore = semaphores_[d.common.signal_sem];
        semaphore += d.common.signal_add;
        if (semaphore > UINT32_MAX) return fail(i, d.engine, {ErrorCode::semaphore_overflow, 0, fmt::format("semaphore {}", d.common.signal_sem)});
    }
    return result;
}

}  // namespace assay::simkernel
