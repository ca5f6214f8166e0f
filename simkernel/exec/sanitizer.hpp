#pragma once
// The sanitizer (--sanitize): races, reads of bytes never written, accesses out of range, and waits that no earlier signal meets. It follows
// the descriptors in stream order as they are dispatched, with a vector clock an engine; happens-before is a property of the program, so a
// report is the same for every seed, quantum, latency and fidelity. Shadow memory is lazy by page.
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
    struct Clock {
        std::array<std::uint32_t, kAllEngine.size()> seen{};  ///< by engine: 1 + index of the last descriptor ordered before
    };
    struct Event {
        std::uint64_t value;  ///< of the semaphore after this signal
        Clock clock;
    };
    void access(std::uint32_t index, const AccessRange& range);
    void touch(std::uint32_t index, const AccessRange& range, std::uint64_t begin, std::uint64_t bytes);
    void report(Finding finding);

    const ChipConfig config_;
    JobHooks* faults_;
    std::array<Clock, kAllEngine.size()> engines_{};
    std::map<std::uint32_t, std::vector<Event>> signals_;
    std::vector<Engine> engine_of_;
    std::unique_ptr<Shadow> shadow_;
    std::vector<Finding> findings_;
    Clock now_;
    Engine engine_ = Engine::load;
    bool frozen_ = false;  ///< after a deadlock: what follows never runs in stream order
};

}  // namespace assay::simkernel
