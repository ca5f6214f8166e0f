#include "simkernel/exec/sanitizer.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace assay::simkernel {
namespace {

constexpr std::size_t kEngines = kAllEngine.size();
constexpr std::uint32_t kHost = UINT32_MAX;

/// History of one byte: 1 + index of its last writer (0: never; kHost: the host) and, by engine, of its last reader since.
struct Cell {
    std::uint32_t writer = 0;
    std::array<std::uint32_t, kEngines> readers{};
};

/// A page is one cell for all its bytes until an access covers only a part of it.
struct Page {
    static constexpr std::uint64_t kBytes = 4096;
    Cell uniform;
    std::vector<Cell> cells;  ///< empty: uniform
    void expand() {
        if (cells.empty()) cells.assign(kBytes, uniform);
    }
};

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
    std::array<std::unordered_map<std::uint64_t, Page>, 3> pages;
    Page& page(AccessRange::Space space, std::uint64_t addr) { return pages[static_cast<std::size_t>(space)][addr / Page::kBytes]; }
};

Sanitizer::Sanitizer(const ChipConfig& config, JobHooks* faults) : config_(config), faults_(faults), shadow_(std::make_unique<Shadow>()) {}
Sanitizer::~Sanitizer() = default;

void Sanitizer::host_wrote(std::uint64_t addr, std::uint64_t bytes) {
    while (bytes > 0) {
        const std::uint64_t offset = addr % Page::kBytes;
        const std::uint64_t length = std::min(bytes, Page::kBytes - offset);
        Page& page = shadow_->page(AccessRange::Space::ext, addr);
        if (length == Page::kBytes) {
            page.uniform = {kHost, {}};
            page.cells.clear();
        } else {
            page.expand();
            std::fill_n(page.cells.begin() + static_cast<std::ptrdiff_t>(offset), length, Cell{kHost, {}});
        }
        addr += length;
        bytes -= length;
    }
}

void Sanitizer::report(Finding finding) {
    const bool known = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& f) {
        return f.kind == finding.kind && f.descriptor == finding.descriptor && f.other == finding.other;
    });
    if (!known && findings_.size() < kMaxFindings) findings_.push_back(std::move(finding));
}

void Sanitizer::touch(std::uint32_t index, const AccessRange& range, std::uint64_t begin, std::uint64_t bytes) {
    const auto me = static_cast<std::size_t>(engine_);
    const auto conflict = [&](std::uint32_t other, std::uint64_t addr, std::string_view what) {
        report({FindingKind::race, index, other, range.space, addr,
                fmt::format("{} of {} byte {:#x} is not ordered after its {} by descriptor {}: a wait on engine {} is missing",
                            range.write ? "write" : "read", name_of_space(range.space), addr, what, other, name_of(engine_of_[other]))});
    };
    const auto visit = [&](Cell& cell, std::uint64_t addr) {
        if (cell.writer == 0) {
            if (!range.write)
                report({FindingKind::uninitialised, index, 0, range.space, addr,
                        fmt::format("read of {} byte {:#x}, which nothing has written", name_of_space(range.space), addr)});
        } else if (cell.writer != kHost) {
            const std::uint32_t writer = cell.writer - 1;
            const auto by = static_cast<std::size_t>(engine_of_[writer]);
            if (by != me && now_.seen[by] <= writer) conflict(writer, addr, "write");
        }
        if (range.write) {
            for (std::size_t e = 0; e < kEngines; ++e)
                if (e != me && cell.readers[e] > 0 && now_.seen[e] < cell.readers[e]) conflict(cell.readers[e] - 1, addr, "read");
            cell.writer = index + 1;
            cell.readers = {};
        } else {
            cell.readers[me] = index + 1;
        }
    };
    while (bytes > 0) {
        const std::uint64_t offset = begin % Page::kBytes;
        const std::uint64_t length = std::min(bytes, Page::kBytes - offset);
        Page& page = shadow_->page(range.space, begin);
        if (length == Page::kBytes && page.cells.empty()) {
            visit(page.uniform, begin);
        } else {
            page.expand();
            for (std::uint64_t i = 0; i < length; ++i) visit(page.cells[offset + i], begin + i);
            if (length == Page::kBytes && range.write) {
                page.uniform = page.cells.front();
                page.cells.clear();
            }
        }
        begin += length;
        bytes -= length;
    }
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
    if (engine_of_.size() <= index) engine_of_.resize(index + 1, Engine::load);
    engine_of_[index] = d.engine;
    engine_ = d.engine;
    const auto me = static_cast<std::size_t>(d.engine);
    now_ = engines_[me];
    for (std::size_t w = 0; w < 4; ++w) {
        const std::uint64_t value = d.common.wait_value[w];
        if (value == 0) continue;
        const std::vector<Event>& events = signals_[d.common.wait_sem[w]];
        const auto met = std::lower_bound(events.begin(), events.end(), value, [](const Event& e, std::uint64_t v) { return e.value < v; });
        if (met == events.end()) {
            report({FindingKind::deadlock, index, 0, AccessRange::Space::spm, d.common.wait_sem[w],
                    fmt::format("waits for semaphore {} >= {}, but the signals of earlier descriptors bring it to {} only", d.common.wait_sem[w],
                                value, events.empty() ? 0 : events.back().value)});
            frozen_ = true;
            return;
        }
        for (std::size_t e = 0; e < kEngines; ++e) now_.seen[e] = std::max(now_.seen[e], met->clock.seen[e]);
    }
    for (const AccessRange& range : accesses(d, config_))
        if (!range.write) access(index, range);
    for (const AccessRange& range : accesses(d, config_))
        if (range.write) access(index, range);
    now_.seen[me] = index + 1;
    engines_[me] = now_;
    if (d.common.signal_add > 0 && !drops_signal(core, index)) {
        std::vector<Event>& events = signals_[d.common.signal_sem];
        events.push_back({(events.empty() ? 0 : events.back().value) + d.common.signal_add, now_});
    }
}

bool Sanitizer::drops_signal(std::uint32_t core, std::uint32_t index) { return faults_ && faults_->drops_signal(core, index); }

void Sanitizer::retired(std::uint32_t core, std::uint32_t index, ExternalMemory& memory) {
    if (faults_) faults_->retired(core, index, memory);
}

}  // namespace assay::simkernel
