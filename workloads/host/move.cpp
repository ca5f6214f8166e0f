// Operators that move elements and compute none: Transpose, Concat, Split, Slice, Pad, Expand, Tile, DepthToSpace and their kin.
#include <fmt/core.h>

#include "workloads/host/elements.hpp"

namespace assay::workloads::hostops {
namespace {

/// out[i0, i1, …] = x[maps[0][i0], maps[1][i1], …], or `fill` (one element of x's type) where a map gives -1.
Tensor gather_mapped(const Call& c, const Tensor& x, const std::vector<std::vector<std::int64_t>>& maps, const Tensor& fill) {
    Shape shape;
    for (const auto& map : maps) shape.push_back(static_cast<std::int64_t>(map.size()));
    Tensor out = c.make(x.dtype, shape);
    const std::int64_t total = out.count();
    const std::size_t rank = shape.size();
    if (rank == 0) return x;
    const auto strides = strides_of(x.shape);
    with_bits(x.dtype, [&](auto bits) {
        using T = decltype(bits);
        const auto from = x.as<T>();
        const auto to = out.as<T>();
        const T padding = fill.as<T>()[0];
        std::vector<std::size_t> index(rank, 0);
        const auto& last = maps[rank - 1];
        for (std::int64_t i = 0; i < total; i += shape[rank - 1]) {
            std::int64_t at = 0;
            for (std::size_t d = 0; d + 1 < rank && at >= 0; ++d) at = maps[d][index[d]] < 0 ? -1 : at + maps[d][index[d]] * strides[d];
            for (std::size_t k = 0; k < last.size(); ++k)
                to[static_cast<std::size_t>(i) + k] = at < 0 || last[k] < 0 ? padding : from[static_cast<std::size_t>(at + last[k])];
            for (std::size_t d = rank - 1; d-- > 0 && ++index[d] == maps[d].size();) index[d] = 0;
        }
    });
    return out;
}

std::vector<std::int64_t> counting(std::int64_t n) {
    std::vector<std::int64_t> map(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int64_t>(i);
    return map;
}

Results transpose(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    const auto given = c.integers("perm");
    std::vector<std::size_t> perm;
    std::vector<bool> seen(rank, false);
    for (std::size_t i = 0; i < rank; ++i) {
        perm.push_back(given.empty() ? rank - 1 - i : i < given.size() ? c.axis(given[i], rank) : 0);
        seen[perm.back()] = true;
    }
    if ((!given.empty() && given.size() != rank) || std::find(seen.begin(), seen.end(), false) != seen.end())
        c.fail("perm is not a permutation of the dimensions; repair the model");
    return one(permuted(c, x, perm));
}

Results concat(const Call& c) {
    c.same_types(0, c.input_count());
    Shape shape = c.in(0).shape;
    const std::size_t axis = c.axis(c.integer("axis", 1), shape.size());
    for (std::size_t i = 1; i < c.input_count(); ++i) {
        Shape other = c.in(i).shape;
        if (other.size() != shape.size()) c.bad_shape(i, "its rank differs from input 0's; repair the model");
        shape[axis] += other[axis];
        other[axis] = shape[axis];
        if (other != shape) c.bad_shape(i, "it does not fit input 0; repair the model");
    }
    Tensor out = c.make(c.in(0).dtype, shape);
    const std::int64_t outer = extent(shape, 0, axis), inner = extent(shape, axis + 1, shape.size());
    std::int64_t at = 0;
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::size_t i = 0; i < c.input_count(); ++i) {
            const std::int64_t run = c.in(i).shape[axis] * inner;
            copy_elements(c.in(i), o * run, out, at, run);
            at += run;
        }
    return one(std::move(out));
}

/// Sizes: attribute `split` (Split-2), input `split` (Split-13), else equal parts, of which the last may be smaller (Split-18).
Results split(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t axis = c.axis(c.integer("axis", 0), x.shape.size());
    const std::int64_t whole = x.shape[axis], parts = static_cast<std::int64_t>(c.output_count());
    std::vector<std::int64_t> sizes = c.attribute("split") ? c.integers("split") : c.has(1) ? c.list(1) : std::vector<std::int64_t>{};
    if (sizes.empty()) {
        if (parts == 0) c.fail("the node has no output; repair the model");
        if (c.opset < 18 && whole % parts != 0) c.fail(fmt::format("{} elements do not split into {} equal parts; repair the model", whole, parts));
        const std::int64_t chunk = (whole + parts - 1) / parts;
        for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<std::int64_t>(whole - i * chunk, 0, chunk));
    }
    std::int64_t sum = 0;
    for (const std::int64_t s : sizes) {
        if (s < 0 || s > whole) c.fail(fmt::format("a part of {} elements of {}; repair the model", s, whole));
        sum += s;
    }
    if (sum != whole || static_cast<std::int64_t>(sizes.size()) != parts)
        c.fail(fmt::format("{} parts of {} elements for {} outputs and {} elements; repair the model", sizes.size(), sum, parts, whole));
    Results out;
    const auto strides = strides_of(x.shape);
    std::int64_t first = 0;
    for (const std::int64_t s : sizes) {
        Shape shape = x.shape;
        shape[axis] = s;
        out.push_back(gather_strided(c, x, shape, strides, first * strides[axis]));
        first += s;
    }
    return out;
}

/// Slice-1 has attributes; Slice-10 inputs starts, ends, axes, steps. Bounds are clamped as Slice-13 says.
Results slice(const Call& c) {
    const Tensor& x = c.in(0);
    const bool attributes = c.opset < 10;
    const auto starts = attributes ? c.integers("starts") : c.list(1), ends = attributes ? c.integers("ends") : c.list(2);
    auto axes = attributes ? c.integers("axes") : c.has(3) ? c.list(3) : std::vector<std::int64_t>{};
    const auto steps = !attributes && c.has(4) ? c.list(4) : std::vector<std::int64_t>(starts.size(), 1);
    if (axes.empty()) axes = counting(static_cast<std::int64_t>(starts.size()));
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
        c.fail("starts, ends, axes and steps differ in length; repair the model");
    Shape shape = x.shape;
    std::vector<std::int64_t> strides = strides_of(x.shape);
    std::int64_t offset = 0;
    std::vector<bool> done(shape.size(), false);
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::size_t axis = c.axis(axes[i], x.shape.size());
        if (done[axis]) c.fail("axes repeats a dimension; repair the model");
        done[axis] = true;
        const std::int64_t n = x.shape[axis], step = steps[i];
        if (step == 0) c.fail("a step of 0; repair the model");
        const auto clamp = [&](std::int64_t v) {
            if (v < 0) v = v < -n ? -1 : v + n;  // -1: before the first element
            return step > 0 ? std::clamp<std::int64_t>(v, 0, n) : std::clamp<std::int64_t>(v, -1, n - 1);
        };
        const std::int64_t first = clamp(starts[i]), last = clamp(ends[i]);
        // A negative step from before the first element selects nothing.
        std::int64_t count = 0;
        if (step > 0 && last > first) count = (last - first - 1) / step + 1;
        if (step < 0 && first > last) count = static_cast<std::int64_t>((static_cast<std::uint64_t>(first - last) - 1) / (0 - static_cast<std::uint64_t>(step))) + 1;
        shape[axis] = count;
        if (count > 0) offset += first * strides[axis];
        // One element needs no stride, and its step may not be multiplied: steps of INT64_MIN are legal.
        strides[axis] = count > 1 ? strides[axis] * step : 0;
    }
    return one(gather_strided(c, x, shape, strides, offset));
}

