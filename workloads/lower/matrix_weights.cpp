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

void require_finite(const Lowering& l, const MatrixSpec& spec) {
    const Value& v = l.graph.value(spec.weights->value);
    const std::span<const float> values = std::as_const(*v.constant).as<float>();
    const auto bad = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
    if (bad != values.end()) throw MalformedNode(spec.main, fmt::format("weight '{}' holds {} at element {}; repair the model", v.name, *bad, bad - values.begin()));
}

/// The part of a slab in one group: outputs [o, o + count) with channels [channel, channel + depth) of all.
struct Part {
    std::int64_t o, count, channel, depth;
};

/// Of channels [first, first + depth) of the block. Off the diagonal of grouped blocks nothing is read: those pairs take no part.
std::vector<Part> parts_of(const MatrixSpec& spec, const Block& b, std::int64_t first, std::int64_t depth) {
    const std::int64_t in = spec.channels / spec.groups, out = spec.outputs / spec.groups;
    std::vector<Part> parts;
    for (std::int64_t group = first / in; group <= (first + depth - 1) / in; ++group) {
        const std::int64_t o = std::max(b.first, group * out), o_end = std::min(b.first + b.count, (group + 1) * out);
        const std::int64_t c = std::max(first, group * in), c_end = std::min(first + depth, (group + 1) * in);
        if (o < o_end && c < c_end) parts.push_back({o, o_end - o, c, c_end - c});
    }
    return parts;
}

/// Calls visit(part, block, base, depth, first) for every part of every slab; base: bytes from the image's start to the slab.
template <class Visit>
void for_each_part(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed, const Visit& visit) {
    for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
        const Block& b = plan.blocks[i];
        for (std::int64_t slab = 0; slab < plan.slabs_of(b); ++slab) {
            const std::int64_t depth = slab_depth(plan, b, slab), first = b.channel + slab * plan.slab;
            const std::int64_t base = packed.block_offset[i] + packed.offset(spec, plan, b, slab, 0);
            const std::int64_t plane = packed.offset(spec, plan, b, slab, 1) - packed.offset(spec, plan, b, slab, 0);
            // Bytes from the image's start to (tap, channel of the part, output of the part), in the first plane.
            for (const Part& part : parts_of(spec, b, first, depth))
                visit(part, depth, b.count * plan.element, base + ((part.channel - first) * b.count + part.o - b.first) * plan.element, plane);
        }
    }
}

class Packer {
public:
    Packer(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) : l_(l), spec_(spec), plan_(plan), w_(*spec.weights) {
        if (spec.integer) {
            tensor_ = w_.integers.get();
        } else {
            tensor_ = l.graph.value(w_.value).constant.get();
            require_finite(l, spec);
        }
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
        for_each_packed_row(spec_, plan_, packed, [&](const PackedRow& row) { write(row); });
        const Value& v = l_.graph.value(w_.value);
        simkernel::ConstantSlot slot;
        slot.name = v.origin.empty() ? v.name : v.origin;
        slot.dtype = spec_.integer ? simkernel::Dtype::i8 : spec_.format.type;
        if (!v.origin.empty()) slot.elements = packed_elements(spec_, plan_, packed, tensor_->count(), plan_.element);
        packed.addr = l_.add_constant(std::move(image_), std::move(slot)).value;
        return packed;
    }

private:
    std::int64_t area() const { return spec_.window.kernel[0] * spec_.window.kernel[1]; }

    void write(const PackedRow& row) {
        const auto planes = static_cast<std::size_t>(plan_.weight_planes);
        const std::int64_t stride = w_.strides[0];
        if (spec_.integer) {
            for (std::int64_t n = 0; n < row.count; ++n) {
                std::int32_t rest = static_cast<std::int32_t>(tensor_->integer(row.index + n * stride)) - w_.zero_point[static_cast<std::size_t>(row.o + n)];
                for (std::size_t p = 0; p < planes; ++p) {
                    const std::int32_t part = std::clamp(rest, -128, 127);
                    image_[static_cast<std::size_t>(row.offset + n) + p * static_cast<std::size_t>(row.plane_bytes)] = static_cast<std::byte>(part);
                    rest -= part;
                }
            }
            return;
        }
        const float* from = std::as_const(*tensor_).as<float>().data() + row.index;
        if (spec_.format.type != simkernel::Dtype::bf16) {
            for (std::int64_t n = 0; n < row.count; ++n)
                narrow(row.offset + n * plan_.element, from[n * stride], spec_.format.w_scale.empty() ? 1.0 : spec_.format.w_scale[static_cast<std::size_t>(row.o + n)]);
            return;
        }
        row_.resize(static_cast<std::size_t>(row.count));
        for (std::int64_t n = 0; n < row.count; ++n) row_[static_cast<std::size_t>(n)] = from[n * stride];
        std::array<std::uint16_t*, 3> to{};
        for (std::size_t p = 0; p < planes; ++p)
            to[p] = reinterpret_cast<std::uint16_t*>(&image_[static_cast<std::size_t>(row.offset) + p * static_cast<std::size_t>(row.plane_bytes)]);
        split_bf16(row_, std::span(to).first(planes));
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

void for_each_weight(const MatrixSpec& spec, const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
    for (std::int64_t o = 0; o < spec.outputs; ++o)
        for (std::int64_t c = 0; c < spec.channels / spec.groups; ++c)
            for (std::int64_t kh = 0; kh < spec.window.kernel[0]; ++kh)
                for (std::int64_t kw = 0; kw < spec.window.kernel[1]; ++kw) visit(o, c, source_index(*spec.weights, o, c, kh, kw));
}

void for_each_packed_row(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed, const std::function<void(const PackedRow&)>& visit) {
    const std::int64_t in = spec.channels / spec.groups;
    for_each_part(spec, plan, packed, [&](const Part& part, std::int64_t depth, std::int64_t row_bytes, std::int64_t base, std::int64_t plane_bytes) {
        for (std::int64_t kh = 0; kh < spec.window.kernel[0]; ++kh)
            for (std::int64_t kw = 0; kw < spec.window.kernel[1]; ++kw)
                for (std::int64_t i = 0; i < part.depth; ++i)
                    visit({base + ((kh * spec.window.kernel[1] + kw) * depth + i) * row_bytes, plane_bytes, part.o, part.count,
                           source_index(*spec.weights, part.o, part.channel % in + i, kh, kw)});
    });
}

simkernel::ElementMap packed_elements(const MatrixSpec& spec, const MatrixPlan& plan, const PackedWeights& packed, std::int64_t elements, std::int64_t bytes) {
    const std::int64_t in = spec.channels / spec.groups, kw = spec.window.kernel[1];
    simkernel::ElementMap map(elements);
    for_each_part(spec, plan, packed, [&](const Part& part, std::int64_t depth, std::int64_t row_bytes, std::int64_t base, std::int64_t) {
        const std::int64_t row = row_bytes / plan.element * bytes;
        map.add({source_index(*spec.weights, part.o, part.channel % in, 0, 0), base / plan.element * bytes, {part.count, part.depth, spec.window.kernel[0], kw},
                 spec.weights->strides, {bytes, row, kw * depth * row, depth * row}});
    });
    return map;
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
