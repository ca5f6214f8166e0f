#include "workloads/lower/matrix_weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "simkernel/numerics/formats.hpp"
#include "workloads/lower/narrow_weights.hpp"

namespace assay::workloads {
namespace {

/// Position of (o, c, kh, kw) in the ONNX tensor; c counts within the group.
std::int64_t source_index(const ConstantWeights& w, std::int64_t o, std::int64_t c, std::int64_t kh, std::int64_t kw) {
    return o * w.strides[0] + c * w.strides[1] + kh * w.strides[2] + kw * w.strides[3];
}

/// The three-way split of docs/numerics.md: each part is the bf16 nearest to what the parts before leave.
std::array<std::uint16_t, 3> split_bf16(float value) {
    std::array<std::uint16_t, 3> parts{};
    float rest = value;
    for (std::uint16_t& part : parts) {
        part = simkernel::bf16_from_f32(std::bit_cast<std::uint32_t>(rest));
        const float taken = std::bit_cast<float>(simkernel::f32_from_bf16(part));
        rest = std::isfinite(taken) ? rest - taken : 0.0f;
    }
    return parts;
}

void require_finite(const Lowering& l, const MatrixSpec& spec) {
    const Value& v = l.graph.value(spec.weights->value);
    const auto values = v.constant->as<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i]))
            throw MalformedNode(spec.main, fmt::format("weight '{}' holds {} at element {}; repair the model", v.name, values[i], i));
}

class Packer {
public:
    Packer(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) : l_(l), spec_(spec), plan_(plan), w_(*spec.weights) {
        const Value& v = l.graph.value(w_.value);
        if (spec.integer) {
            tensor_ = w_.integers.get();
        } else {
            tensor_ = v.constant.get();
            require_finite(l, spec);
        }
        if (!v.origin.empty()) offsets_.assign(static_cast<std::size_t>(tensor_->count()), 0);
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
        for_each_packed(spec_, plan_, packed, [&](std::int64_t offset, std::int64_t plane_bytes, std::int64_t o, std::int64_t index) {
            write(offset, plane_bytes, o, index);
        });
        const Value& v = l_.graph.value(w_.value);
        simkernel::ConstantSlot slot;
        slot.name = v.origin.empty() ? v.name : v.origin;
        slot.dtype = spec_.integer ? simkernel::Dtype::i8 : spec_.format.type;
        slot.element_offset = std::move(offsets_);
        packed.addr = l_.add_constant(std::move(image_), std::move(slot)).value;
        return packed;
    }

private:
    std::int64_t area() const { return spec_.window.kernel[0] * spec_.window.kernel[1]; }

    void write(std::int64_t at, std::int64_t plane_bytes, std::int64_t o, std::int64_t index) {
        if (!offsets_.empty()) offsets_[static_cast<std::size_t>(index)] = at;
        if (spec_.integer) {
            std::int32_t rest = static_cast<std::int32_t>(tensor_->integer(index)) - w_.zero_point[static_cast<std::size_t>(o)];
            for (int p = 0; p < plan_.weight_planes; ++p) {
                const std::int32_t part = std::clamp(rest, -128, 127);
                image_[static_cast<std::size_t>(at + p * plane_bytes)] = static_cast<std::byte>(part);
                rest -= part;
            }
            return;
        }
        if (spec_.format.type != simkernel::Dtype::bf16) {
            narrow(at, tensor_->as<float>()[index], spec_.format.w_scale.empty() ? 1.0 : spec_.format.w_scale[static_cast<std::size_t>(o)]);
            return;
        }
        const auto parts = split_bf16(tensor_->as<float>()[index]);
        for (int p = 0; p < plan_.weight_planes; ++p)
            std::memcpy(&image_[static_cast<std::size_t>(at + p * plane_bytes)], &parts[static_cast<std::size_t>(p)], 2);
    }

    /// One rounding to fp16, or to fp8 with saturation, of value / scale (a power of two: exact).
    void narrow(std::int64_t at, float value, double scale) {
        using simkernel::Dtype;
        const simkernel::NarrowFormat& format = spec_.format.type == Dtype::f16      ? simkernel::kF16
                                                : spec_.format.type == Dtype::f8e4m3 ? simkernel::kF8E4M3
                                                                                     : simkernel::kF8E5M2;
        const auto scaled = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(value) / scale));
        const std::uint32_t bits = simkernel::narrow_from_f32(format, scaled, spec_.format.type != Dtype::f16).bits;
        std::memcpy(&image_[static_cast<std::size_t>(at)], &bits, static_cast<std::size_t>(format.bits / 8));
    }

    Lowering& l_;
    const MatrixSpec& spec_;
    const MatrixPlan& plan_;
    const ConstantWeights& w_;
    const Tensor* tensor_ = nullptr;
    std::vector<std::byte> image_;
    std::vector<std::int64_t> offsets_;
};

}  // namespace