/// Index of x that stands at position i of an axis of n elements, i counted from x's first element; -1: the fill value.
std::int64_t pad_source(std::int64_t i, std::int64_t n, const std::string& mode) {
    if (i >= 0 && i < n) return i;
    if (mode == "constant") return -1;
    if (mode == "edge") return std::clamp<std::int64_t>(i, 0, n - 1);
    if (mode == "wrap") return (i % n + n) % n;
    if (n == 1) return 0;
    const std::int64_t period = 2 * (n - 1), k = (i % period + period) % period;
    return k < n ? k : period - k;
}

/// Pad-2 has attributes pads and value, Pad-11 inputs, Pad-18 axes, Pad-19 mode "wrap". Negative pads cut.
Results pad(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    const bool attributes = c.opset < 11;
    const auto pads = attributes ? c.integers("pads") : c.list(1);
    const std::string mode = c.text("mode", "constant");
    if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
        c.fail(fmt::format("mode=\"{}\" is unknown; use constant, edge, reflect or wrap", mode));
    std::vector<std::int64_t> axes = !attributes && c.has(3) ? c.list(3) : counting(static_cast<std::int64_t>(rank));
    if (pads.size() != 2 * axes.size()) c.fail(fmt::format("pads has {} entries for {} axes; two each are needed; repair the model", pads.size(), axes.size()));
    Tensor fill(x.dtype, {1});
    if (attributes) {
        const double value = c.real("value", 0.0f);
        store(fill, 0, std::span<const double>(&value, 1));
    } else if (c.has(2) && c.in(2).count() > 0) {
        if (c.in(2).dtype != x.dtype || c.in(2).count() != 1) c.bad_shape(2, "one value of the data's type is expected; repair the model");
        copy_elements(c.in(2), 0, fill, 0, 1);
    }
    std::vector<std::int64_t> begin(rank, 0), end(rank, 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::size_t d = c.axis(axes[i], rank);
        begin[d] = pads[i];
        end[d] = pads[axes.size() + i];
    }
    Shape shape = x.shape;
    for (std::size_t d = 0; d < rank; ++d) {
        if (std::max(std::abs(begin[d] / 2), std::abs(end[d] / 2)) > kMaxElements) c.fail("pads are out of range; repair the model");
        shape[d] += begin[d] + end[d];
        if (shape[d] < 0) c.fail(fmt::format("negative pads cut more than the {} elements of dimension {}; repair the model", x.shape[d], d));
        if (x.shape[d] == 0 && shape[d] > 0 && mode != "constant") c.bad_shape(0, "nothing to repeat; repair the model");
    }
    c.make(DType::u8, Shape{std::min(element_count(shape), kMaxElements + 1)});  // refuses before the maps are made
    std::vector<std::vector<std::int64_t>> maps(rank);
    for (std::size_t d = 0; d < rank; ++d)
        for (std::int64_t i = 0; i < shape[d]; ++i) maps[d].push_back(pad_source(i - begin[d], x.shape[d], mode));
    return one(gather_mapped(c, x, maps, fill));
}

