#include "workloads/lower/matrix_weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "simkernel/numerics/formats.hpp"

namespace assay::workloads {
namespace {

/// Position of (o, c, kh, kw) in the ONNX tensor; c counts within the group.
std::int64_t source_index(const ConstantWeights& w, std::int64_t o, std::int64_t c, std::int64_t kh, std::int64_t kw) {
    return o * w.strides[0] + c * w.strides[1] + kh * w.strides[2] + kw * w.strides[3];
}

/// The three-way split of docs/numerics.md, a row at a time: each part is the bf16 nearest to what the parts before leave.
void split_bf16(std::span<const float> values, std::span<std::uint16_t* const> planes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        float rest = values[i];
        for (std::uint16_t* plane : planes) {
            plane[i] = simkernel::bf16_from_f32(std::bit_cast<std::uint32_t>(rest));
            const float taken = std::bit_cast<float>(simkernel::f32_from_bf16(plane[i]));
            rest = std::isfinite(taken) ? rest - taken : 0.0f;  // infinity leaves nothing
        }
    }
}

/// Rows of a slab: the outputs of a block at one (kh, kw, channel), 0 where a pair takes no part (other groups).
class Packer {
public:
    Packer(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) : l_(l), spec_(spec), plan_(plan), w_(*spec.weights) {
        const Value& v = l.graph.value(w_.value);
        if (spec.integer) {
            tensor_ = w_.integers.get();
        } else {
            tensor_ = v.constant.get();
            const std::span<const float> values = tensor_->as<float>();
            const auto bad = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
            if (bad != values.end())
                throw MalformedNode(spec.main, fmt::format("weight '{}' holds {} at element {}; repair the model", v.name, *bad, bad - values.begin()));
        }
        if (!v.origin.empty()) elements_ = simkernel::ElementMap(tensor_->count());
    }

    PackedWeights pack() {
        PackedWeights packed;
        std::int64_t total = 0;
        for (const Block& b : plan_.blocks) {
            const std::int64_t bytes = area() * b.depth * b.count * plan_.element * plan_.weight_planes;
            packed.block_offset.push_back(total);
            packed.block_bytes.push_back(bytes);
            total += bytes;
        }
        image_.resize(static_cast<std::size_t>(total));
        for (std::size_t i = 0; i < plan_.blocks.size(); ++i)
            for (std::int64_t s = 0; s < plan_.slabs_of(plan_.blocks[i]); ++s)
                pack_slab(plan_.blocks[i], s, packed.block_offset[i], packed);
        const Value& v = l_.graph.value(w_.value);
        simkernel::ConstantSlot slot;
        slot.name = v.origin.empty() ? v.name : v.origin;
        slot.dtype = spec_.integer ? simkernel::Dtype::i8 : simkernel::Dtype::bf16;
        slot.elements = std::move(elements_);
        packed.addr = l_.add_constant(std::move(image_), std::move(slot)).value;
        return packed;
    }

private:
    std::int64_t area() const { return spec_.window.kernel[0] * spec_.window.kernel[1]; }

    /// The part of a slab in one group: outputs [o, o + count) with channels [channel, channel + depth) of all.
    struct Part {
        std::int64_t o, count, channel, depth;
    };
    /// Off the diagonal of grouped blocks nothing is read: those pairs take no part.
    std::vector<Part> parts_of(const Block& b, std::int64_t first, std::int64_t depth) const {
        const std::int64_t in = spec_.channels / spec_.groups, out = spec_.outputs / spec_.groups;
        std::vector<Part> parts;
        for (std::int64_t group = first / in; group <= (first + depth - 1) / in; ++group) {
            const std::int64_t o = std::max(b.first, group * out), o_end = std::min(b.first + b.count, (group + 1) * out);
            const std::int64_t c = std::max(first, group * in), c_end = std::min(first + depth, (group + 1) * in);
            if (o < o_end && c < c_end) parts.push_back({o, o_end - o, c, c_end - c});
        }
        return parts;
    }

