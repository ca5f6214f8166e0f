#include "switchover/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simkernel/exec/core_streams.hpp"
#include "simkernel/exec/legality.hpp"

#include "support/error.hpp"

namespace assay::switchover {

using namespace simkernel;

namespace {

#define ASSAY_TRY(expression)                                    \
    do {                                                         \
        if (auto outcome_ = (expression); !outcome_.ok()) return outcome_.error(); \
    } while (false)

constexpr std::uint64_t kAlign = 4096;
std::uint64_t align(std::uint64_t value) { return (value + kAlign - 1) / kAlign * kAlign; }

/// Poison of byte i of a buffer: pseudo-random, so that no computed value imitates it by being common.
std::byte poison(std::uint64_t seed, std::uint64_t address) {
    std::uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u ^ address * 0xD1342543DE82EF95u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return static_cast<std::byte>(x >> 56);
}

/// Bytes in aligned windows of up to 8 that still hold the poison whole: a chance match of a full window is 2^-64. Tensors under
/// 4 bytes are too short to tell.
std::uint64_t count_unwritten(std::uint64_t seed, DeviceAddr addr, std::span<const std::byte> bytes) {
    if (bytes.size() < 4) return 0;
    std::uint64_t unwritten = 0;
    for (std::size_t begin = 0; begin < bytes.size(); begin += 8) {
        // A short last window is judged together with the bytes before it.
        const std::size_t end = std::min(begin + 8, bytes.size());
        const std::size_t from = end - std::min<std::size_t>(end, 8);
        bool same = true;
        for (std::size_t i = from; same && i < end; ++i) same = bytes[i] == poison(seed, addr.value + i);
        if (same) unwritten += end - begin;
    }
    return unwritten;
}

/// Cycles by layer: the time from the previous layer's last retirement to its own, so that layers sum to the run.
std::vector<std::uint64_t> cycles_by_layer(const Program& program, const RunResult& result) {
    std::vector<std::uint64_t> last(program.layers.size(), 0);
    for (const TraceEvent& event : result.trace) {
        std::uint64_t& end = last[program.debug[event.descriptor].layer];
        end = std::max(end, event.record.end);
    }
    std::vector<std::uint64_t> cycles(last.size(), 0);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < last.size(); ++i)
        if (last[i] > seen) {
            cycles[i] = last[i] - seen;
            seen = last[i];
        }
    if (!cycles.empty() && result.cycles > seen) cycles.back() += result.cycles - seen;  // completion
    return cycles;
}

std::string slot_at(const Program& program, std::uint64_t address) {
    for (const ConstantSlot& slot : program.constant_slots)
        if (address >= slot.addr.value && address < slot.addr.value + slot.bytes) return slot.name;
    return "";
}

/// The first layer with a load descriptor whose span covers the address; the first layer of all when none does.
std::uint32_t layer_that_loads(const Program& program, std::uint64_t address) {
    for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) {
        if ((program.descriptors[i][0] & 0xFF) != static_cast<std::uint32_t>(Opcode::load)) continue;
        const LoadFields f = decode_load_fields(program.descriptors[i]);
        std::uint64_t low = f.ext_addr, high = f.ext_addr + f.run_bytes;
        for (std::size_t d = 0; d < 4; ++d) {
            const std::uint32_t rows = d == 0 && f.index_enable ? f.index_limit : f.count[d];
            const std::int64_t reach = static_cast<std::int64_t>(rows - 1) * f.ext_stride[d];
            (reach < 0 ? low : high) += static_cast<std::uint64_t>(reach);
        }
        if (address >= low && address < high) return program.debug[i].layer;
    }
    return 0;
}

/// The loader's check: a program that could deadlock or is malformed never reaches a device.
void require_legal(const Program& program, const ChipConfig& chip) {
    const std::vector<ProgramProblem> problems = check_program(program.descriptors, chip);
    if (problems.empty()) return;
    std::vector<std::string> lines;
    for (const ProgramProblem& problem : problems)
        lines.push_back(fmt::format("program: descriptor {}: {}: {}", problem.descriptor, simkernel::name_of(problem.code), problem.text));
    throw Error(ErrorKind::bad_input, fmt::format("{}\nthe program is not legal; compile the model again", fmt::join(lines, "\n")));
}

