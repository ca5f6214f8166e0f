#include "simkernel/exec/core_streams.hpp"

#include <algorithm>

namespace assay::simkernel {

CoreStreams::CoreStreams(std::span<const DescriptorWords> stream) : index_(1) {
    for (std::uint32_t i = 0; i < stream.size(); ++i) {
        const std::uint32_t core = decode_common_fields(stream[i]).core;
        if (core >= index_.size()) index_.resize(core + 1);
        index_[core].push_back(i);
    }
}

std::uint32_t CoreStreams::before(std::uint32_t core, std::uint32_t index) const {
    return static_cast<std::uint32_t>(std::lower_bound(index_[core].begin(), index_[core].end(), index) - index_[core].begin());
}

void StreamHooks::dispatched(std::uint32_t core, std::uint32_t index, const Decoded& descriptor) {
    early_.emplace(streams_.of(core)[index], descriptor);
    for (auto at = early_.begin(); at != early_.end() && at->first == next_; at = early_.erase(at), ++next_)
        inner_.dispatched(at->second.common.core, at->first, at->second);
}

bool StreamHooks::drops_signal(std::uint32_t core, std::uint32_t index) { return inner_.drops_signal(core, streams_.of(core)[index]); }

void StreamHooks::retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) {
    inner_.retired(core, streams_.of(core)[index], memory);
}

}  // namespace assay::simkernel
