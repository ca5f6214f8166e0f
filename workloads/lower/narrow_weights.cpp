#include "workloads/lower/narrow_weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "simkernel/numerics/formats.hpp"
#include "workloads/precision/policy.hpp"
#include "workloads/schedule/dma.hpp"
#include "workloads/schedule/expr.hpp"

namespace assay::workloads {
namespace {

using simkernel::Dtype;
using simkernel::Uop;

constexpr int kMostOf4Bits = 7;

/// Block offsets as on the array.
PackedWeights blocks_on_array(const MatrixSpec& spec, const MatrixPlan& plan) {
    PackedWeights packed;
    std::int64_t total = 0;
    for (const Block& b : plan.blocks) {
        packed.block_offset.push_back(total);
        packed.block_bytes.push_back(spec.window.kernel[0] * spec.window.kernel[1] * b.depth * b.count * plan.element);
        total += packed.block_bytes.back();
    }
    return packed;
}

simkernel::ConstantSlot slot_of(const Lowering& l, const MatrixSpec& spec) {
    const Value& v = l.graph.value(spec.weights->value);
    simkernel::ConstantSlot slot;
    slot.name = v.origin.empty() ? v.name : v.origin;
    slot.dtype = Dtype::i8;
    return slot;
}

void emit_widening(Emitter& emitter, const Expr& e, const VectorShape& shape, const std::vector<VectorOperand>& in, const VectorOperand& out) {
    if (shape.count[0] > 0 && shape.count[1] > 0 && shape.count[2] > 0) emit_expr(emitter, e, shape, in, out, 0);
}

}  // namespace

std::int64_t nibble_bytes(std::int64_t rows, std::int64_t columns) { return static_cast<std::int64_t>(align_up(static_cast<std::uint64_t>((rows + 1) / 2 * columns))); }
std::int64_t step_bytes(std::int64_t rows, std::int64_t columns) {
    return static_cast<std::int64_t>(align_up(static_cast<std::uint64_t>((rows + kW4Group - 1) / kW4Group * columns * 2)));
}

PackedWeights pack_w8(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) {
    PackedWeights packed = blocks_on_array(spec, plan);
    std::vector<std::byte> image(static_cast<std::size_t>((packed.block_offset.back() + packed.block_bytes.back()) / plan.element));
    simkernel::ConstantSlot slot = slot_of(l, spec);
    const Tensor& integers = *spec.weights->integers;
    if (!l.graph.value(spec.weights->value).origin.empty()) slot.elements = packed_elements(spec, plan, packed, integers.count(), 1);
    for_each_packed_row(spec, plan, packed, [&](const PackedRow& row) {
        for (std::int64_t n = 0; n < row.count; ++n)
            image[static_cast<std::size_t>(row.offset / plan.element + n)] = static_cast<std::byte>(integers.as<std::int8_t>()[row.index + n * spec.weights->strides[0]]);
    });
    packed.addr = l.add_constant(std::move(image), std::move(slot)).value;
    return packed;
}

PackedWeights pack_w4(Lowering& l, const MatrixSpec& spec, const MatrixPlan& plan) {
    PackedWeights packed = blocks_on_array(spec, plan);
    std::int64_t total = 0;
    for (const Block& b : plan.blocks) {
        packed.narrow_offset.push_back(total);
        total += nibble_bytes(b.depth, b.count) + step_bytes(b.depth, b.count);
    }
    std::vector<std::byte> image(static_cast<std::size_t>(total));
    const auto values = l.graph.value(spec.weights->value).constant->as<float>();
    const auto& strides = spec.weights->strides;
    for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
        const Block& b = plan.blocks[i];
        std::byte* nibbles = &image[static_cast<std::size_t>(packed.narrow_offset[i])];
        std::byte* steps = nibbles + nibble_bytes(b.depth, b.count);
        for (std::int64_t n = 0; n < b.count; ++n)
            for (std::int64_t first = 0; first < b.depth; first += kW4Group) {
                const std::int64_t end = std::min(first + kW4Group, b.depth);
                const auto at = [&](std::int64_t k) { return static_cast<double>(values[static_cast<std::size_t>((b.first + n) * strides[0] + k * strides[1])]); };
                double largest = 0;
                for (std::int64_t k = first; k < end; ++k) largest = std::max(largest, std::fabs(at(k)));
                const float step = weight_step(largest, kMostOf4Bits, true);
                const std::uint16_t bits = simkernel::bf16_from_f32(std::bit_cast<std::uint32_t>(step));
                std::memcpy(steps + (first / kW4Group * b.count + n) * 2, &bits, 2);
                for (std::int64_t k = first; k < end; ++k) {
                    const auto q = static_cast<int>(std::clamp(std::nearbyint(at(k) / static_cast<double>(step)), -static_cast<double>(kMostOf4Bits), static_cast<double>(kMostOf4Bits)));
                    nibbles[k / 2 * b.count + n] |= static_cast<std::byte>((q & 15) << (k % 2 * 4));
                }
            }
    }
    packed.addr = l.add_constant(std::move(image), slot_of(l, spec)).value;
    return packed;
}

void widen_w8(Emitter& emitter, std::uint32_t from, std::uint32_t to, std::int64_t elements) {
    Expr e;
    e.result = e.op(Uop::i32_to_f32, Expr::stream(0));
    VectorShape shape;
    shape.count[0] = static_cast<std::uint32_t>(elements);
    emit_widening(emitter, e, shape, {{from, Dtype::i8, {1, 0, 0, 0, 0}}}, {to, Dtype::bf16, {2, 0, 0, 0, 0}});
}

void widen_w4(Emitter& emitter, std::uint32_t from, std::uint32_t steps, std::uint32_t to, std::int64_t rows, std::int64_t columns) {
    const auto n = static_cast<std::int32_t>(columns);
    constexpr std::int64_t kPairs = kW4Group / 2;
    for (std::int64_t half = 0; half < 2; ++half) {
        Expr e;
        const auto byte = Expr::stream(0);
        const auto integer = half == 0 ? e.op(Uop::shr_i32, e.op(Uop::shl_i32, byte, Expr::imm_i(28)), Expr::imm_i(28)) : e.op(Uop::shr_i32, byte, Expr::imm_i(4));
        e.result = e.op(Uop::mul_f32, e.op(Uop::i32_to_f32, integer), Expr::stream(1));
        // Whole groups, then what is left.
        const std::int64_t groups = rows / kW4Group, rest = rows % kW4Group;
        const auto widen = [&](std::int64_t first_group, std::int64_t pairs, std::int64_t count) {
            VectorShape shape;
            shape.count = {static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(pairs), static_cast<std::uint32_t>(count), 1, 1};
            const auto at = [&](std::uint32_t base, std::int64_t bytes) { return base + static_cast<std::uint32_t>(bytes); };
            emit_widening(emitter, e, shape,
                          {{at(from, first_group * kPairs * columns), Dtype::i8, {1, n, static_cast<std::int32_t>(kPairs) * n, 0, 0}},
                           {at(steps, first_group * columns * 2), Dtype::bf16, {2, 0, 2 * n, 0, 0}}},
                          {at(to, (first_group * kW4Group + half) * columns * 2), Dtype::bf16, {2, 4 * n, static_cast<std::int32_t>(kW4Group) * 2 * n, 0, 0}});
        };
        widen(0, kPairs, groups);
        widen(groups, (rest + 1 - half) / 2, 1);
    }
}

}  // namespace assay::workloads
