#pragma once
// One engine of a core: a queue filled by the command processor, and a unit behind the seam. For each descriptor in order: wait for its
// semaphores, run it on the unit, and at retirement write the trace record and signal. Every semaphore, queue and shared resource is
// touched at the engine's exact local time; only the unit's private work runs ahead, by at most a quantum.
#include <deque>

#include "simkernel/exec/value_queue.hpp"
#include "systemc/chip.hpp"
#include "systemc/engine_ports.hpp"
#include "systemc/job.hpp"
#include "systemc/random.hpp"
#include "systemc/semaphore_file.hpp"
#include "systemc/traffic.hpp"

namespace assay::chip {

struct QueuedDescriptor {
    std::uint32_t index = 0;
    simkernel::DescriptorWords words{};
    simkernel::Decoded decoded;
    Cycles at_head;  ///< cycle at which it could first be looked at
};

/// What an engine is connected to.
struct EngineContext {
    const simkernel::ChipConfig& config;
    std::uint32_t core = 0;
    simkernel::Engine engine = simkernel::Engine::load;
    SemaphoreFile& semaphores;         ///< the core's own
    SemaphoreFile& shared_semaphores;  ///< the chip's
    simkernel::LocalMemory& local;
    simkernel::ExternalMemory& external;
    simkernel::ValueQueue& values;
    bool jitter = false;
    std::uint64_t seed = 0;
};

class EngineProcess final : public TimedProcess, private EnginePorts {
public:
    tlm_utils::simple_initiator_socket<EngineProcess> to_noc{"to_noc"};

    EngineProcess(sc_core::sc_module_name name, Timeline& timeline, Phase phase, const EngineContext& context);
    void connect(JobControl& control) { control_ = &control; }
    /// The unit to run on; an empty factory makes the behavioural one.
    void install(const UnitFactory& factory);
    void reset();

    bool full() const { return queue_.size() >= static_cast<std::size_t>(context_.config.queue_depth); }
    bool running() const { return running_; }
    bool drained() const { return !running_ && queue_.empty(); }
    /// Queues a descriptor at cycle `at`; the engine sees it in the next cycle. Not when full().
    void push(QueuedDescriptor descriptor, Cycles at);
    void drop_queued(Cycles at);   ///< the job failed: what has not started never will
    void abort(Cycles at);         ///< as drop_queued, and gives up the running descriptor: the unit hangs
    void start_job();              ///< zeroes the counters

    /// Counters as of cycle `at`, the running interval included.
    EngineCounters counters(Cycles at) const;
    /// Index of the running or else first queued descriptor, for error records. Only when not drained.
    std::uint32_t current_index() const { return running_ ? current_.index : queue_.front().index; }
    /// "matrix: descriptor 12 awaits semaphore 3 >= 4, which is 2"; says "idle" or "running" otherwise.
    std::string describe(Cycles at);
    /// Semaphore that the head descriptor awaits, if it does.
    std::optional<std::uint32_t> awaited_semaphore() const { return awaited_ ? std::optional(awaited_->number) : std::nullopt; }
    std::string_view implementation() const { return unit_ ? unit_->implementation() : std::string_view("none"); }

    static constexpr std::uint64_t kJitterCycles = 15;

private:
    void step() override;
    bool try_start();
    std::optional<std::size_t> unmet_wait();
    void advance_unit();
    void retire();
    void write_trace();
    void signal();
    void raise(const simkernel::Fault& fault);

    PortReply read_local(std::uint32_t local_addr, std::span<std::byte> out, Cycles at) override;
    PortReply write_local(std::uint32_t local_addr, std::span<const std::byte> in, Cycles at) override;
    PortReply read_external(std::uint64_t device_addr, std::span<std::byte> out, Cycles at) override;
    PortReply write_external(std::uint64_t device_addr, std::span<const std::byte> in, Cycles at) override;
    PortReply reserve_external(std::uint64_t device_addr, std::uint64_t bytes, bool write, Cycles at) override;
    simkernel::Effect values_of(const simkernel::Decoded& descriptor) override;
    void join_values() override { context_.values.join(); }
    simkernel::LocalMemory& local() override { return context_.local; }
    simkernel::ExternalMemory& external() override { return context_.external; }
    const simkernel::ChipConfig& config() const override { return context_.config; }

    const EngineContext context_;
    JobControl* control_ = nullptr;
    std::unique_ptr<Unit> unit_;
    Initiator initiator_;
    RandomStream random_;

    std::deque<QueuedDescriptor> queue_;
    struct Awaited {
        SemaphoreFile* file;
        std::uint32_t number;
    };
    void forget_waits();
    SemaphoreFile& file(bool shared) { return shared ? context_.shared_semaphores : context_.semaphores; }
    std::optional<Awaited> awaited_;
    Cycles free_at_;           ///< retirement of the previous descriptor

    bool running_ = false;
    QueuedDescriptor current_;
    Cycles started_;
    Cycles unit_time_;         ///< the unit's own clock, at most a quantum past now()
    bool finished_ = false;    ///< the unit retired it at unit_time_
    Cycles stall_memory_;      ///< of the running descriptor
    Advance result_;

    EngineCounters counters_;
};

}  // namespace assay::chip
