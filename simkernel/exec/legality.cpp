#include "simkernel/exec/legality.hpp"

#include <fmt/format.h>

namespace assay::simkernel {

std::vector<ProgramProblem> check_program(std::span<const DescriptorWords> descriptors, const ChipConfig& config, std::size_t limit) {
    std::vector<ProgramProblem> problems;
    // The cores' own semaphores one after another, then the shared ones.
    const auto each = static_cast<std::size_t>(config.semaphores), cores = static_cast<std::size_t>(config.cores);
    const auto at = [&](SemaphoreId id) { return (id.core == SemaphoreId::kShared ? cores : id.core) * each + id.number; };
    const bool several = config.cores > 1;
    std::vector<std::uint64_t> value((cores + 1) * each);
    std::vector<std::int64_t> owner(value.size(), -1);
    for (std::uint32_t i = 0; i < descriptors.size() && problems.size() < limit; ++i) {
        Decoded d;
        if (Fault fault = decode(descriptors[i], config, d)) {
            problems.push_back({i, fault.code, std::move(fault.text)});
            continue;
        }
        for (std::size_t w = 0; w < 4; ++w) {
            const SemaphoreId id = awaited(d.common, w);
            if (d.common.wait_value[w] > value[at(id)])
                problems.push_back({i, ErrorCode::illegal_program,
                                    fmt::format("waits for {} >= {}, but earlier descriptors bring it to {} only", semaphore_name(id, several),
                                                d.common.wait_value[w], value[at(id)])});
        }
        if (d.common.signal_add == 0) continue;
        const SemaphoreId id = signalled(d.common);
        const auto agent = static_cast<std::int64_t>(agent_of(d.common.core, d.engine));
        std::int64_t& mine = owner[at(id)];
        if (mine >= 0 && mine != agent)
            problems.push_back({i, ErrorCode::illegal_program,
                                fmt::format("{} is signalled by engine {} and by engine {}", semaphore_name(id, several),
                                            agent_name(static_cast<std::size_t>(mine), several), agent_name(static_cast<std::size_t>(agent), several))});
        mine = agent;
        value[at(id)] += d.common.signal_add;
        if (value[at(id)] > UINT32_MAX) problems.push_back({i, ErrorCode::semaphore_overflow, semaphore_name(id, several) + " would exceed 2^32 - 1"});
    }
    return problems;
}

bool signal_is_needed(std::span<const DescriptorWords> descriptors, std::uint32_t index) {
    if (index >= descriptors.size()) return false;
    const CommonFields signaller = decode_common_fields(descriptors[index]);
    if (signaller.signal_add == 0) return false;
    const SemaphoreId id = signalled(signaller);
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i < index; ++i)
        if (const CommonFields c = decode_common_fields(descriptors[i]); signalled(c) == id) before += c.signal_add;
    for (const DescriptorWords& words : descriptors) {
        const CommonFields c = decode_common_fields(words);
        for (std::size_t w = 0; w < 4; ++w)
            if (awaited(c, w) == id && c.wait_value[w] > before) return true;
    }
    return false;
}

}  // namespace assay::simkernel
