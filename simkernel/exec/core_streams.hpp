#pragma once
// A program's stream dealt out to its cores: each gets the descriptors that name it, in stream order. Chip and driver count within a core's
// own program; whatever judges a program counts in the stream.
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "simkernel/exec/hooks.hpp"

namespace assay::simkernel {

class CoreStreams {
public:
    /// Cores are those up to the highest that a descriptor names; at least one.
    explicit CoreStreams(std::span<const DescriptorWords> stream);

    std::uint32_t cores() const { return static_cast<std::uint32_t>(index_.size()); }
    /// Stream indices of the core's descriptors, ascending.
    const std::vector<std::uint32_t>& of(std::uint32_t core) const { return index_[core]; }
    /// How many descriptors of the core stand before stream index `index`.
    std::uint32_t before(std::uint32_t core, std::uint32_t index) const;

private:
    std::vector<std::vector<std::uint32_t>> index_;
};

/// Passes on what the cores of a chip report, as one stream: indices are those of the stream, and dispatches arrive in its order. One that comes
/// before its turn waits for those before it; after a failed job it may wait for ever.
class StreamHooks final : public JobHooks {
public:
    StreamHooks(const CoreStreams& streams, JobHooks& inner) : streams_(streams), inner_(inner) {}
    void dispatched(std::uint32_t core, std::uint32_t index, const Decoded& descriptor) override;
    bool drops_signal(std::uint32_t core, std::uint32_t index) override;
    void retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) override;

private:
    const CoreStreams& streams_;
    JobHooks& inner_;
    std::map<std::uint32_t, Decoded> early_;
    std::uint32_t next_ = 0;  ///< in the stream
};

}  // namespace assay::simkernel
