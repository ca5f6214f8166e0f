#include "systemc/command_processor.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "support/error.hpp"
#include "systemc/watchdog.hpp"

namespace assay::chip {

using simkernel::ErrorCode;

CommandProcessor::CommandProcessor(sc_core::sc_module_name name, Timeline& timeline, Phase phase, const simkernel::ChipConfig& config,
                                   std::uint32_t core, SemaphoreFile& semaphores, simkernel::ValueQueue& values)
    : TimedProcess(name, timeline, phase), config_(config), core_(core), semaphores_(semaphores), values_(values) {}

void CommandProcessor::connect(std::vector<EngineProcess*> engines, Watchdog& watchdog) {
    engines_ = std::move(engines);
    watchdog_ = &watchdog;
    for (EngineProcess* engine : engines_) engine->connect(*this);
}

void CommandProcessor::reset() {
    values_.join();
    (void)values_.take_saturated(core_);
    cancel();
    state_ = State::idle;
    group_.clear();
    request_ = {};
    fetched_.clear();
    head_.reset();
    full_queue_.reset();
    doorbell_ = drained_at_ = {};
    error_ = {};
    last_sequence_ = completed_sequence_ = sticky_status_ = 0;
    wait_graph_.clear();
}

void CommandProcessor::start_job(const Group& group, const std::vector<JobRequest>& requests, Cycles at) {
    for (std::size_t i = 0; i < group.size(); ++i) group[i]->prepare(requests[i], group, at);
    group.front()->watchdog_->start(at);
    for (CommandProcessor* member : group) {
        const JobRequest& request = member->request_;
        if (request.program % simkernel::kDescriptorBytes != 0)
            member->raise({ErrorCode::misaligned, kNoEngine, request.start, request.program}, at);
        member->wake_at(at);
    }
}

void CommandProcessor::prepare(const JobRequest& request, const Group& group, Cycles at) {
    ASSAY_CHECK(state_ == State::idle, "the register file ignores a doorbell while a job runs");
    request_ = request;
    group_ = group;
    doorbell_ = next_dispatch_ = last_acknowledgement_ = at;
    ++last_sequence_;
    error_ = {};
    wait_graph_.clear();
    fetched_.clear();
    head_.reset();
    full_queue_.reset();
    next_ = next_fetch_ = request.start;
    end_ = request.stop_after < request.count ? request.stop_after + 1 : request.count;
    if (request.start == 0) semaphores_.clear();
    values_.join();
    values_.protect(core_, own_windows());
    for (EngineProcess* engine : engines_) engine->start_job();
    state_ = State::dispatching;
}

void CommandProcessor::step() {
    switch (state_) {
        case State::idle: return;
        case State::dispatching: dispatch(); return;
        case State::draining: drain(); return;
        case State::drained:
            if (&lead() == this && all_drained()) complete();
            return;
        case State::completing:
            if (&lead() == this) finish();
            return;
    }
}

void CommandProcessor::dispatch() {
    while (!failing() && next_ < end_) {
        prefetch();
        const Cycles ready = std::max(fetched_.front().ready, next_dispatch_);
        if (!synchronise(ready)) {
            wake_at(ready);
            return;
        }
        if (!decode_head()) break;
        EngineProcess& engine = *engines_[static_cast<std::size_t>(head_->engine)];
        if (engine.full()) {
            full_queue_ = head_->engine;
            rest();
            return;
        }
        full_queue_.reset();
        if (hooks_ != nullptr) hooks_->dispatched(core_, next_, *head_);
        engine.push({next_, fetched_.front().words, std::move(*head_), {}}, now());
        head_.reset();
        fetched_.pop_front();
        ++next_;
        next_dispatch_ = now() + Cycles{static_cast<std::uint64_t>(config_.cp_dispatch_cycles)};
    }
    state_ = State::draining;
    drain();
}

void CommandProcessor::prefetch() {
    const auto chunk = static_cast<std::uint32_t>(static_cast<std::uint64_t>(config_.cp_fetch_bytes) / simkernel::kDescriptorBytes);
    // Two chunks: one that is being dispatched, one on its way.
    while (next_fetch_ < end_ && fetched_.size() <= chunk) next_fetch_ += fetch(std::min(chunk, end_ - next_fetch_));
}

/// Reads up to `count` descriptors at next_fetch_ and returns how many it took in. A chunk that leaves memory is taken one at a time, so that
/// the error names the descriptor that lies outside.
std::uint32_t CommandProcessor::fetch(std::uint32_t count) {
    std::vector<simkernel::DescriptorWords> words(count);
    const PortReply reply = initiator_.read(to_noc, descriptor_address(next_fetch_), std::as_writable_bytes(std::span(words)), local_delay());
    if (reply.error && count > 1) return fetch(1);
    for (const simkernel::DescriptorWords& w : words) fetched_.push_back({w, reply.due, reply.error});
    return count;
}

/// Decodes the first fetched descriptor once. False: it cannot be, and the job has failed.
bool CommandProcessor::decode_head() {
    if (head_) return true;
    const Fetched& fetched = fetched_.front();
    if (fetched.error) {
        raise({ErrorCode::bus_error, kNoEngine, next_, descriptor_address(next_)}, now());
        return false;
    }
    simkernel::Decoded decoded;
    if (const simkernel::Fault fault = simkernel::decode(fetched.words, config_, decoded)) {
        std::uint32_t engine = kNoEngine;
        for (const simkernel::OpcodeInfo& info : simkernel::kOpcodes)
            if (static_cast<std::uint32_t>(info.opcode) == (fetched.words[0] & 0xFFu)) engine = static_cast<std::uint32_t>(info.engine);
        raise({fault.code, engine, next_, fault.address}, now());
        return false;
    }
    head_ = std::move(decoded);
    return true;
}

/// Nothing to do until something of the job moves; if nothing ever will, the job is deadlocked.
void CommandProcessor::rest() {
    for (const CommandProcessor* member : group_) {
        if (member != this && member->due()) return;
        if (std::any_of(member->engines_.begin(), member->engines_.end(), [](const EngineProcess* engine) { return engine->due(); })) return;
    }
    deadlock();
}

void CommandProcessor::deadlock() {
    const bool several = group_.size() > 1;
    std::string graph;
    ErrorRecord error;
    for (const CommandProcessor* member : group_) {
        const std::string who = several ? fmt::format("core {} ", member->core_) : "";
        if (member->full_queue_)
            graph += fmt::format("{}command processor: descriptor {} awaits room in the queue of {}\n", who, member->next_, name_of(*member->full_queue_));
        for (std::size_t e = 0; e < member->engines_.size(); ++e) {
            EngineProcess& engine = *member->engines_[e];
            const auto semaphore = engine.awaited_semaphore();
            if (!semaphore) continue;
            graph += who + engine.describe(now()) + '\n';
            if (error.code == ErrorCode::none)
                error = {ErrorCode::deadlock, static_cast<std::uint32_t>(e), engine.current_index(), *semaphore, member->core_};
        }
    }
    ASSAY_CHECK(error.code != ErrorCode::none, "engines at rest with work left wait for semaphores");
    lead().wait_graph_ = std::move(graph);
    fail(error, now());
}

bool CommandProcessor::all_drained() const {
    return std::all_of(group_.begin(), group_.end(), [](const CommandProcessor* member) { return member->state_ == State::drained; });
}

void CommandProcessor::drain() {
    if (std::any_of(engines_.begin(), engines_.end(), [](const EngineProcess* engine) { return !engine->drained(); })) {
        rest();
        return;
    }
    if (!synchronise(last_acknowledgement_)) {
        wake_at(last_acknowledgement_);
        return;
    }
    state_ = State::drained;
    if (!all_drained()) rest();
    else if (&lead() == this) complete();
    else lead().wake_at(now() + Cycles{1});  // this cycle's turn of a lower core is over
}

void CommandProcessor::complete() {
    watchdog_->stop();
    for (CommandProcessor* member : group_) {
        member->drained_at_ = now();
        (void)member->sticky_status();  // joins the values
    }
    write_completion();
}

void CommandProcessor::write_completion() {
    using simkernel::JobStatus;
    const bool aligned = request_.completion % simkernel::kCompletionRecordBytes == 0;
    if (!aligned) raise({ErrorCode::misaligned, kNoEngine, next_, request_.completion}, now());
    simkernel::CompletionRecord record;
    record.sequence = last_sequence_;
    const bool stopped = std::any_of(group_.begin(), group_.end(), [](const CommandProcessor* m) { return m->end_ < m->request_.count; });
    record.status = static_cast<std::uint32_t>(failing() ? JobStatus::failed : stopped ? JobStatus::stopped : JobStatus::done);
    record.error_code = static_cast<std::uint32_t>(error_.code);
    record.engine = error_.engine;
    record.core = error_.core;
    record.descriptor = error_.descriptor;
    const std::uint64_t cycles = (drained_at_ - doorbell_).count;
    record.cycles = static_cast<std::uint32_t>(cycles);
    record.cycles_hi = static_cast<std::uint32_t>(cycles >> 32);
    for (CommandProcessor* member : group_) member->state_ = State::completing;
    completion_due_ = now() + Cycles{1};
    wake_at(completion_due_);
    if (!aligned) return;
    std::array<std::uint32_t, simkernel::kCompletionRecordBytes / 4> words{};
    encode(record, words);
    const PortReply reply = initiator_.write(to_noc, request_.completion, std::as_bytes(std::span(words)), local_delay());
    if (reply.error) raise({ErrorCode::bus_error, kNoEngine, next_, request_.completion}, now());
    completion_due_ = reply.due;
}

std::vector<simkernel::ValueQueue::Window> CommandProcessor::own_windows() const {
    std::vector<simkernel::ValueQueue::Window> windows{{request_.program, std::uint64_t{request_.count} * simkernel::kDescriptorBytes},
                                                       {request_.completion, simkernel::kCompletionRecordBytes}};
    if (request_.trace_enable) windows.push_back({request_.trace, std::uint64_t{request_.count} * simkernel::kTraceRecordBytes});
    return windows;
}

std::uint32_t CommandProcessor::sticky_status() {
    values_.join();
    if (values_.take_saturated(core_)) sticky_status_ |= 1u;
    return sticky_status_;
}

void CommandProcessor::finish() {
    if (now() < completion_due_) {
        wake_at(completion_due_);
        return;
    }
    for (CommandProcessor* member : group_) {
        member->completed_sequence_ = member->last_sequence_;
        member->state_ = State::idle;
    }
    completed_(now());
}

void CommandProcessor::watchdog_expired(Cycles at) {
    // Who runs is to blame before who waits.
    ErrorRecord error{ErrorCode::watchdog, kNoEngine, next_, 0, core_};
    bool blamed = false;
    const auto blame = [&](const auto& stuck) {
        for (const CommandProcessor* member : group_)
            for (std::size_t e = 0; e < member->engines_.size() && !blamed; ++e)
                if (stuck(*member->engines_[e])) {
                    error = {ErrorCode::watchdog, static_cast<std::uint32_t>(e), member->engines_[e]->current_index(), 0, member->core_};
                    blamed = true;
                }
    };
    blame([](const EngineProcess& engine) { return engine.running(); });
    blame([](const EngineProcess& engine) { return !engine.drained(); });
    fail(error, at);
    for (CommandProcessor* member : group_) {
        for (EngineProcess* engine : member->engines_) engine->abort(at);
        if (member->state_ != State::drained) member->state_ = State::draining;
        member->wake_at(at + Cycles{1});
    }
}

Cycles CommandProcessor::job_cycles(Cycles at) const {
    return (state_ == State::idle || state_ == State::completing ? drained_at_ : at) - doorbell_;
}

void CommandProcessor::raise(const ErrorRecord& error, Cycles at) {
    ErrorRecord mine = error;
    mine.core = core_;
    fail(mine, at);
}

/// The first error of the job stops it on every core; on others than this one from the next cycle on, since their turn in this one may be over.
void CommandProcessor::fail(const ErrorRecord& error, Cycles at) {
    if (failing()) return;
    for (CommandProcessor* member : group_) member->stop(error, member == this ? at : at + Cycles{1});
}

void CommandProcessor::stop(const ErrorRecord& error, Cycles at) {
    error_ = error;
    if (state_ == State::completing || state_ == State::idle) return;
    for (EngineProcess* engine : engines_) engine->drop_queued(at);
    wake_at(at);
}

void CommandProcessor::slot_freed(simkernel::Engine engine, Cycles at) {
    if (state_ == State::dispatching && full_queue_ == engine) wake_at(at);
}

void CommandProcessor::parked(Cycles at) {
    if (state_ == State::idle || state_ == State::completing || due()) return;
    if (std::none_of(engines_.begin(), engines_.end(), [](const EngineProcess* engine) { return engine->due(); })) wake_at(at);
}

void CommandProcessor::descriptor_retired(bool saturated, Cycles at) {
    if (saturated) sticky_status_ |= 1u;
    lead().watchdog_->retired(at);
}

}  // namespace assay::chip
