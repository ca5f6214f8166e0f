#include "workloads/schedule/emitter.hpp"

#include <algorithm>

#include "simkernel/exec/decode.hpp"
#include "simkernel/types.hpp"

namespace assay::workloads {
namespace {

using namespace simkernel;

/// Bounding interval of a local access; `size` bytes at each index.
template <class Counts, class Strides>
Touch local_touch(std::uint32_t addr, bool write, std::uint64_t size, const Counts& counts, const Strides& strides) {
    Touch t;
    t.space = (addr & kAccBit) ? Touch::Space::acc : Touch::Space::spm;
    t.write = write;
    std::int64_t low = addr & ~kAccBit, high = low + static_cast<std::int64_t>(size);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const std::int64_t reach = static_cast<std::int64_t>(counts[i] - 1) * strides[i];
        (reach < 0 ? low : high) += reach;
    }
    t.low = static_cast<std::uint64_t>(low);
    t.high = static_cast<std::uint64_t>(high);
    return t;
}

template <class Fields>
Touch external_touch(const Fields& f, bool write) {
    Touch t;
    t.space = Touch::Space::hbm;
    t.write = write;
    std::int64_t low = static_cast<std::int64_t>(f.ext_addr), high = low + f.run_bytes;
    for (std::size_t i = 0; i < f.count.size(); ++i) {
        const std::uint32_t rows = i == 0 && f.index_enable ? f.index_limit : f.count[i];  // an indexed transfer may touch any row
        const std::int64_t reach = static_cast<std::int64_t>(rows - 1) * f.ext_stride[i];
        (reach < 0 ? low : high) += reach;
    }
    t.low = static_cast<std::uint64_t>(low);
    t.high = static_cast<std::uint64_t>(high);
    return t;
}

template <class Fields>
void add_index_list(std::vector<Touch>& touches, const Fields& f) {
    if (f.index_enable)
        touches.push_back(local_touch(f.index_addr, false, 4, std::array{f.count[0]}, std::array{std::int64_t{4}}));
}

}  // namespace

void Emitter::begin_layer(std::uint32_t layer) {
    layer_ = layer;
    core_ = 0;
    group_ = 0;
    pending_.clear();
}

std::uint32_t Emitter::end_layer() {
    std::stable_sort(pending_.begin(), pending_.end(), [](const Item& a, const Item& b) { return a.key < b.key; });
    const auto count = static_cast<std::uint32_t>(pending_.size());
    std::move(pending_.begin(), pending_.end(), std::back_inserter(stream_));
    pending_.clear();
    return count;
}

void Emitter::at(Stage stage, std::int64_t step, std::int64_t last_use) {
    // Per step four places: compute, drain, store, and a gap in which loads whose buffer was freed by that step may stand.
    tile_ = static_cast<std::uint32_t>(step);
    const std::int64_t freed = last_use == kNeverUsed ? INT64_MIN : 4 * last_use + 3;
    switch (stage) {
        case Stage::load:
            key_ = std::max(4 * step - 5, freed);
            break;
        case Stage::convert:
            key_ = std::max(4 * step - 3, freed);
            break;
        case Stage::compute:
            key_ = 4 * step;
            break;
        case Stage::drain:
            key_ = 4 * step + 1;
            break;
        case Stage::store:
            key_ = 4 * step + 2;
            break;
    }
}

template <class Fields>
void Emitter::push(Opcode opcode, Engine engine, const Fields& f, std::vector<Touch> touches) {
    Item item;
    item.key = key_;
    item.engine = engine;
    encode(f, item.words);
    item.words[0] |= static_cast<std::uint32_t>(opcode);
    item.touches = std::move(touches);
    item.layer = layer_;
    item.tile = tile_;
    item.core = core_;
    pending_.push_back(std::move(item));
}

void Emitter::emit(const LoadFields& f) {
    std::vector<Touch> touches{local_touch(f.local_addr, true, f.run_bytes, f.count, f.local_stride), external_touch(f, false)};
    add_index_list(touches, f);
    push(Opcode::load, Engine::load, f, std::move(touches));
}

void Emitter::emit(const FillFields& f) {
    push(Opcode::fill, Engine::load, f, {local_touch(f.local_addr, true, f.run_bytes, f.count, f.local_stride)});
}

void Emitter::emit(const StoreFields& f) {
    std::vector<Touch> touches{local_touch(f.local_addr, false, f.run_bytes, f.count, f.local_stride), external_touch(f, true)};
    touches.back().group = group_;
    add_index_list(touches, f);
    push(Opcode::store, Engine::store, f, std::move(touches));
}

void Emitter::emit(const MatmulFields& f) {
    const std::uint64_t size = simkernel::size_of(static_cast<Dtype>(f.dtype));
    const std::uint32_t k = f.k_count[0] * f.k_count[1] * f.k_count[2], m = f.m_count[0] * f.m_count[1] * f.m_count[2];
    const std::array<std::uint32_t, 5> counts{f.m_count[0], f.m_count[1], f.m_count[2], f.k_count[1], f.k_count[2]};
    const std::array<std::int64_t, 5> strides{f.a_m_stride[0], f.a_m_stride[1], f.a_m_stride[2], f.a_k_stride[0], f.a_k_stride[1]};
    push(Opcode::matmul, Engine::matrix, f,
         {local_touch(f.a_addr, false, f.k_count[0] * size, counts, strides),
          local_touch(f.w_addr, false, f.n_count * size, std::array{k}, std::array{std::int64_t{f.w_stride}}),
          local_touch(f.acc_addr, true, std::uint64_t{4} * f.n_count, std::array{m}, std::array{std::int64_t{f.acc_stride}})});
}

void Emitter::emit(const VectorFields& f) {
    std::vector<Touch> touches;
    const std::array<const std::array<std::int32_t, 5>*, 3> strides{&f.in0_stride, &f.in1_stride, &f.in2_stride};
    for (std::size_t i = 0; i < 3; ++i)
        if (f.in_used >> i & 1)
            touches.push_back(local_touch(f.in_addr[i], false, simkernel::size_of(static_cast<Dtype>(f.in_type[i])), f.count, *strides[i]));
    std::array<std::uint32_t, 5> counts = f.count;
    for (unsigned d = 1; d <= f.reduce_dims; ++d) counts[d] = 1;
    if (f.carry_in) {
        std::uint64_t groups = 1;
        for (unsigned d = f.reduce_dims + 1; d < 5; ++d) groups *= f.count[d];
        touches.push_back(local_touch(f.in_addr[2], false, 4 * groups * f.count[0], std::array<std::uint32_t, 0>{}, std::array<std::int32_t, 0>{}));
    }
    // Partials of a group lie side by side: no more than there are elements of dimension 0.
    const std::uint64_t size = f.carry_out ? std::uint64_t{4} * f.count[0] : simkernel::size_of(static_cast<Dtype>(f.out_type));
    touches.push_back(local_touch(f.out_addr, true, size, counts, f.out_stride));
    push(Opcode::vector, Engine::vector, f, std::move(touches));
}

}  // namespace assay::workloads
