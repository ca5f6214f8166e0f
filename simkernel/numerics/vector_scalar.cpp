// The vector unit by definition: one element, one micro-operation, one reduction step at a time (docs/numerics.md §vector).
#include <cstring>
#include <vector>

#include "simkernel/numerics/formats.hpp"
#include "simkernel/numerics/vector.hpp"
#include "simkernel/numerics/vector_shape.hpp"

namespace assay::simkernel {
namespace {

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <class T>
void store(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

std::uint32_t read_element(Dtype type, const std::byte* from) {
    switch (type) {
        case Dtype::i8: return static_cast<std::uint32_t>(std::int32_t{load<std::int8_t>(from)});
        case Dtype::u8: return load<std::uint8_t>(from);
        case Dtype::i32: return load<std::uint32_t>(from);
        case Dtype::f32: return canonical32(load<std::uint32_t>(from));
        case Dtype::bf16: return f32_from_bf16(load<std::uint16_t>(from));
        case Dtype::f16: return f32_from_narrow(kF16, load<std::uint16_t>(from));
        case Dtype::f8e4m3: return f32_from_narrow(kF8E4M3, load<std::uint8_t>(from));
        case Dtype::f8e5m2: return f32_from_narrow(kF8E5M2, load<std::uint8_t>(from));
    }
    return 0;
}

void write_element(Dtype type, std::uint32_t lane, std::byte* to, bool saturate, VectorStatus& status) {
    const auto value = static_cast<std::int32_t>(lane);
    const auto narrow = [&](const NarrowFormat& format) {
        const Narrowed n = narrow_from_f32(format, lane, saturate);
        status.saturated |= n.saturated;
        store(to, static_cast<std::uint8_t>(n.bits));
    };
    switch (type) {
        case Dtype::i8:
            status.saturated |= value < -128 || value > 127;
            store(to, static_cast<std::int8_t>(std::clamp(value, -128, 127)));
            break;
        case Dtype::u8:
            status.saturated |= value < 0 || value > 255;
            store(to, static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
            break;
        case Dtype::i32: store(to, lane); break;
        case Dtype::f32: store(to, canonical32(lane)); break;
        case Dtype::bf16: store(to, bf16_from_f32(lane)); break;
        case Dtype::f16: store(to, static_cast<std::uint16_t>(narrow_from_f32(kF16, lane, false).bits)); break;
        case Dtype::f8e4m3: narrow(kF8E4M3); break;
        case Dtype::f8e5m2: narrow(kF8E5M2); break;
    }
}

std::uint32_t reduce_step(Reduce op, std::uint32_t partial, std::uint32_t value) {
    switch (op) {
        case Reduce::none: break;
        case Reduce::add_f32: return run_uop(Uop::add_f32, partial, value, 0);
        case Reduce::max_f32: return run_uop(Uop::max_f32, partial, value, 0);
        case Reduce::min_f32: return run_uop(Uop::min_f32, partial, value, 0);
        case Reduce::add_i32: return run_uop(Uop::add_i32, partial, value, 0);
        case Reduce::max_i32: return run_uop(Uop::max_i32, partial, value, 0);
        case Reduce::min_i32: return run_uop(Uop::min_i32, partial, value, 0);
    }
    return partial;
}

/// Runs micro-operations [first, last) for the element at byte offsets `at` of the streams, v0 starting as given; returns v0.
std::uint32_t run_program(const VectorFields& f, std::uint32_t first, std::uint32_t last, const std::array<const std::byte*, 3>& at, std::uint32_t v0) {
    std::array<std::uint32_t, 16> v{};
    v[0] = v0;
    const auto operand = [&](std::uint32_t selector) -> std::uint32_t {
        if (selector < kUopImm) return v[selector];
        if (selector < kUopIn) return f.imm[selector - kUopImm];
        const std::uint32_t stream = selector - kUopIn;
        return stream < 3 && at[stream] != nullptr ? read_element(static_cast<Dtype>(f.in_type[stream]), at[stream]) : 0;
    };
    for (std::uint32_t i = first; i < last; ++i) {
        const std::uint32_t word = f.uop[i];
        v[(word >> 8) & 15u] = run_uop(static_cast<Uop>(word & 0xFFu), operand((word >> 12) & 31u), operand((word >> 17) & 31u), operand((word >> 22) & 31u));
    }
    return v[0];
}

}  // namespace

VectorStatus run_vector_scalar(const VectorFields& f, const std::array<const std::byte*, 3>& in, std::byte* out, int lanes) {
    const VectorShape shape(f, lanes);
    const auto reduce = static_cast<Reduce>(f.reduce);
    const auto out_type = static_cast<Dtype>(f.out_type);
    const Strides to = output_strides(f, shape);
    const std::array<Strides, 3> from{strides_of(f.in0_stride), strides_of(f.in1_stride), strides_of(f.in2_stride)};
    VectorStatus status;

    const auto element = [&](const Extents& extents, std::size_t flat) {
        std::array<const std::byte*, 3> at{};
        for (std::size_t s = 0; s < 3; ++s)
            if ((f.in_used >> s & 1u) != 0 && !(s == 2 && f.carry_in != 0)) at[s] = in[s] + offset_of(extents, from[s], flat);
        return at;
    };

    if (reduce == Reduce::none) {
        for (std::size_t i = 0; i < product(shape.space); ++i)
            write_element(out_type, run_program(f, 0, f.pre_count, element(shape.space, i), 0), out + offset_of(shape.space, to, i), f.f8_overflow == 0, status);
        return status;
    }

    for (std::size_t g = 0; g < shape.groups; ++g) {
        std::vector<std::uint32_t> partial(shape.partials);
        std::vector<bool> live(shape.partials, f.carry_in != 0);
        for (std::size_t p = 0; f.carry_in != 0 && p < shape.partials; ++p) partial[p] = load<std::uint32_t>(in[2] + 4 * (g * shape.partials + p));
        for (std::size_t i = 0; i < shape.group; ++i) {
            const std::uint32_t value = run_program(f, 0, f.pre_count, element(shape.space, g * shape.group + i), 0);
            const std::size_t p = i % shape.space[0] % shape.lanes;
            partial[p] = live[p] ? reduce_step(reduce, partial[p], value) : value;
            live[p] = true;
        }
        if (f.carry_out != 0) {
            std::byte* cell = out + offset_of(shape.results, to, g * shape.results[0]);
            for (std::size_t p = 0; p < shape.partials; ++p) store(cell + 4 * p, partial[p]);
            continue;
        }
        if (f.reduce_lanes != 0)
            for (std::size_t half = shape.lanes / 2; half >= 1; half /= 2)
                for (std::size_t p = 0; p < half && p + half < shape.partials; ++p) partial[p] = reduce_step(reduce, partial[p], partial[p + half]);
        for (std::size_t i = 0; i < shape.results[0]; ++i) {
            const std::size_t flat = g * shape.results[0] + i;
            const std::uint32_t value = run_program(f, f.pre_count, f.pre_count + f.post_count, element(shape.results, flat), partial[i]);
            write_element(out_type, value, out + offset_of(shape.results, to, flat), f.f8_overflow == 0, status);
        }
    }
    return status;
}

}  // namespace assay::simkernel
