#include "systemc/engine_process.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "simkernel/exec/semantics.hpp"
#include "support/error.hpp"

namespace assay::chip {
namespace {

std::uint64_t stream_of(const EngineContext& context) {
    return std::uint64_t{context.core} * simkernel::kAllEngine.size() + static_cast<std::uint64_t>(context.engine) + (std::uint64_t{1} << 32);
}

}  // namespace

EngineProcess::EngineProcess(sc_core::sc_module_name name, Timeline& timeline, Phase phase, const EngineContext& context)
    : TimedProcess(name, timeline, phase), context_(context), random_(context.seed, stream_of(context)) {}

void EngineProcess::install(const UnitFactory& factory) {
    unit_ = factory ? factory(*this) : make_behavioural_unit(context_.engine, *this);
}

void EngineProcess::reset() {
    cancel();
    forget_waits();
    queue_.clear();
    running_ = finished_ = false;
    counters_ = {};
    random_ = RandomStream(context_.seed, stream_of(context_));
    if (unit_) unit_->reset();
}

void EngineProcess::forget_waits() {
    if (awaited_) awaited_->file->forget(*this);
    awaited_.reset();
}

void EngineProcess::start_job() {
    counters_ = {};
    free_at_ = {};
}

void EngineProcess::push(QueuedDescriptor descriptor, Cycles at) {
    ASSAY_CHECK(unit_ && !full(), "the command processor checks for room, and decode() admits no descriptor without a unit");
    descriptor.at_head = at + Cycles{1};
    queue_.push_back(std::move(descriptor));
    if (queue_.size() == 1 && !running_) wake_at(at + Cycles{1});
}

void EngineProcess::drop_queued(Cycles at) {
    if (awaited_) counters_.stall_semaphore += (at - std::max(queue_.front().at_head, free_at_)).count;
    forget_waits();
    queue_.clear();
}

void EngineProcess::abort(Cycles at) {
    drop_queued(at);
    if (!running_) return;
    const EngineCounters so_far = counters(at);
    counters_.busy = so_far.busy;
    counters_.stall_memory = so_far.stall_memory;
    running_ = finished_ = false;
    unit_->reset();
    cancel();
}

void EngineProcess::step() {
    for (;;) {
        if (!running_ && !try_start()) break;
        if (!finished_) advance_unit();
        if (!synchronise(unit_time_)) {
            wake_at(unit_time_);
            return;
        }
        if (finished_) retire();
    }
    if (!due()) control_->parked(now());
}

bool EngineProcess::try_start() {
    if (queue_.empty() || control_->failing()) return false;
    if (queue_.front().at_head > now()) {
        wake_at(queue_.front().at_head);
        return false;
    }
    forget_waits();
    if (const auto wait = unmet_wait()) {
        const simkernel::CommonFields& common = queue_.front().decoded.common;
        awaited_ = {&file(common.wait_shared[*wait] != 0), common.wait_sem[*wait]};
        awaited_->file->await(awaited_->number, *this);
        // A signal that is made but not seen yet could not wake who was not waiting then.
        if (const auto change = awaited_->file->next_change(awaited_->number, now())) wake_at(*change);
        return false;
    }
    current_ = std::move(queue_.front());
    queue_.pop_front();
    if (!queue_.empty()) queue_.front().at_head = std::max(queue_.front().at_head, now());
    control_->slot_freed(context_.engine, now());
    counters_.stall_semaphore += (now() - std::max(current_.at_head, free_at_)).count;
    started_ = unit_time_ = now();
    stall_memory_ = {};
    running_ = true;
    finished_ = false;
    ASSAY_CHECK(unit_->offer(current_.index, current_.decoded, current_.words, now()), "a unit takes a descriptor when it has retired the last");
    return true;
}

std::optional<std::size_t> EngineProcess::unmet_wait() {
    const simkernel::CommonFields& common = queue_.front().decoded.common;
    for (std::size_t i = 0; i < common.wait_sem.size(); ++i)
        if (common.wait_value[i] != 0 && file(common.wait_shared[i] != 0).value(common.wait_sem[i], now()) < common.wait_value[i]) return i;
    return std::nullopt;
}

void EngineProcess::advance_unit() {
    const Cycles before = unit_time_;
    const Advance advance = unit_->advance(timeline().quantum());
    unit_time_ = before + advance.ran;
    stall_memory_ += advance.stall_memory;
    ASSAY_CHECK(advance.state != UnitState::idle, "a unit with a descriptor is not idle");
    if (advance.state == UnitState::retired) {
        ASSAY_CHECK(advance.retired_id == current_.index, "a unit retires the descriptor it was offered");
        finished_ = true;
        result_ = advance;
        if (context_.jitter) unit_time_ += Cycles{random_.up_to(kJitterCycles)};
    } else if (unit_time_ == now()) {
        unit_time_ += Cycles{1};  // refused at its present cycle: it asks again in the next
        stall_memory_ += Cycles{1};
    }
}

void EngineProcess::retire() {
    counters_.stall_memory += stall_memory_.count;
    counters_.busy += (now() - started_ - stall_memory_).count;
    running_ = finished_ = false;
    free_at_ = now();
    if (result_.fault) {
        raise(result_.fault);
        return;
    }
    counters_.retired += 1;
    counters_.work += simkernel::work_of(current_.decoded);
    if (control_->request().trace_enable) write_trace();
    simkernel::JobHooks* hooks = control_->hooks();
    if (hooks != nullptr) hooks->retired(context_.core, current_.index, context_.external);
    control_->descriptor_retired(result_.saturated, now());
    if (current_.decoded.common.signal_add != 0 && !(hooks != nullptr && hooks->drops_signal(context_.core, current_.index))) signal();
}

void EngineProcess::write_trace() {
    const Cycles doorbell = control_->doorbell();
    simkernel::TraceRecord record;
    record.start = (started_ - doorbell).count;
    record.end = (now() - doorbell).count;
    record.queued = (current_.at_head - doorbell).count;
    record.engine = static_cast<std::uint32_t>(context_.engine);
    record.stall_memory = static_cast<std::uint32_t>(stall_memory_.count);
    std::array<std::uint32_t, simkernel::kTraceRecordBytes / 4> words{};
    encode(record, words);
    const std::uint64_t address = control_->request().trace + std::uint64_t{current_.index} * simkernel::kTraceRecordBytes;
    const PortReply reply = initiator_.write(to_noc, address, std::as_bytes(std::span(words)), local_delay());
    control_->posted_write(reply.due);
    if (reply.error) raise({simkernel::ErrorCode::bus_error, address, "trace record"});
}

void EngineProcess::signal() {
    const simkernel::CommonFields& common = current_.decoded.common;
    if (!file(common.signal_shared != 0).signal(common.signal_sem, common.signal_add, now()))
        raise({simkernel::ErrorCode::semaphore_overflow, common.signal_sem, "semaphore"});
}

void EngineProcess::raise(const simkernel::Fault& fault) {
    control_->raise({fault.code, static_cast<std::uint32_t>(context_.engine), current_.index, fault.address}, now());
}

EngineCounters EngineProcess::counters(Cycles at) const {
    EngineCounters sum = counters_;
    if (running_) {
        // The unit may have told of memory stalls ahead of `at`.
        const std::uint64_t elapsed = (at - started_).count;
        const std::uint64_t stalled = std::min(stall_memory_.count, elapsed);
        sum.stall_memory += stalled;
        sum.busy += elapsed - stalled;
    } else if (awaited_) {
        sum.stall_semaphore += (at - std::max(queue_.front().at_head, free_at_)).count;
    }
    return sum;
}

std::string EngineProcess::describe(Cycles at) {
    const std::string_view name = name_of(context_.engine);
    if (running_) return fmt::format("{}: descriptor {} runs", name, current_.index);
    if (queue_.empty()) return fmt::format("{}: idle", name);
    const QueuedDescriptor& head = queue_.front();
    std::string text = fmt::format("{}: descriptor {} awaits", name, head.index);
    const simkernel::CommonFields& common = head.decoded.common;
    for (std::size_t i = 0; i < common.wait_sem.size(); ++i) {
        if (common.wait_value[i] == 0) continue;
        const std::uint32_t value = file(common.wait_shared[i] != 0).value(common.wait_sem[i], at);
        if (value < common.wait_value[i])
            text += fmt::format(" {}semaphore {} >= {} (is {})", common.wait_shared[i] ? "shared " : "", common.wait_sem[i], common.wait_value[i], value);
    }
    return text;
}

// Ports. Local accesses are private; external ones are accepted only at the engine's exact time.

PortReply EngineProcess::read_local(std::uint32_t local_addr, std::span<std::byte> out, Cycles at) {
    const std::span<std::byte> range = context_.local.range(local_addr, out.size());
    const Cycles due = at + Cycles{static_cast<std::uint64_t>(context_.config.spm_latency_cycles)};
    if (range.size() != out.size()) return {true, due, true};
    std::copy(range.begin(), range.end(), out.begin());
    return {true, due, false};
}

PortReply EngineProcess::write_local(std::uint32_t local_addr, std::span<const std::byte> in, Cycles at) {
    const std::span<std::byte> range = context_.local.range(local_addr, in.size());
    const Cycles due = at + Cycles{static_cast<std::uint64_t>(context_.config.spm_latency_cycles)};
    if (range.size() != in.size()) return {true, due, true};
    std::copy(in.begin(), in.end(), range.begin());
    return {true, due, false};
}

simkernel::Effect EngineProcess::values_of(const simkernel::Decoded& descriptor) {
    if (control_->hooks() == nullptr && context_.values.submit(context_.core, descriptor, context_.local, context_.external)) return {};
    context_.values.join();
    return simkernel::execute(descriptor, context_.local, context_.external, context_.config);
}

PortReply EngineProcess::read_external(std::uint64_t device_addr, std::span<std::byte> out, Cycles at) {
    if (!synchronise(at)) return {};
    return initiator_.read(to_noc, device_addr, out, local_delay());
}

PortReply EngineProcess::write_external(std::uint64_t device_addr, std::span<const std::byte> in, Cycles at) {
    if (!synchronise(at)) return {};
    return initiator_.write(to_noc, device_addr, in, local_delay());
}

PortReply EngineProcess::reserve_external(std::uint64_t device_addr, std::uint64_t bytes, bool write, Cycles at) {
    if (!synchronise(at)) return {};
    return initiator_.reserve(to_noc, device_addr, bytes, write, now());
}

}  // namespace assay::chip
