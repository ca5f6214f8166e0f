#include "workloads/schedule/semaphores.hpp"

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <map>

#include "simkernel/exec/decode.hpp"
#include "support/error.hpp"

namespace assay::workloads {
namespace {

constexpr std::size_t kEngines = simkernel::kAllEngine.size();
constexpr std::size_t kWaits = 4;  // of a descriptor

/// Descriptors by their stamp: 1 + stream index; 0: none.
using Stamp = std::uint32_t;

std::size_t agent(const Item& item) { return simkernel::agent_of(item.core, item.engine); }

/// Who touched each byte range last. A write waits for all earlier accesses, so it alone represents them afterwards. Writes of one group touch
/// different bytes, though their intervals overlap: each waits for what came before the group, not for another of the group, and all of them
/// represent the past.
class Memory {
public:
    explicit Memory(const std::vector<Item>& stream) : stream_(&stream) {}

    /// Calls `needs(stamp)` for each descriptor that must complete before the access.
    template <class Needs>
    void query(const Touch& t, const Needs& needs) const {
        for (auto it = first(t.low); it != ranges_.end() && it->first < t.high; ++it) {
            const Range& range = it->second;
            if (range.high <= t.low) continue;
            if (joins(t, range)) {
                for (const Stamp s : range.before) needs(s);
                continue;
            }
            for (const Stamp s : range.written) needs(s);
            if (!t.write) continue;
            for (const Stamp s : range.read) needs(s);
        }
    }

    void record(const Touch& t, Stamp stamp) {
        split(t.low);
        split(t.high);
        auto it = ranges_.lower_bound(t.low);
        if (t.write && t.group == 0) {
            while (it != ranges_.end() && it->first < t.high) it = ranges_.erase(it);
            ranges_.emplace(t.low, Range{t.high, 0, {stamp}, {}, {}});
            return;
        }
        std::uint64_t at = t.low;
        while (at < t.high) {
            if (it == ranges_.end() || it->first > at) {
                const std::uint64_t end = it == ranges_.end() ? t.high : std::min(t.high, it->first);
                it = ranges_.emplace_hint(it, at, Range{end, 0, {}, {}, {}});
            }
            Range& range = it->second;
            if (!t.write) {
                add(range.read, stamp);
            } else if (joins(t, range)) {
                add(range.written, stamp);
            } else {
                range.before = range.written;
                for (const Stamp s : range.read) range.before.push_back(s);
                range.read.clear();
                range.written = {stamp};
                range.group = t.group;
            }
            at = range.high;
            ++it;
        }
    }

private:
    using Stamps = boost::container::small_vector<Stamp, 4>;  // one an agent
    struct Range {
        std::uint64_t high;
        std::uint32_t group;
        Stamps written, read, before;
    };
    static bool joins(const Touch& t, const Range& range) { return t.write && t.group != 0 && t.group == range.group && range.read.empty(); }
    /// An agent's later access stands for its earlier ones.
    void add(Stamps& stamps, Stamp stamp) const {
        const std::size_t me = agent((*stream_)[stamp - 1]);
        for (Stamp& s : stamps)
            if (agent((*stream_)[s - 1]) == me) {
                s = stamp;
                return;
            }
        stamps.push_back(stamp);
    }
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
    const std::vector<Item>* stream_;
    std::map<std::uint64_t, Range> ranges_;
};

/// For each descriptor the descriptors that it awaits, one an agent at most: those that order conflicting accesses and that neither its engine's
/// order nor another wait implies.
class Waits {
public:
    explicit Waits(const std::vector<Item>& stream) : stream_(stream), awaited(stream.size()) {
        for (const Item& item : stream) cores_ = std::max<std::size_t>(cores_, item.core + 1);
        agents_ = cores_ * kEngines;
        done_.resize(stream.size() * agents_);
        last_.resize(agents_);
        for (std::size_t core = 0; core < cores_; ++core) local_.push_back({Memory(stream), Memory(stream)});
        hbm_.emplace_back(stream);
        for (std::size_t i = 0; i < stream.size(); ++i) visit(i);
    }

private:
    Memory& memory(const Item& item, const Touch& t) {
        return t.space == Touch::Space::hbm ? hbm_[0] : local_[item.core][t.space == Touch::Space::acc];
    }
    Stamp* done(Stamp stamp) { return &done_[(stamp - 1) * agents_]; }

    void visit(std::size_t i) {
        const Item& item = stream_[i];
        const std::size_t me = agent(item);
        const auto stamp = static_cast<Stamp>(i + 1);
        need_.assign(agents_, 0);
        for (const Touch& t : item.touches)
            memory(item, t).query(t, [&](Stamp s) { need_[agent(stream_[s - 1])] = std::max(need_[agent(stream_[s - 1])], s); });
        Stamp* known = done(stamp);
        if (last_[me]) std::copy_n(done(last_[me]), agents_, known);
        wanted_.clear();
        for (std::size_t a = 0; a < agents_; ++a)
            if (a != me && need_[a] > known[a]) wanted_.push_back(need_[a]);
        // Drop what another needed wait implies already.
        std::vector<Stamp>& kept = awaited[i];
        for (const Stamp s : wanted_) {
            const std::size_t a = agent(stream_[s - 1]);
            const bool implied = std::any_of(wanted_.begin(), wanted_.end(), [&](Stamp other) { return other != s && done(other)[a] >= s; });
            if (!implied) kept.push_back(s);
        }
        for (const Stamp s : kept)
            for (std::size_t a = 0; a < agents_; ++a) known[a] = std::max(known[a], done(s)[a]);
        known[me] = stamp;
        last_[me] = stamp;
        for (const Touch& t : item.touches) memory(item, t).record(t, stamp);
    }