Results expand(const Call& c) { return one(spread(c, c.in(0), broadcast(c, c.in(0).shape, c.list(1)))); }

Results tile(const Call& c) {
    const Tensor& x = c.in(0);
    const auto repeats = c.list(1);
    if (repeats.size() != x.shape.size()) c.fail(fmt::format("{} repeats for {} dimensions; repair the model", repeats.size(), x.shape.size()));
    Shape shape;
    // A repeat is an outer dimension of stride 0 beside the dimension it repeats.
    std::vector<std::int64_t> strides;
    Shape pairs, result;
    const auto own = strides_of(x.shape);
    for (std::size_t d = 0; d < repeats.size(); ++d) {
        if (repeats[d] < 0 || repeats[d] > kMaxElements) c.fail(fmt::format("repeat {}; repair the model", repeats[d]));
        pairs.insert(pairs.end(), {repeats[d], x.shape[d]});
        strides.insert(strides.end(), {0, own[d]});
        result.push_back(repeats[d] * x.shape[d]);
    }
    return one(reshaped(gather_strided(c, x, pairs, strides, 0), result));
}

/// [N, C, H, W] split and permuted: both operators are a Reshape, a Transpose and a Reshape.
Results depth_to_space(const Call& c) {
    const Tensor& x = c.in(0);
    const std::int64_t b = c.integer("blocksize", 0);
    const std::string mode = c.text("mode", "DCR");
    if (x.shape.size() != 4) c.bad_shape(0, "four dimensions are expected; repair the model");
    if (b < 1 || b > (1 << 20) || x.shape[1] % (b * b) != 0) c.fail(fmt::format("{} channels do not fit blocksize {}; repair the model", x.shape[1], b));
    c.require(mode == "DCR" || mode == "CRD", "mode must be DCR or CRD; repair the model");
    const std::int64_t n = x.shape[0], depth = x.shape[1] / (b * b), h = x.shape[2], w = x.shape[3];
    const Tensor split_up = reshaped(x, mode == "DCR" ? Shape{n, b, b, depth, h, w} : Shape{n, depth, b, b, h, w});
    const std::size_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    return one(reshaped(permuted(c, split_up, mode == "DCR" ? dcr : crd), {n, depth, h * b, w * b}));
}