/// Refuses a program whose matrix operands the target's matrix unit does not take.
void require_matrix_types(const Program& program, const Capabilities& capabilities, const std::string& target) {
    const auto fact = capabilities.find("matrix_types");
    if (fact == capabilities.end()) return;
    const std::string& known = std::get<std::string>(fact->second);
    for (std::size_t i = 0; i < program.descriptors.size(); ++i) {
        if ((program.descriptors[i][0] & 0xFFu) != static_cast<std::uint32_t>(Opcode::matmul)) continue;
        const std::string_view type = simkernel::name_of(static_cast<Dtype>(simkernel::decode_matmul_fields(program.descriptors[i]).dtype));
        if (fmt::format(" {} ", known).find(fmt::format(" {} ", type)) != std::string::npos) continue;
        const std::string layer = i < program.debug.size() ? program.layers[program.debug[i].layer].name : "?";
        throw Error(ErrorKind::usage, fmt::format("layer '{}' multiplies {} operands (descriptor {}), the matrix unit of {} takes {}; use another "
                                                  "--precision, or --target tlm",
                                                  layer, type, i, target, known));
    }
}

/// The hooks die with the run, however it ends: the target must not keep them.
struct HookGuard {
    Target& target;
    bool watched;
    ~HookGuard() {
        if (watched) (void)target.set_hooks(nullptr);
    }
};

}  // namespace

Status Runtime::write(DeviceAddr addr, std::span<const std::byte> bytes) {
    return has(target_.capabilities(), "backdoor") ? target_.backdoor_write(addr, bytes) : target_.write_memory(addr, bytes);
}

Status Runtime::read(DeviceAddr addr, std::span<std::byte> bytes) { return target_.read_memory(addr, bytes); }

Result<std::uint64_t> Runtime::read64(std::uint32_t lo_offset) {
    const Result<std::uint32_t> lo = target_.read_register(lo_offset);
    if (!lo.ok()) return lo.error();
    const Result<std::uint32_t> hi = target_.read_register(lo_offset + 4);
    if (!hi.ok()) return hi.error();
    return std::uint64_t{lo.value()} | std::uint64_t{hi.value()} << 32;
}

Status Runtime::write64(std::uint32_t lo_offset, std::uint64_t value) {
    ASSAY_TRY(target_.write_register(lo_offset, static_cast<std::uint32_t>(value)));
    return target_.write_register(lo_offset + 4, static_cast<std::uint32_t>(value >> 32));
}

struct Runtime::Job {
    const Program& program;
    const CoreStreams& streams;
    const std::map<std::string, Tensor>& inputs;
    const RunOptions& options;
    Layout at;
    Sanitizer* sanitizer;
    RunResult& result;
    std::map<std::string, Tensor> host;  ///< tensors in host memory: inputs and what host steps made

    bool failed() const { return result.completion.status == static_cast<std::uint32_t>(JobStatus::failed); }
};