    const std::vector<Item>& stream_;
    std::size_t cores_ = 1, agents_ = 0;
    std::vector<Stamp> done_;  ///< by descriptor and agent: the agent's latest descriptor that is complete once this one is
    std::vector<Stamp> last_;  ///< by agent: its latest descriptor
    std::vector<std::array<Memory, 2>> local_;  ///< by core: scratchpad, accumulator
    std::vector<Memory> hbm_;                   ///< one
    std::vector<Stamp> need_, wanted_;

public:
    std::vector<std::vector<Stamp>> awaited;
};

/// What a signalling descriptor brings which semaphore to.
struct Signal {
    std::uint32_t number = 0, value = 0;
    bool shared = false;
};

void set_wait(simkernel::CommonFields& common, std::size_t slot, const Signal& signal) {
    ASSAY_CHECK(slot < kWaits && signal.value != 0, "a wait must name an earlier signal");
    common.wait_sem[slot] = signal.number;
    common.wait_shared[slot] = signal.shared;
    common.wait_value[slot] = signal.value;
}

/// Counts signals: of an engine for its core, and of an agent for others on a shared semaphore of its own.
class Signals {
public:
    Signal next(const Item& item, bool shared) {
        const std::size_t who = agent(item);
        if (!shared) return {static_cast<std::uint32_t>(item.engine), ++own_[who], false};
        const auto [number, fresh] = number_.try_emplace(who, static_cast<std::uint32_t>(number_.size()));
        return {number->second, ++shared_[who], true};
    }

private:
    std::map<std::size_t, std::uint32_t> own_, shared_, number_;
};

}  // namespace

std::vector<std::uint32_t> insert_semaphores(std::vector<Item>& stream) {
    const Waits waits(stream);
    std::vector<bool> signals(stream.size(), false), abroad(stream.size(), false);
    for (std::size_t i = 0; i < stream.size(); ++i)
        for (const Stamp s : waits.awaited[i]) {
            signals[s - 1] = true;
            if (stream[s - 1].core != stream[i].core) abroad[s - 1] = true;
        }
    Signals counter;
    std::vector<Signal> made(stream.size());
    std::vector<Item> out;
    std::vector<std::uint32_t> place;
    out.reserve(stream.size());
    const auto push = [&](Item item, const std::vector<Signal>& awaited, const Signal* signal) {
        simkernel::CommonFields common = simkernel::decode_common_fields(item.words);
        common.tag = item.layer;
        common.core = item.core;
        if (signal) {
            common.signal_sem = signal->number;
            common.signal_shared = signal->shared;
            common.signal_add = 1;
        }
        for (std::size_t w = 0; w < awaited.size(); ++w) set_wait(common, w, awaited[w]);
        simkernel::encode(common, item.words);
        out.push_back(std::move(item));
    };
    for (std::size_t i = 0; i < stream.size(); ++i) {
        place.push_back(static_cast<std::uint32_t>(out.size()));
        std::vector<Signal> own, others;
        for (const Stamp s : waits.awaited[i]) (stream[s - 1].core == stream[i].core ? own : others).push_back(made[s - 1]);
        if (own.size() + others.size() > kWaits) {
            // The engine of syncs takes them in order: the last one stands for all.
            Signal last;
            for (std::size_t at = 0; at < others.size(); at += kWaits) {
                Item sync;
                sync.engine = simkernel::Engine::collective;
                sync.core = stream[i].core;
                sync.layer = stream[i].layer;
                sync.tile = stream[i].tile;
                sync.words[0] = static_cast<std::uint32_t>(simkernel::Opcode::sync);
                const std::size_t end = std::min(others.size(), at + kWaits);
                const std::vector<Signal> part(others.begin() + static_cast<std::ptrdiff_t>(at), others.begin() + static_cast<std::ptrdiff_t>(end));
                const bool signalling = end == others.size();
                if (signalling) last = counter.next(sync, false);
                push(std::move(sync), part, signalling ? &last : nullptr);
            }
            others = {last};
        }
        own.insert(own.end(), others.begin(), others.end());
        if (signals[i]) made[i] = counter.next(stream[i], abroad[i]);
        push(std::move(stream[i]), own, signals[i] ? &made[i] : nullptr);
    }
    place.push_back(static_cast<std::uint32_t>(out.size()));
    stream = std::move(out);
    return place;
}

}  // namespace assay::workloads