Results space_to_depth(const Call& c) {
    const Tensor& x = c.in(0);
    const std::int64_t b = c.integer("blocksize", 0);
    if (x.shape.size() != 4) c.bad_shape(0, "four dimensions are expected; repair the model");
    if (b < 1 || x.shape[2] % b != 0 || x.shape[3] % b != 0) c.bad_shape(0, fmt::format("it does not fit blocksize {}; repair the model", b));
    const std::int64_t n = x.shape[0], depth = x.shape[1], h = x.shape[2] / b, w = x.shape[3] / b;
    const std::size_t perm[] = {0, 3, 5, 1, 2, 4};
    return one(reshaped(permuted(c, reshaped(x, {n, depth, h, b, w, b}), perm), {n, depth * b * b, h, w}));
}

/// Trilu-14: keeps the upper (or lower) triangle from diagonal k on.
Results trilu(const Call& c) {
    Tensor out = c.in(0);
    const std::size_t rank = out.shape.size();
    if (rank < 2) c.bad_shape(0, "a matrix is expected; repair the model");
    const bool upper = c.integer("upper", 1) != 0;
    const std::int64_t rows = out.shape[rank - 2], columns = out.shape[rank - 1], total = out.count();
    const std::int64_t k = std::clamp(c.has(1) ? c.integer(1) : 0, -rows - 1, columns + 1);
    with_bits(out.dtype, [&](auto bits) {
        using T = decltype(bits);
        const auto t = out.as<T>();
        for (std::int64_t i = 0; i < total; ++i) {
            const std::int64_t row = i / columns % rows, column = i % columns;
            if (upper ? column - row < k : column - row > k) t[static_cast<std::size_t>(i)] = 0;
        }
    });
    return one(std::move(out));
}

Results reverse_sequence(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t time = c.axis(c.integer("time_axis", 0), x.shape.size()), batch = c.axis(c.integer("batch_axis", 1), x.shape.size());
    c.require(time + batch == 1, "time_axis and batch_axis must be 0 and 1; repair the model");
    const auto lengths = c.list(1);
    if (static_cast<std::int64_t>(lengths.size()) != x.shape[batch]) c.bad_shape(1, "a length for each sequence is expected; repair the model");
    Tensor out = x;
    const auto strides = strides_of(x.shape);
    const std::int64_t inner = extent(x.shape, 2, x.shape.size());
    for (std::int64_t b = 0; b < x.shape[batch]; ++b) {
        const std::int64_t length = lengths[static_cast<std::size_t>(b)];
        if (length < 0 || length > x.shape[time]) c.fail(fmt::format("a sequence of {} of {} steps; repair the model", length, x.shape[time]));
        for (std::int64_t t = 0; t < length; ++t)
            copy_elements(x, b * strides[batch] + (length - 1 - t) * strides[time], out, b * strides[batch] + t * strides[time], inner);
    }
    return one(std::move(out));
}

/// CenterCropPad-18: crops or pads each axis around its middle; an odd rest goes after.
Results center_crop_pad(const Call& c) {
    const Tensor& x = c.in(0);
    const std::size_t rank = x.shape.size();
    const auto target = c.list(1);
    const auto axes = c.integers("axes", counting(static_cast<std::int64_t>(rank)));
    if (target.size() != axes.size()) c.fail(fmt::format("{} sizes for {} axes; repair the model", target.size(), axes.size()));
    std::vector<std::vector<std::int64_t>> maps(rank);
    std::vector<std::int64_t> wanted = x.shape;
    for (std::size_t i = 0; i < axes.size(); ++i) wanted[c.axis(axes[i], rank)] = target[i];
    c.make(DType::u8, Shape{std::min(element_count(wanted), kMaxElements + 1)});
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t n = x.shape[d], first = n >= wanted[d] ? (n - wanted[d]) / 2 : -((wanted[d] - n) / 2);
        for (std::int64_t i = 0; i < wanted[d]; ++i) maps[d].push_back(i + first >= 0 && i + first < n ? i + first : -1);
    }
    return one(gather_mapped(c, x, maps, Tensor(x.dtype, {1})));
}

}  // namespace

std::span<const Operator> move_operators() {
    static constexpr Operator table[] = {
        {"CenterCropPad", center_crop_pad, 18},
        {"Concat", concat, 4},
        {"DepthToSpace", depth_to_space},
        {"Expand", expand, 8},
        {"Pad", pad, 2},
        {"ReverseSequence", reverse_sequence, 10},
        {"Slice", slice},
        {"SpaceToDepth", space_to_depth},
        {"Split", split, 2},
        {"Tile", tile, 6},
        {"Transpose", transpose},
        {"Trilu", trilu, 14},
    };
    return table;
}

}  // namespace assay::workloads::hostops
