#pragma once
// Command processor of one core: fetches descriptors (prefetching a chunk ahead), decodes them, dispatches them in order to the engines'
// queues, one each cp.dispatch_cycles, and ends the job: engines drained, posted writes acknowledged, completion record written, then
// completed_sequence. Keeps the first error. Detects a deadlock in the cycle in which the last process of the job came to rest.
// A job runs on a group of cores, mostly of one. The lowest core leads: its watchdog guards the job, and it completes it when all have drained.
// Its phase follows the engines': a queue slot freed in a cycle is filled in that cycle, and what it dispatches is seen in the next.
#include <deque>

#include "systemc/engine_process.hpp"

namespace assay::chip {

class Watchdog;

class CommandProcessor final : public TimedProcess, private JobControl {
public:
    tlm_utils::simple_initiator_socket<CommandProcessor> to_noc{"to_noc"};

    CommandProcessor(sc_core::sc_module_name name, Timeline& timeline, Phase phase, const simkernel::ChipConfig& config,
                     std::uint32_t core, SemaphoreFile& semaphores, simkernel::ValueQueue& values);
    /// `engines` by number, one for each of kAllEngine.
    void connect(std::vector<EngineProcess*> engines, Watchdog& watchdog);
    void set_hooks(simkernel::JobHooks* hooks) { hooks_ = hooks; }
    /// Called once a job's completed_sequence has changed, at the local cycle.
    void on_completion(std::function<void(Cycles)> callback) { completed_ = std::move(callback); }

    bool busy() const { return state_ != State::idle; }
    /// Cores of one job, lowest first.
    using Group = std::vector<CommandProcessor*>;
    /// Starts a job at host cycle `at`, each member with its request; not while any is busy().
    static void start_job(const Group& group, const std::vector<JobRequest>& requests, Cycles at);
    const Group& group() const { return group_; }  ///< of the present or last job
    void reset();  ///< drops the job; sequence numbers, error and sticky status to zero
    /// No descriptor retired for too long: running ones are given up.
    void watchdog_expired(Cycles at);

    const ErrorRecord& error() const { return error_; }
    std::uint32_t last_sequence() const { return last_sequence_; }
    std::uint32_t completed_sequence() const { return completed_sequence_; }
    /// Joins the values; a saturation counts from the start of its descriptor at the earliest, from the job's end at the latest.
    std::uint32_t sticky_status();
    void clear_sticky(std::uint32_t ones) { sticky_status_ = sticky_status() & ~ones; }
    /// Cycles of the present or last job, up to `at`.
    Cycles job_cycles(Cycles at) const;
    const std::string& wait_graph() const { return wait_graph_; }

private:
    /// What the core itself reads and writes in device memory during the job.
    std::vector<simkernel::ValueQueue::Window> own_windows() const;
    enum class State { idle, dispatching, draining, drained, completing };
    struct Fetched {
        simkernel::DescriptorWords words{};
        Cycles ready;
        bool error = false;
    };
    void step() override;
    void dispatch();
    void prefetch();
    std::uint32_t fetch(std::uint32_t count);
    bool decode_head();
    void rest();
    void deadlock();
    void prepare(const JobRequest& request, const Group& group, Cycles at);
    CommandProcessor& lead() const { return *group_.front(); }
    bool all_drained() const;
    void drain();
    void complete();
    void stop(const ErrorRecord& error, Cycles at);
    void fail(const ErrorRecord& error, Cycles at);
    void write_completion();
    void finish();
    std::uint64_t descriptor_address(std::uint32_t index) const { return request_.program + std::uint64_t{index} * simkernel::kDescriptorBytes; }

    void raise(const ErrorRecord& error, Cycles at) override;
    bool failing() const override { return error_.code != simkernel::ErrorCode::none; }
    void slot_freed(simkernel::Engine engine, Cycles at) override;
    void parked(Cycles at) override;
    void descriptor_retired(bool saturated, Cycles at) override;
    void posted_write(Cycles due) override { last_acknowledgement_ = std::max(last_acknowledgement_, due); }
    const JobRequest& request() const override { return request_; }
    Cycles doorbell() const override { return doorbell_; }
    simkernel::JobHooks* hooks() const override { return hooks_; }

    const simkernel::ChipConfig config_;
    const std::uint32_t core_;
    SemaphoreFile& semaphores_;
    simkernel::ValueQueue& values_;
    std::vector<EngineProcess*> engines_;
    Watchdog* watchdog_ = nullptr;
    simkernel::JobHooks* hooks_ = nullptr;
    std::function<void(Cycles)> completed_;
    Initiator initiator_;

    State state_ = State::idle;
    Group group_;
    JobRequest request_;
    Cycles doorbell_;
    std::uint32_t end_ = 0;            ///< one past the last descriptor to dispatch
    std::uint32_t next_ = 0;           ///< to dispatch
    std::uint32_t next_fetch_ = 0;
    std::deque<Fetched> fetched_;      ///< descriptors [next_, next_fetch_)
    std::optional<simkernel::Decoded> head_;  ///< fetched_.front(), decoded
    Cycles next_dispatch_;
    std::optional<simkernel::Engine> full_queue_;  ///< the queue that dispatch waits for
    Cycles last_acknowledgement_;
    Cycles drained_at_;
    Cycles completion_due_;

    ErrorRecord error_;
    std::uint32_t last_sequence_ = 0, completed_sequence_ = 0, sticky_status_ = 0;
    std::string wait_graph_;
};

}  // namespace assay::chip