Status Runtime::load(const Job& job) {
    const Program& program = job.program;
    const auto put = [&](DeviceAddr addr, std::span<const std::byte> bytes) {
        if (job.sanitizer) job.sanitizer->host_wrote(addr.value, bytes.size());
        return write(addr, bytes);
    };
    for (const Constant& constant : program.constants) ASSAY_TRY(put(constant.addr, constant.bytes));
    for (const TensorSlot& slot : program.tensors) {
        if (slot.role == Role::input && job.options.resident.contains(slot.name)) {
            if (job.sanitizer) job.sanitizer->host_wrote(slot.addr.value, slot.bytes);
        } else if (slot.role == Role::input) {
            const auto found = job.inputs.find(slot.name);
            if (found == job.inputs.end())
                throw Error(ErrorKind::bad_input, fmt::format("input '{}' ({} {}) is missing; give it with --input", slot.name,
                                                              assay::name_of(slot.dtype), to_string(slot.shape)));
            if (!slot.on_host) ASSAY_TRY(put(slot.addr, to_device(slot, found->second)));
        } else if (!slot.on_host) {
            std::vector<std::byte> pattern(slot.bytes);
            for (std::uint64_t i = 0; i < slot.bytes; ++i) pattern[i] = poison(job.options.seed, slot.addr.value + i);
            ASSAY_TRY(write(slot.addr, pattern));
        }
    }
    for (const BoundInput& bound : program.bound_inputs) {
        const auto found = job.inputs.find(bound.name);
        if (found != job.inputs.end() && found->second != bound.value)
            throw Error(ErrorKind::bad_input, fmt::format("input '{}': the program was compiled for another value of it; compile the model with this input", bound.name));
    }
    return load_descriptors(job);
}

/// Each core's descriptors, and the registers that say where they are.
Status Runtime::load_descriptors(const Job& job) {
    for (std::uint32_t core = job.streams.cores(); core-- > 0;) {  // core 0 last: it stays selected
        const std::vector<std::uint32_t>& stream = job.streams.of(core);
        std::vector<DescriptorWords> own;
        for (const std::uint32_t index : stream) own.push_back(job.program.descriptors[index]);
        ASSAY_TRY(write(job.at.descriptors[core], std::as_bytes(std::span(own))));
        if (job.options.trace) ASSAY_TRY(write(job.at.trace[core], std::vector<std::byte>(own.size() * kTraceRecordBytes)));
        ASSAY_TRY(target_.write_register(reg::core_select, core));
        ASSAY_TRY(write64(reg::program_lo, job.at.descriptors[core].value));
        ASSAY_TRY(target_.write_register(reg::program_count, static_cast<std::uint32_t>(own.size())));
        ASSAY_TRY(write64(reg::completion_lo, job.at.completion.value));
        ASSAY_TRY(write64(reg::trace_lo, job.at.trace[core].value));
        ASSAY_TRY(target_.write_register(reg::trace_enable, job.options.trace ? 1 : 0));
    }
    if (job.streams.cores() == 1) return Done{};
    const std::uint64_t all = UINT64_MAX >> (64 - job.streams.cores());
    return write64(reg::job_cores_lo, all);
}

/// Descriptors [first, last) as one job on every core of the program. Semaphores keep their values from the job before (register program_start,
/// and the doorbell's value for shared ones), and a job that stops at `stop_after` has drained its engines: the jobs of a program together are
/// its stream.
Status Runtime::run_job(Job& job, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t cores = job.streams.cores();
    ASSAY_TRY(write(job.at.completion, std::vector<std::byte>(kCompletionRecordBytes)));
    ASSAY_TRY(target_.fence());
    for (std::uint32_t core = cores; core-- > 0;) {
        const auto count = static_cast<std::uint32_t>(job.streams.of(core).size());
        const std::uint32_t begin = job.streams.before(core, first), end = job.streams.before(core, last);
        if (cores > 1) {
            ASSAY_TRY(target_.write_register(reg::core_select, core));
            // No value of stop_after stops a program before its first descriptor.
            ASSAY_TRY(target_.write_register(reg::program_count, end == 0 ? 0 : count));
        }
        ASSAY_TRY(target_.write_register(reg::program_start, begin));
        ASSAY_TRY(target_.write_register(reg::stop_after, end == count || end == 0 ? UINT32_MAX : end - 1));
    }
    const auto began = std::chrono::steady_clock::now();
    if (cores == 1) ASSAY_TRY(target_.write_register(reg::doorbell, 1));
    else ASSAY_TRY(target_.write_register(reg::job_doorbell, first == 0 ? 0 : 1));
    const Result<std::uint32_t> sequence = target_.read_register(reg::last_sequence);
    if (!sequence.ok()) return sequence.error();
    const std::uint64_t deadline = job.options.deadline_cycles ? job.options.deadline_cycles : 100'000'000 + 1'000'000 * std::uint64_t{last - first};
    const Status waited = wait(sequence.value(), deadline);
    job.result.device_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (!waited.ok()) return waited.error();
    std::array<std::uint32_t, kCompletionRecordBytes / 4> words{};
    ASSAY_TRY(read(job.at.completion, std::as_writable_bytes(std::span(words))));
    CompletionRecord& completion = job.result.completion;
    completion = decode_completion_record(words);
    if (job.failed() && completion.core < cores) {
        const std::vector<std::uint32_t>& own = job.streams.of(completion.core);
        if (completion.descriptor < own.size()) completion.descriptor = own[completion.descriptor];
    }
    if (job.options.trace) {
        const auto old = static_cast<std::ptrdiff_t>(job.result.trace.size());
        for (std::uint32_t core = 0; core < cores; ++core)
            ASSAY_TRY(collect_trace(job, core, job.streams.before(core, first), job.streams.before(core, last)));
        std::sort(job.result.trace.begin() + old, job.result.trace.end(),
                  [](const TraceEvent& a, const TraceEvent& b) { return a.descriptor < b.descriptor; });
    }
    job.result.cycles += std::uint64_t{completion.cycles} | std::uint64_t{completion.cycles_hi} << 32;
    return add_counters(job.result, cores);
}

