#include "simkernel/exec/sanitizer.hpp"

#include <algorithm>
#include <type_traits>
#include <unordered_map>
#include <variant>

#include <fmt/format.h>

#include "support/error.hpp"

namespace assay::simkernel {
namespace {

constexpr std::size_t kEngines = kAllEngine.size();
constexpr std::uint32_t kHost = UINT32_MAX;
constexpr std::uint64_t kPageBytes = 4096;

/// History of one byte: 1 + index of its last writer (0: never; kHost: the host) and, by reader, of its last reading since. Who may read is
/// numbered by the memory: engines of a core, or load engines of the chip.
template <std::size_t Readers>
struct Cell {
    std::uint32_t writer = 0;
    std::array<std::uint32_t, Readers> readers{};
};

/// A page is one cell for all its bytes until an access covers only a part of it.
template <std::size_t Readers>
struct Page {
    using CellType = Cell<Readers>;
    CellType uniform;
    std::vector<CellType> cells;  ///< empty: uniform
    void expand() {
        if (cells.empty()) cells.assign(kPageBytes, uniform);
    }
};

template <std::size_t Readers>
using Pages = std::unordered_map<std::uint64_t, Page<Readers>>;

std::string_view name_of_space(AccessRange::Space space) {
    switch (space) {
        case AccessRange::Space::spm: return "scratchpad";
        case AccessRange::Space::acc: return "accumulator";
        case AccessRange::Space::ext: return "device memory";
    }
    return "?";
}

}  // namespace

std::string_view name_of(FindingKind kind) {
    switch (kind) {
        case FindingKind::race: return "race";
        case FindingKind::uninitialised: return "uninitialised";
        case FindingKind::out_of_range: return "out_of_range";
        case FindingKind::deadlock: return "deadlock";
    }
    return "?";
}

struct Sanitizer::Shadow {
    explicit Shadow(std::size_t cores) : local(cores) {
        if (cores > 1) external.emplace<Pages<4>>();
        if (cores > 4) external.emplace<Pages<64>>();  // the contract's most cores
    }
    std::vector<std::array<Pages<kEngines>, 2>> local;  ///< by core: scratchpad, accumulator
    std::variant<Pages<1>, Pages<4>, Pages<64>> external;
};

Sanitizer::Sanitizer(const ChipConfig& config, JobHooks* faults)
    : config_(config),
      faults_(faults),
      agents_(static_cast<std::size_t>(config.cores) * kEngines, Clock(static_cast<std::size_t>(config.cores) * kEngines)),
      shadow_(std::make_unique<Shadow>(static_cast<std::size_t>(config.cores))) {}
Sanitizer::~Sanitizer() = default;

void Sanitizer::host_wrote(std::uint64_t addr, std::uint64_t bytes) {
    std::visit(
        [&](auto& pages) {
            while (bytes > 0) {
                const std::uint64_t offset = addr % kPageBytes;
                const std::uint64_t length = std::min(bytes, kPageBytes - offset);
                auto& page = pages[addr / kPageBytes];
                using CellType = typename std::remove_reference_t<decltype(page)>::CellType;
                if (length == kPageBytes) {
                    page.uniform = CellType{kHost, {}};
                    page.cells.clear();
                } else {
                    page.expand();
                    std::fill_n(page.cells.begin() + static_cast<std::ptrdiff_t>(offset), length, CellType{kHost, {}});
                }
                addr += length;
                bytes -= length;
            }
        },
        shadow_->external);
}

void Sanitizer::report(Finding finding) {
    const bool known = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& f) {
        return f.kind == finding.kind && f.descriptor == finding.descriptor && f.other == finding.other;
    });
    if (!known && findings_.size() < kMaxFindings) findings_.push_back(std::move(finding));
}

std::string Sanitizer::where(const AccessRange& range) const {
    if (config_.cores == 1 || range.space == AccessRange::Space::ext) return std::string(name_of_space(range.space));
    return fmt::format("core {}'s {}", core_, name_of_space(range.space));
}

template <class Cell>
void Sanitizer::visit(Cell& cell, std::uint32_t index, const AccessRange& range, std::uint64_t addr) {
    const bool external = range.space == AccessRange::Space::ext;
    const auto conflict = [&](std::uint32_t other, std::string_view what) {
        report({FindingKind::race, index, other, range.space, addr,
                fmt::format("{} of {} byte {:#x} is not ordered after its {} by descriptor {}: a wait on engine {} is missing",
                            range.write ? "write" : "read", where(range), addr, what, other, agent_name(agent_of_[other], config_.cores > 1))});
    };
    if (cell.writer == 0) {
        if (!range.write)
            report({FindingKind::uninitialised, index, 0, range.space, addr,
                    fmt::format("read of {} byte {:#x}, which nothing has written", where(range), addr)});
    } else if (cell.writer != kHost) {
        const std::uint32_t writer = cell.writer - 1, by = agent_of_[writer];
        if (by != agent_ && now_[by] <= writer) conflict(writer, "write");
    }
    // Device memory is read by load engines only.
    const std::size_t mine = external ? core_ : agent_ % kEngines;
    if (!range.write) {
        ASSAY_CHECK(!external || agent_ == agent_of(core_, Engine::load), "device memory is read by load engines only");
        cell.readers[mine] = index + 1;
        return;
    }
    for (std::size_t r = 0; r < cell.readers.size(); ++r) {
        if (cell.readers[r] == 0) continue;
        const std::size_t by = external ? agent_of(static_cast<std::uint32_t>(r), Engine::load) : core_ * kEngines + r;
        if (by != agent_ && now_[by] < cell.readers[r]) conflict(cell.readers[r] - 1, "read");
    }
    cell.writer = index + 1;
    cell.readers = {};
}

