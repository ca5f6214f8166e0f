#include "simkernel/exec/legality.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace assay::simkernel {

std::vector<ProgramProblem> check_program(std::span<const DescriptorWords> descriptors, const ChipConfig& config, std::size_t limit) {
    std::vector<ProgramProblem> problems;
    std::vector<std::uint64_t> value(static_cast<std::size_t>(config.semaphores));
    std::vector<int> owner(value.size(), -1);
    for (std::uint32_t i = 0; i < descriptors.size() && problems.size() < limit; ++i) {
        Decoded d;
        if (Fault fault = decode(descriptors[i], config, d)) {
            problems.push_back({i, fault.code, std::move(fault.text)});
            continue;
        }
        for (std::size_t w = 0; w < 4; ++w)
            if (d.common.wait_value[w] > value[d.common.wait_sem[w]])
                problems.push_back({i, ErrorCode::illegal_program,
                                    fmt::format("waits for semaphore {} >= {}, but earlier descriptors bring it to {} only",
                                                d.common.wait_sem[w], d.common.wait_value[w], value[d.common.wait_sem[w]])});
        if (d.common.signal_add == 0) continue;
        const std::uint32_t sem = d.common.signal_sem;
        const int engine = static_cast<int>(d.engine);
        if (owner[sem] >= 0 && owner[sem] != engine)
            problems.push_back({i, ErrorCode::illegal_program, fmt::format("semaphore {} is signalled by engine {} and by engine {}", sem,
                                                                          name_of(static_cast<Engine>(owner[sem])), name_of(d.engine))});
        owner[sem] = engine;
        value[sem] += d.common.signal_add;
        if (value[sem] > UINT32_MAX)
            problems.push_back({i, ErrorCode::semaphore_overflow, fmt::format("semaphore {} would exceed 2^32 - 1", sem)});
    }
    return problems;
}

bool signal_is_needed(std::span<const DescriptorWords> descriptors, std::uint32_t index) {
    if (index >= descriptors.size()) return false;
    const CommonFields signaller = decode_common_fields(descriptors[index]);
    if (signaller.signal_add == 0) return false;
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i < index; ++i)
        if (const CommonFields c = decode_common_fields(descriptors[i]); c.signal_sem == signaller.signal_sem) before += c.signal_add;
    for (const DescriptorWords& words : descriptors) {
        const CommonFields c = decode_common_fields(words);
        for (std::size_t w = 0; w < 4; ++w)
            if (c.wait_sem[w] == signaller.signal_sem && c.wait_value[w] > before) return true;
    }
    return false;
}

}  // namespace assay::simkernel