/// Records of a core's own descriptors [first, last).
Status Runtime::collect_trace(Job& job, std::uint32_t core, std::uint32_t first, std::uint32_t last) {
    std::vector<std::array<std::uint32_t, kTraceRecordBytes / 4>> records(last - first);
    ASSAY_TRY(read(DeviceAddr{job.at.trace[core].value + first * std::uint64_t{kTraceRecordBytes}}, std::as_writable_bytes(std::span(records))));
    for (std::uint32_t i = 0; i < records.size(); ++i) {
        TraceRecord record = decode_trace_record(records[i]);
        if (record.end == 0) continue;
        for (std::uint64_t* time : {&record.start, &record.end, &record.queued}) *time += job.result.cycles;
        job.result.trace.push_back({job.streams.of(core)[first + i], record});
    }
    return Done{};
}

Status Runtime::add_counters(RunResult& result, std::uint32_t cores) {
    result.core_counters.resize(cores);
    for (std::uint32_t core = cores; core-- > 0;) {
        if (cores > 1) ASSAY_TRY(target_.write_register(reg::core_select, core));
        for (const Engine engine : kAllEngine)
            for (std::uint32_t c = 0; c < kCounterCount; ++c) {
                const std::uint32_t offset = reg::counters + static_cast<std::uint32_t>(engine) * reg::counters_engine_stride + 8 * c;
                const Result<std::uint64_t> value = read64(offset);
                if (!value.ok()) return value.error();
                result.core_counters[core][static_cast<std::size_t>(engine)][c] += value.value();
                result.counters[static_cast<std::size_t>(engine)][c] += value.value();
            }
    }
    return Done{};
}

Status Runtime::run_host_step(Job& job, const HostStep& step) {
    if (!job.options.host)
        throw Error(ErrorKind::usage, fmt::format("layer '{}' runs on the host, and this run has no host executor", job.program.layers[step.layer].name));
    const auto began = std::chrono::steady_clock::now();
    std::map<std::string, Tensor> inputs;
    for (const TensorSlot& slot : step.inputs) {
        if (slot.on_host) {
            const auto given = job.inputs.find(slot.name);
            const auto made = job.host.find(slot.name);
            if (made == job.host.end() && given == job.inputs.end())
                throw Error(ErrorKind::bad_input, fmt::format("input '{}' ({} {}) is missing; give it with --input", slot.name,
                                                              assay::name_of(slot.dtype), to_string(slot.shape)));
            inputs[slot.name] = made != job.host.end() ? made->second : given->second;
        } else {
            std::vector<std::byte> bytes(slot.bytes);
            ASSAY_TRY(read(slot.addr, bytes));
            inputs[slot.name] = from_device(slot, bytes);
        }
    }
    std::map<std::string, Tensor> outputs = job.options.host(step, inputs);
    for (const TensorSlot& slot : step.outputs) {
        const auto made = outputs.find(slot.name);
        ASSAY_CHECK(made != outputs.end(), "a host executor makes every output of its step");
        if (!slot.on_host) {
            if (job.sanitizer) job.sanitizer->host_wrote(slot.addr.value, slot.bytes);
            ASSAY_TRY(write(slot.addr, to_device(slot, made->second)));
        }
        job.host[slot.name] = std::move(made->second);
    }
    job.result.host_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return Done{};
}

