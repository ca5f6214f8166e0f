#pragma once
// The sanitizer (--sanitize): races, reads of bytes never written, accesses out of range, and waits that no earlier signal meets. It follows
// the descriptors in stream order, with a vector clock for each agent (an engine of a core); happens-before is a property of the program, so a
// report is the same for every seed, quantum, latency and fidelity. Shadow memory is lazy by page. On a chip that runs a program on several
// cores, StreamHooks (core_streams.hpp) puts what they dispatch into stream order first.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simkernel/exec/hooks.hpp"

namespace assay::simkernel {

enum class FindingKind { race, uninitialised, out_of_range, deadlock };
std::string_view name_of(FindingKind kind);

struct Finding {
    FindingKind kind = FindingKind::race;
    std::uint32_t descriptor = 0;  ///< the later one in stream order
    std::uint32_t other = 0;       ///< race: the earlier descriptor
    AccessRange::Space space = AccessRange::Space::spm;
    std::uint64_t address = 0;     ///< first byte concerned
    std::string text;
    bool operator==(const Finding&) const = default;
};

class Sanitizer final : public JobHooks {
public:
    /// `faults`, if given, says which signals are lost and is otherwise passed every call.
    explicit Sanitizer(const ChipConfig& config, JobHooks* faults = nullptr);
    ~Sanitizer() override;

    /// The host wrote these device bytes before the job.
    void host_wrote(std::uint64_t device_addr, std::uint64_t bytes);
    void dispatched(std::uint32_t core, std::uint32_t index, const Decoded& descriptor) override;
    bool drops_signal(std::uint32_t core, std::uint32_t index) override;
    void retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) override;

    /// One finding for each pair of descriptors and kind, in stream order; at most kMaxFindings.
    const std::vector<Finding>& findings() const { return findings_; }
    static constexpr std::size_t kMaxFindings = 64;

private:
    struct Shadow;
    using Clock = std::vector<std::uint32_t>;  ///< by agent: 1 + index of the last descriptor ordered before
    struct Event {
        std::uint64_t value;  ///< of the semaphore after this signal
        Clock clock;
    };
    template <class Cell>
    void visit(Cell& cell, std::uint32_t index, const AccessRange& range, std::uint64_t addr);
    template <class Pages>
    void touch(Pages& pages, std::uint32_t index, const AccessRange& range, std::uint64_t begin, std::uint64_t bytes);
    void access(std::uint32_t index, const AccessRange& range);
    void touch(std::uint32_t index, const AccessRange& range, std::uint64_t begin, std::uint64_t bytes);
    std::string where(const AccessRange& range) const;
    void report(Finding finding);

    const ChipConfig config_;
    JobHooks* faults_;
    std::vector<Clock> agents_;
    std::map<SemaphoreId, std::vector<Event>> signals_;
    std::vector<std::uint32_t> agent_of_;  ///< by descriptor
    std::unique_ptr<Shadow> shadow_;
    std::vector<Finding> findings_;
    Clock now_;
    std::uint32_t core_ = 0, agent_ = 0;  ///< of the descriptor at hand
    bool frozen_ = false;  ///< after a deadlock: what follows never runs in stream order
};

}  // namespace assay::simkernel
