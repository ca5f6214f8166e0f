#pragma once
// Collects the descriptors of a program in a stream order that is legal one at a time and lets the engines overlap.
//
// A layer is a series of steps (one output tile each, roughly). Each descriptor names its stage and step; within a layer they are sorted so
// that loads of step t+1 stand before the compute of step t (software pipelining). A buffer used last in step u may be written again by a
// load or conversion of a later step only after u's users: the caller names u, and the order honours it. A layer may be dealt out to several cores:
// equal steps of different cores then stand together. Semaphores are put in at the end
// by one pass (semaphores.hpp), which looks only at what each descriptor reads and writes.
#include <cstdint>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/program.hpp"

namespace assay::workloads {

/// Bytes [low, high) of one memory; strided accesses are covered by their bounding interval.
struct Touch {
    enum class Space : std::uint8_t { spm, acc, hbm } space = Space::spm;
    bool write = false;
    std::uint64_t low = 0, high = 0;
    /// Writes to HBM: those of one group (not 0) touch different bytes, though their intervals may overlap.
    std::uint32_t group = 0;
};

struct Item {
    std::int64_t key = 0;
    simkernel::Engine engine = simkernel::Engine::load;
    simkernel::DescriptorWords words{};
    std::vector<Touch> touches;
    std::uint32_t layer = 0, tile = 0, core = 0;
};

enum class Stage { load, convert, compute, drain, store };

inline constexpr std::int64_t kNeverUsed = -1;

class Emitter {
public:
    void begin_layer(std::uint32_t layer);
    /// Sorts the layer's descriptors into the stream; returns how many there were.
    std::uint32_t end_layer();

    /// Forgets the descriptors of a layer that was begun and not ended.
    void abort_layer() { pending_.clear(); }

    /// Core of the descriptors that follow; 0 when a layer begins. Each core has scratchpad, accumulator and steps of its own.
    void set_core(std::uint32_t core) { core_ = core; }

    /// Until the end: stores of different descriptors write different bytes, whichever core they are on.
    void begin_disjoint_stores() { group_ = ++groups_; }
    void end_disjoint_stores() { group_ = 0; }

    /// Stage and step of the descriptors that follow; `last_use` is the last step that used the buffer they write (load and convert only).
    void at(Stage stage, std::int64_t step, std::int64_t last_use = kNeverUsed);
    void emit(const simkernel::LoadFields& f);
    void emit(const simkernel::FillFields& f);
    void emit(const simkernel::StoreFields& f);
    void emit(const simkernel::MatmulFields& f);
    void emit(const simkernel::VectorFields& f);

    std::uint32_t size() const { return static_cast<std::uint32_t>(stream_.size()); }
    std::vector<Item>& stream() { return stream_; }

private:
    template <class Fields>
    void push(simkernel::Opcode opcode, simkernel::Engine engine, const Fields& f, std::vector<Touch> touches);

    std::vector<Item> stream_, pending_;
    std::int64_t key_ = 0;
    std::uint32_t layer_ = 0, tile_ = 0, core_ = 0, group_ = 0, groups_ = 0;
};

/// Buffers of equal size used in turn. `use` marks the current one as used by a step.
class Ring {
public:
    Ring() = default;
    /// `used`: the last step that used any of the room before.
    Ring(std::uint32_t base, std::uint32_t bytes, int count, std::int64_t used = kNeverUsed)
        : base_(base), bytes_(bytes), last_(static_cast<std::size_t>(count), used) {}
    /// Moves to the next buffer; returns the last step that used it.
    std::int64_t advance() {
        current_ = (current_ + 1) % last_.size();
        return last_[current_];
    }
    void use(std::int64_t step) { last_[current_] = step; }
    std::uint32_t addr() const { return base_ + static_cast<std::uint32_t>(current_) * bytes_; }

private:
    std::uint32_t base_ = 0, bytes_ = 0;
    std::vector<std::int64_t> last_{kNeverUsed};
    std::size_t current_ = 0;
};

}  // namespace assay::workloads