std::int64_t slab_depth(const MatrixPlan& plan, const Block& block, std::int64_t slab) {
    return std::min(plan.slab, block.depth - slab * plan.slab);
}

std::int64_t PackedWeights::offset(const MatrixSpec& spec, const MatrixPlan& plan, const Block& block, std::int64_t slab, int plane) const {
    const std::int64_t row = spec.window.kernel[0] * spec.window.kernel[1] * block.count * plan.element;
    return slab * plan.slab * row * plan.weight_planes + plane * slab_depth(plan, block, slab) * row;
}

void for_each_weight(const MatrixSpec& spec, const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
    for (std::int64_t o = 0; o < spec.outputs; ++o)
        for (std::int64_t c = 0; c < spec.channels / spec.groups; ++c)
            for (std::int64_t kh = 0; kh < spec.window.kernel[0]; ++kh)
                for (std::int64_t kw = 0; kw < spec.window.kernel[1]; ++kw) visit(o, c, source_index(*spec.weights, o, c, kh, kw));
}

void for_each_packed(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed,
                     const std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& visit) {
    const std::int64_t in = spec.channels / spec.groups, out = spec.outputs / spec.groups;
    for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
        const Block& b = plan.blocks[i];
        for (std::int64_t slab = 0; slab < plan.slabs_of(b); ++slab) {
            const std::int64_t depth = slab_depth(plan, b, slab), first = slab * plan.slab;
            const std::int64_t base = packed.block_offset[i] + packed.offset(spec, plan, b, slab, 0);
            const std::int64_t plane_bytes = packed.offset(spec, plan, b, slab, 1) - packed.offset(spec, plan, b, slab, 0);
            std::int64_t row = 0;
            for (std::int64_t kh = 0; kh < spec.window.kernel[0]; ++kh)
                for (std::int64_t kw = 0; kw < spec.window.kernel[1]; ++kw)
                    for (std::int64_t c = 0; c < depth; ++c, ++row)
                        for (std::int64_t n = 0; n < b.count; ++n) {
                            const std::int64_t o = b.first + n;
                            // Off the diagonal of grouped blocks nothing is read: those pairs take no part.
                            const std::int64_t group = o / out, channel = b.channel + first + c;
                            if (channel / in != group) continue;
                            visit(base + (row * b.count + n) * plan.element, plane_bytes, o, source_index(*spec.weights, o, channel - group * in, kh, kw));
                        }
        }
    }
}

PackedWeights pack_weights(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) {
    if (spec.format.scaling == Scaling::weights_8) return pack_w8(l, spec, plan);
    if (spec.format.scaling == Scaling::weights_4) {
        require_finite(l, spec);
        return pack_w4(l, spec, plan);
    }
    return Packer(l, spec, plan).pack();
}

std::vector<double> weight_magnitudes(const Lowering& l, const MatrixSpec& spec) {
    require_finite(l, spec);
    const auto values = l.graph.value(spec.weights->value).constant->as<float>();
    std::vector<double> out(static_cast<std::size_t>(spec.outputs), 0.0);
    for_each_weight(spec, [&](std::int64_t o, std::int64_t, std::int64_t index) {
        double& largest = out[static_cast<std::size_t>(o)];
        largest = std::max(largest, std::fabs(static_cast<double>(values[static_cast<std::size_t>(index)])));
    });
    return out;
}

std::vector<std::int32_t> weight_sums(const MatrixSpec& spec) {
    const ConstantWeights& w = *spec.weights;
    std::vector<std::uint32_t> sums(static_cast<std::size_t>(spec.outputs), 0);
    for_each_weight(spec, [&](std::int64_t o, std::int64_t, std::int64_t index) {
        const auto at = static_cast<std::size_t>(o);
        sums[at] += static_cast<std::uint32_t>(static_cast<std::int32_t>(w.integers->integer(index)) - w.zero_point[at]);
    });
    return {sums.begin(), sums.end()};
}

}  // namespace assay::workloads
