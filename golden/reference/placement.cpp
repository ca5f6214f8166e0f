#include "golden/reference/placement.hpp"

#include <algorithm>
#include <cmath>

namespace assay::golden {
namespace {

double largest(const Line& line, long first, long end) {
    double found = 0;
    for (long i = first; i < end; ++i) found = std::fmax(found, std::fabs(round_f32(line[i])));
    return found;
}

/// Division by a scale: exact for powers of two.
double divided(const Line& line, double scale) {
    for (long i = 0; i < line.count; ++i) line[i] /= scale;
    return scale;
}

/// The chip multiplies by the fp32 reciprocal of the step; the product's rounding is left to place_rounded.
double in_steps(const Line& line, double step) {
    const double inverse = round_f32(1 / step);
    for (long i = 0; i < line.count; ++i) line[i] = round_f32(line[i]) * inverse;
    return step;
}

double on_grid_w8(const Line& line) {
    const IntegerGrid grid = weight_grid_w8(largest(line, 0, line.count));
    for (long i = 0; i < line.count; ++i) line[i] = grid.nearest(round_f32(line[i]));
    return grid.step;
}

void on_grid_w4(const Line& line) {
    for (long first = 0; first < line.count; first += kW4Group) {
        const long end = std::min<long>(first + kW4Group, line.count);
        const IntegerGrid grid = weight_grid_w4(largest(line, first, end));
        for (long i = first; i < end; ++i) line[i] = grid.nearest(round_f32(line[i])) * grid.step;
    }
}

}  // namespace

bool has_scales(MatrixRule rule) {
    return rule == MatrixRule::fp8e4m3 || rule == MatrixRule::fp8e5m2 || rule == MatrixRule::w8a8 || rule == MatrixRule::w8 || rule == MatrixRule::w4;
}

double place(const Numerics& numerics, Role role, const Line& line) {
    const bool weight = role == Role::weight;
    switch (numerics.rule) {
        case MatrixRule::fp8e4m3:
        case MatrixRule::fp8e5m2: {
            if (!weight) return divided(line, numerics.x_scale);
            const NarrowGrid& grid = numerics.rule == MatrixRule::fp8e4m3 ? kGridF8E4M3 : kGridF8E5M2;
            return divided(line, numerics.w_scale != 0 ? numerics.w_scale : operand_scale(grid, largest(line, 0, line.count)));
        }
        case MatrixRule::w8a8:
            if (!weight) return in_steps(line, numerics.x_scale);
            return numerics.w_scale != 0 ? in_steps(line, numerics.w_scale) : on_grid_w8(line);
        case MatrixRule::w8: return weight ? on_grid_w8(line) : 1;
        case MatrixRule::w4:
            if (weight) on_grid_w4(line);
            return 1;
        default: return 1;
    }
}

bool rounds_once(MatrixRule rule) { return rule == MatrixRule::w8a8 || (parts_of(rule) != Parts::fp32 && parts_of(rule) != Parts::bf16x3); }

double place_rounded(const Numerics& numerics, Role role, double x) {
    const double v = round_f32(x);
    if (numerics.rule != MatrixRule::w8a8) return round_operand(parts_of(numerics.rule), v);
    // In 8 bits stands x + zero; NaN becomes 0 there.
    const int zero = role == Role::activation ? numerics.x_zero : 0;
    if (std::isnan(v)) return -zero;
    return std::fmax(-128 - zero, std::fmin(127 - zero, std::nearbyint(v)));
}

Parts parts_of(MatrixRule rule) {
    switch (rule) {
        case MatrixRule::bf16:
        case MatrixRule::w8:
        case MatrixRule::w4: return Parts::bf16;
        case MatrixRule::bf16x3: return Parts::bf16x3;
        case MatrixRule::fp16: return Parts::fp16;
        case MatrixRule::fp8e4m3: return Parts::fp8e4m3;
        case MatrixRule::fp8e5m2: return Parts::fp8e5m2;
        case MatrixRule::fp32:
        case MatrixRule::w8a8:
        case MatrixRule::int8: break;
    }
    return Parts::fp32;
}

}  // namespace assay::golden