Status Runtime::wait(std::uint32_t sequence, std::uint64_t deadline_cycles) {
    const Result<std::uint64_t> begin = read64(reg::heartbeat_lo);
    if (!begin.ok()) return begin.error();
    std::uint64_t waited = 0;
    std::uint64_t beat = begin.value();
    while (true) {
        const Result<std::uint32_t> completed = target_.read_register(reg::completed_sequence);
        if (!completed.ok()) return completed.error();
        if (completed.value() == 0xFFFF'FFFFu)
            return TargetError{TargetErrorKind::link_down, "completed_sequence reads all ones: the device does not answer; check the link and reset"};
        if (completed.value() == sequence) return Done{};
        if (waited >= deadline_cycles) {
            const std::uint64_t progress = beat - begin.value();
            return TargetError{progress > 0 ? TargetErrorKind::timeout : TargetErrorKind::target_hung,
                               fmt::format("job {} incomplete after {} cycles; heartbeat {}; reset the target, or raise --deadline", sequence, waited,
                                           progress > 0 ? "advancing" : "standing still"),
                               deadline_cycles, progress};
        }
        const Result<Cycles> ran = target_.advance(Cycles{deadline_cycles - waited});
        if (!ran.ok()) return ran.error();
        const Result<std::uint64_t> now = read64(reg::heartbeat_lo);
        if (!now.ok()) return now.error();
        // A target that neither ran nor beats would keep us here for ever.
        waited += std::max<std::uint64_t>({ran.value().count, now.value() - beat, 1});
        beat = now.value();
    }
}

Status Runtime::collect(Job& job) {
    RunResult& result = job.result;
    for (const TensorSlot& slot : job.program.tensors) {
        if (slot.on_host) {
            if (const auto made = job.host.find(slot.name); made != job.host.end()) result.tensors[slot.name] = made->second;
            if (slot.role == Role::input) result.tensors[slot.name] = job.inputs.at(slot.name);
            continue;
        }
        std::vector<std::byte> bytes(slot.bytes);
        ASSAY_TRY(read(slot.addr, bytes));
        if (slot.role != Role::input)
            if (const std::uint64_t count = count_unwritten(job.options.seed, slot.addr, bytes)) result.unwritten[slot.name] = count;
        result.tensors[slot.name] = from_device(slot, bytes);
    }
    if (job.options.trace) result.layer_cycles = cycles_by_layer(job.program, result);
    return Done{};
}

Status Runtime::check_constants(const Program& program, RunResult& result) {
    for (const Constant& constant : program.constants) {
        std::vector<std::byte> held(constant.bytes.size());
        ASSAY_TRY(read(constant.addr, held));
        for (std::size_t i = 0; i < held.size(); ++i) {
            if (held[i] == constant.bytes[i]) continue;
            const std::uint64_t address = constant.addr.value + i;
            if (!result.corrupt.empty() && address < result.corrupt.back().address + 64) {  // one report a neighbourhood
                ++result.corrupt.back().wrong_bytes;
                continue;
            }
            result.corrupt.push_back({address, 1, slot_at(program, address), layer_that_loads(program, address)});
        }
    }
    return Done{};
}

Result<RunResult> Runtime::run(const Program& original, const std::map<std::string, Tensor>& inputs, const RunOptions& options) {
    const Result<Identity> identity = target_.identity();
    if (!identity.ok()) return identity.error();
    if (identity.value().config_hash != original.config_hash)
        throw Error(ErrorKind::usage, fmt::format("program for {} (config_hash {:#010x}) does not fit the chip of {} ({:#010x}); compile it for this chip",
                                                  original.chip, original.config_hash, identity.value().target, identity.value().config_hash));
    const Capabilities capabilities = target_.capabilities();
    if (const ChipConfig* chip = target_.chip()) require_legal(original, *chip);
    require_matrix_types(original, capabilities, identity.value().target);
    FaultPlan plan(options.faults, original);
    Program program = original;
    plan.apply_to_constants(program);

    const CoreStreams streams(program.descriptors);
    Layout at;
    std::uint64_t next_free = align(program.hbm_bytes);
    const auto place = [&](std::uint64_t bytes) {
        const DeviceAddr addr{next_free};
        next_free = align(next_free + bytes);
        return addr;
    };
    for (std::uint32_t core = 0; core < streams.cores(); ++core) at.descriptors.push_back(place(streams.of(core).size() * kDescriptorBytes));
    for (std::uint32_t core = 0; core < streams.cores(); ++core)
        at.trace.push_back(place(options.trace ? streams.of(core).size() * kTraceRecordBytes : 0));
    at.completion = DeviceAddr{next_free};

    const auto fact = capabilities.find("hbm_bytes");
    if (fact != capabilities.end() && at.completion.value + kAlign > static_cast<std::uint64_t>(std::get<std::int64_t>(fact->second)))
        throw Error(ErrorKind::bad_input, fmt::format("program needs {} bytes of device memory; the chip has {}; give it more with --set hbm.bytes=…",
                                                      at.completion.value + kAlign, std::get<std::int64_t>(fact->second)));
    const bool watched = options.sanitize || !plan.empty();
    if (watched && !has(capabilities, "job_hooks"))
        throw Error(ErrorKind::usage, fmt::format("--sanitize and --fault need a target with capability job_hooks; '{}' has none", identity.value().target));

    RunResult result;
    std::unique_ptr<Sanitizer> sanitizer;
    if (options.sanitize) {
        const ChipConfig* chip = target_.chip();
        ASSAY_CHECK(chip != nullptr, "a target with job_hooks knows its chip");
        sanitizer = std::make_unique<Sanitizer>(*chip, &plan);
    }
    JobHooks* hooks = sanitizer ? static_cast<JobHooks*>(sanitizer.get()) : &plan;
    StreamHooks in_stream_order(streams, *hooks);
    if (streams.cores() > 1) hooks = &in_stream_order;
    const HookGuard unhook{target_, watched};
    if (watched) ASSAY_TRY(target_.set_hooks(hooks));
    Job job{program, streams, inputs, options, at, sanitizer.get(), result, {}};
    // A program of host steps only has no job, and is done when they are.
    result.completion.status = static_cast<std::uint32_t>(JobStatus::done);
    ASSAY_TRY(load(job));
    std::uint32_t next = 0;
    const auto run_until = [&](std::uint32_t last) -> Status {
        if (last == next || job.failed()) return Done{};
        const Status ran = run_job(job, next, last);
        if (sanitizer) result.findings = sanitizer->findings();
        next = last;
        return ran;
    };
    for (const HostStep& step : program.host_steps) {
        ASSAY_TRY(run_until(step.before));
        if (!job.failed()) ASSAY_TRY(run_host_step(job, step));
    }
    ASSAY_TRY(run_until(static_cast<std::uint32_t>(program.descriptors.size())));
    ASSAY_TRY(collect(job));
    ASSAY_TRY(check_constants(original, result));
    result.post_mortem = target_.post_mortem();
    return result;
}

}  // namespace assay::switchover