template <class Pages>
void Sanitizer::touch(Pages& pages, std::uint32_t index, const AccessRange& range, std::uint64_t begin, std::uint64_t bytes) {
    while (bytes > 0) {
        const std::uint64_t offset = begin % kPageBytes;
        const std::uint64_t length = std::min(bytes, kPageBytes - offset);
        auto& page = pages[begin / kPageBytes];
        if (length == kPageBytes && page.cells.empty()) {
            visit(page.uniform, index, range, begin);
        } else {
            page.expand();
            for (std::uint64_t i = 0; i < length; ++i) visit(page.cells[offset + i], index, range, begin + i);
            if (length == kPageBytes && range.write) {
                page.uniform = page.cells.front();
                page.cells.clear();
            }
        }
        begin += length;
        bytes -= length;
    }
}

void Sanitizer::touch(std::uint32_t index, const AccessRange& range, std::uint64_t begin, std::uint64_t bytes) {
    if (range.space == AccessRange::Space::ext)
        std::visit([&](auto& pages) { touch(pages, index, range, begin, bytes); }, shadow_->external);
    else
        touch(shadow_->local[core_][range.space == AccessRange::Space::acc], index, range, begin, bytes);
}

void Sanitizer::access(std::uint32_t index, const AccessRange& range) {
    std::vector<std::uint64_t> at(range.dims.size(), 0);
    const std::uint64_t limit = range.space == AccessRange::Space::ext ? static_cast<std::uint64_t>(config_.hbm_bytes) : UINT64_MAX;
    while (true) {
        std::uint64_t begin = range.base;
        for (std::size_t d = 0; d < at.size(); ++d) begin += at[d] * static_cast<std::uint64_t>(range.dims[d].second);
        if (range.space == AccessRange::Space::ext && begin < region::spm && (range.run > limit || begin > limit - range.run)) {
            report({FindingKind::out_of_range, index, 0, range.space, begin,
                    fmt::format("{} of {} bytes at {:#x}: HBM holds {:#x}", range.write ? "write" : "read", range.run, begin, limit)});
            return;
        }
        touch(index, range, begin, range.run);
        std::size_t d = at.size();
        while (d > 0 && ++at[d - 1] == range.dims[d - 1].first) at[--d] = 0;
        if (d == 0) return;
    }
}

void Sanitizer::dispatched(std::uint32_t core, std::uint32_t index, const Decoded& d) {
    if (faults_) faults_->dispatched(core, index, d);
    if (frozen_) return;
    core_ = d.common.core;
    agent_ = static_cast<std::uint32_t>(agent_of(core_, d.engine));
    if (agent_of_.size() <= index) agent_of_.resize(index + 1);
    agent_of_[index] = agent_;
    now_ = agents_[agent_];
    for (std::size_t w = 0; w < 4; ++w) {
        const std::uint64_t value = d.common.wait_value[w];
        if (value == 0) continue;
        const SemaphoreId id = awaited(d.common, w);
        const std::vector<Event>& events = signals_[id];
        const auto met = std::lower_bound(events.begin(), events.end(), value, [](const Event& e, std::uint64_t v) { return e.value < v; });
        if (met == events.end()) {
            report({FindingKind::deadlock, index, 0, AccessRange::Space::spm, d.common.wait_sem[w],
                    fmt::format("waits for {} >= {}, but the signals of earlier descriptors bring it to {} only", semaphore_name(id, config_.cores > 1),
                                value, events.empty() ? 0 : events.back().value)});
            frozen_ = true;
            return;
        }
        for (std::size_t a = 0; a < now_.size(); ++a) now_[a] = std::max(now_[a], met->clock[a]);
    }
    for (const AccessRange& range : accesses(d, config_))
        if (!range.write) access(index, range);
    for (const AccessRange& range : accesses(d, config_))
        if (range.write) access(index, range);
    now_[agent_] = index + 1;
    agents_[agent_] = now_;
    if (d.common.signal_add > 0 && !drops_signal(core, index)) {
        std::vector<Event>& events = signals_[signalled(d.common)];
        events.push_back({(events.empty() ? 0 : events.back().value) + d.common.signal_add, now_});
    }
}

bool Sanitizer::drops_signal(std::uint32_t core, std::uint32_t index) { return faults_ && faults_->drops_signal(core, index); }

void Sanitizer::retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) {
    if (faults_) faults_->retired(core, index, memory);
}

}  // namespace assay::simkernel
