#include "workloads/schedule/semaphores.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "support/error.hpp"

namespace assay::workloads {
namespace {

constexpr std::size_t kEngines = 4;                 // load, store, matrix, vector
using Clock = std::array<std::uint32_t, kEngines>;  // by engine: 1 + stream index of the last descriptor known complete; 0: none

/// Who touched each byte range last. A write waits for all earlier accesses, so it alone represents them afterwards.
class Memory {
public:
    /// Raises `need` to the descriptors that must complete before the access.
    void query(const Touch& t, Clock& need) const {
        for (auto it = first(t.low); it != ranges_.end() && it->first < t.high; ++it) {
            if (it->second.high <= t.low) continue;
            for (std::size_t e = 0; e < kEngines; ++e) {
                need[e] = std::max(need[e], it->second.written[e]);
                if (t.write) need[e] = std::max(need[e], it->second.read[e]);
            }
        }
    }
    void record(const Touch& t, std::size_t engine, std::uint32_t stamp) {
        split(t.low);
        split(t.high);
        auto it = ranges_.lower_bound(t.low);
        if (t.write) {
            while (it != ranges_.end() && it->first < t.high) it = ranges_.erase(it);
            Range range{t.high, {}, {}};
            range.written[engine] = stamp;
            ranges_.emplace(t.low, range);
            return;
        }
        std::uint64_t at = t.low;
        while (at < t.high) {
            if (it == ranges_.end() || it->first > at) {
                const std::uint64_t end = it == ranges_.end() ? t.high : std::min(t.high, it->first);
                it = ranges_.emplace_hint(it, at, Range{end, {}, {}});
            }
            it->second.read[engine] = stamp;
            at = it->second.high;
            ++it;
        }
    }

private:
    struct Range {
        std::uint64_t high;
        Clock written, read;
    };
    std::map<std::uint64_t, Range>::const_iterator first(std::uint64_t low) const {
        auto it = ranges_.upper_bound(low);
        return it == ranges_.begin() ? it : std::prev(it);
    }
    void split(std::uint64_t at) {
        auto it = ranges_.upper_bound(at);
        if (it == ranges_.begin()) return;
        --it;
        if (it->first == at || it->second.high <= at) return;
        const Range tail = it->second;
        it->second.high = at;
        ranges_.emplace(at, tail);
    }
    std::map<std::uint64_t, Range> ranges_;
};

void raise(Clock& clock, const Clock& other) {
    for (std::size_t e = 0; e < kEngines; ++e) clock[e] = std::max(clock[e], other[e]);
}

}  // namespace

void insert_semaphores(std::vector<Item>& stream) {
    std::array<Memory, 3> memories;
    std::vector<Clock> done(stream.size());     // what is complete once descriptor i is
    std::vector<Clock> awaited(stream.size());  // by engine: stamp waited for; 0: none
    std::vector<bool> signals(stream.size(), false);
    Clock last{};  // by engine: stamp of its latest descriptor
    for (std::size_t i = 0; i < stream.size(); ++i) {
        const Item& item = stream[i];
        const auto engine = static_cast<std::size_t>(item.engine);
        const auto stamp = static_cast<std::uint32_t>(i + 1);
        Clock need{};
        for (const Touch& t : item.touches) memories[static_cast<std::size_t>(t.space)].query(t, need);
        Clock known{};
        if (last[engine]) known = done[last[engine] - 1];
        // Drop what this engine's order or another needed wait implies already.
        for (std::size_t e = 0; e < kEngines; ++e) {
            if (e == engine || need[e] <= known[e]) need[e] = 0;
        }
        for (std::size_t e = 0; e < kEngines; ++e)
            for (std::size_t other = 0; other < kEngines; ++other)
                if (other != e && need[other] && need[e] && done[need[other] - 1][e] >= need[e]) need[e] = 0;
        for (std::size_t e = 0; e < kEngines; ++e) {
            if (!need[e]) continue;
            signals[need[e] - 1] = true;
            raise(known, done[need[e] - 1]);
        }
        awaited[i] = need;
        known[engine] = stamp;
        done[i] = known;
        last[engine] = stamp;
        for (const Touch& t : item.touches) memories[static_cast<std::size_t>(t.space)].record(t, engine, stamp);
    }
    std::array<std::uint32_t, kEngines> count{};
    std::vector<std::uint32_t> value(stream.size(), 0);
    for (std::size_t i = 0; i < stream.size(); ++i) {
        simkernel::CommonFields common = simkernel::decode_common_fields(stream[i].words);
        common.tag = stream[i].layer;
        if (signals[i]) {
            const auto engine = static_cast<std::size_t>(stream[i].engine);
            value[i] = ++count[engine];
            common.signal_sem = static_cast<std::uint32_t>(engine);
            common.signal_add = 1;
        }
        std::size_t slot = 0;
        for (std::size_t e = 0; e < kEngines; ++e)
            if (awaited[i][e]) {
                ASSAY_CHECK(slot < common.wait_sem.size() && value[awaited[i][e] - 1] != 0, "a wait must name an earlier signal");
                common.wait_sem[slot] = static_cast<std::uint32_t>(e);
                common.wait_value[slot++] = value[awaited[i][e] - 1];
            }
        simkernel::encode(common, stream[i].words);
    }
}

}  // namespace assay::workloads