    void pack_slab(const Block& b, std::int64_t slab, std::int64_t base, const PackedWeights& packed) {
        const std::int64_t depth = slab_depth(plan_, b, slab), first = b.channel + slab * plan_.slab;
        const std::int64_t in = spec_.channels / spec_.groups, kw_count = spec_.window.kernel[1];
        std::array<std::int64_t, 3> at{};
        for (int p = 0; p < plan_.weight_planes; ++p) at[static_cast<std::size_t>(p)] = base + packed.offset(spec_, plan_, b, slab, p);
        for (const Part& part : parts_of(b, first, depth)) {
            const std::int64_t c = part.channel % in;  // within its group
            const auto offset = [&](std::int64_t tap, std::int64_t i) { return ((tap * depth + part.channel - first + i) * b.count + part.o - b.first) * plan_.element; };
            for (std::int64_t kh = 0; kh < spec_.window.kernel[0]; ++kh)
                for (std::int64_t kw = 0; kw < kw_count; ++kw)
                    for (std::int64_t i = 0; i < part.depth; ++i) write(at, offset(kh * kw_count + kw, i), part.o, part.count, source_index(w_, part.o, c + i, kh, kw));
            if (elements_.empty()) continue;
            const std::int64_t row = b.count * plan_.element;
            elements_.add({source_index(w_, part.o, c, 0, 0), at[0] + offset(0, 0), {part.count, part.depth, spec_.window.kernel[0], kw_count}, w_.strides,
                           {plan_.element, row, kw_count * depth * row, depth * row}});
        }
    }

    /// Outputs [o, o + count) of one row, from element `index` of the tensor on, to `offset` of every plane.
    void write(const std::array<std::int64_t, 3>& at, std::int64_t offset, std::int64_t o, std::int64_t count, std::int64_t index) {
        const auto planes = static_cast<std::size_t>(plan_.weight_planes);
        const std::int64_t stride = w_.strides[0];
        if (spec_.integer) {
            for (std::int64_t n = 0; n < count; ++n) {
                std::int32_t rest = static_cast<std::int32_t>(tensor_->integer(index + n * stride)) - w_.zero_point[static_cast<std::size_t>(o + n)];
                for (std::size_t p = 0; p < planes; ++p) {
                    const std::int32_t part = std::clamp(rest, -128, 127);
                    image_[static_cast<std::size_t>(at[p] + offset + n)] = static_cast<std::byte>(part);
                    rest -= part;
                }
            }
            return;
        }
        row_.resize(static_cast<std::size_t>(count));
        const float* from = tensor_->as<float>().data() + index;
        for (std::int64_t n = 0; n < count; ++n) row_[static_cast<std::size_t>(n)] = from[n * stride];
        std::array<std::uint16_t*, 3> to{};
        for (std::size_t p = 0; p < planes; ++p) to[p] = reinterpret_cast<std::uint16_t*>(&image_[static_cast<std::size_t>(at[p] + offset)]);
        split_bf16(row_, std::span(to).first(planes));
    }

    Lowering& l_;
    const MatrixSpec& spec_;
    const MatrixPlan& plan_;
    const ConstantWeights& w_;
    const Tensor* tensor_ = nullptr;
    std::vector<std::byte> image_;
    simkernel::ElementMap elements_;
    std::vector<float> row_;
};

}  // namespace

std::int64_t slab_depth(const MatrixPlan& plan, const Block& block, std::int64_t slab) {
    return std::min(plan.slab, block.depth - slab * plan.slab);
}

std::int64_t PackedWeights::offset(const MatrixSpec& spec, const MatrixPlan& plan, const Block& block, std::int64_t slab, int plane) const {
    const std::int64_t row = spec.window.kernel[0] * spec.window.kernel[1] * block.count * plan.element;
    return slab * plan.slab * row * plan.weight_planes + plane * slab_depth(plan, block, slab) * row;
}

PackedWeights pack_weights(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) { return Packer(l, spec, plan).pack(); }

std::vector<std::int32_t> weight_sums(const MatrixSpec& spec) {
    const ConstantWeights& w = *spec.weights;
    std::vector<std::int32_t> sums;
    for (std::int64_t o = 0; o < spec.outputs; ++o) {
        std::uint32_t sum = 0;
        for (std::int64_t c = 0; c < spec.channels / spec.groups; ++c)
            for (std::int64_t kh = 0; kh < spec.window.kernel[0]; ++kh)
                for (std::int64_t kw = 0; kw < spec.window.kernel[1]; ++kw)
                    sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(w.integers->integer(source_index(w, o, c, kh, kw))) -
                                                      w.zero_point[static_cast<std::size_t>(o)]);
        sums.push_back(static_cast<std::int32_t>(sum));
    }
    return sums;
}

}  // namespace assay::workloads
