// Convolutions of any number of spatial dimensions: Conv, ConvInteger, QLinearConv, ConvTranspose, DeformConv, Col2Im.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"
#include "workloads/host/matrix.hpp"
#include "workloads/host/quantize.hpp"
#include "workloads/host/window.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

I64 product_of(const std::vector<I64>& v) {
    I64 n = 1;
    for (const I64 e : v) n *= e;
    return n;
}

struct Layer {
    I64 batch, channels, group, outputs;
    Windows w;
    Shape result;
};

Layer layer_of(const Call& c, const Tensor& x, const Tensor& weight) {
    const Shape &xs = x.shape, &ws = weight.shape;
    if (xs.size() < 3 || ws.size() != xs.size()) c.fail(fmt::format("input {} and weight {} do not fit; repair the model", to_string(xs), to_string(ws)));
    const I64 group = c.integer("group", 1);
    if (group < 1 || xs[1] % group || ws[0] % group || xs[1] / group != ws[1])
        c.fail(fmt::format("{} channels in {} groups do not fit the weight {}; repair the model", xs[1], group, to_string(ws)));
    Layer l{xs[0], xs[1], group, ws[0], windows_of(c, xs, {ws.begin() + 2, ws.end()}), {xs[0], ws[0]}};
    l.result.insert(l.result.end(), l.w.out.begin(), l.w.out.end());
    c.make(DType::u8, {std::min(element_count(l.result), kMaxElements + 1)});
    c.work(static_cast<double>(element_count(l.result)) * static_cast<double>(ws[1]) * static_cast<double>(product_of(l.w.kernel)));
    return l;
}

/// Columns of one image's channels [first, first + count): [count * taps, positions [from, to)]; padding is 0.
template <class T>
void image_to_columns(const T* x, const Windows& w, I64 count, I64 from, I64 to, std::vector<T>& columns) {
    const I64 plane = product_of(w.in), taps = product_of(w.kernel), width = to - from;
    columns.assign(static_cast<std::size_t>(count * taps * width), T{0});
    const auto strides = strides_of(w.in), out_strides = strides_of(w.out);
    std::vector<I64> tap(w.rank(), 0);
    // For each tap and position, the offset in a plane; the channels share it.
    std::vector<I64> offset(static_cast<std::size_t>(width));
    I64 t = 0;
    do {
        for (I64 p = from; p < to; ++p) {
            I64 at = 0;
            for (std::size_t d = 0; d < w.rank() && at >= 0; ++d) {
                const I64 s = w.source(d, p / out_strides[d] % w.out[d], tap[d]);
                at = s < 0 || s >= w.in[d] ? -1 : at + s * strides[d];
            }
            offset[static_cast<std::size_t>(p - from)] = at;
        }
        for (I64 ch = 0; ch < count; ++ch) {
            T* row = columns.data() + (ch * taps + t) * width;
            const T* source = x + ch * plane;
            for (I64 p = 0; p < width; ++p)
                if (offset[static_cast<std::size_t>(p)] >= 0) row[p] = source[offset[static_cast<std::size_t>(p)]];
        }
        ++t;
    } while (next_index(tap, w.kernel));
}

/// The convolution without bias, [batch, outputs, out…].
template <class T>
std::vector<T> convolve(const Layer& l, const std::vector<T>& x, const std::vector<T>& weight) {
    const I64 plane = product_of(l.w.in), positions = product_of(l.w.out), taps = product_of(l.w.kernel);
    const I64 per_group = l.channels / l.group, per_output = l.outputs / l.group, depth = per_group * taps;
    std::vector<T> y(static_cast<std::size_t>(l.batch * l.outputs * positions), T{0});
    if (y.empty()) return y;
    const I64 block = std::clamp<I64>((I64{1} << 20) / std::max<I64>(depth, 1), 1, positions);  // 8 MiB of columns at a time
    std::vector<T> columns, part;
    for (I64 n = 0; n < l.batch; ++n)
        for (I64 g = 0; g < l.group; ++g)
            for (I64 from = 0; from < positions; from += block) {
                const I64 to = std::min(positions, from + block), width = to - from;
                image_to_columns(x.data() + (n * l.channels + g * per_group) * plane, l.w, per_group, from, to, columns);
                part.resize(static_cast<std::size_t>(per_output * width));
                product(weight.data() + g * per_output * depth, columns.data(), part.data(), per_output, depth, width);
                for (I64 o = 0; o < per_output; ++o)
                    std::copy_n(part.begin() + o * width, width, y.begin() + ((n * l.outputs + g * per_output + o) * positions + from));
            }
    return y;
}

template <class T>
void add_bias(const Call& c, std::size_t input, I64 channels, I64 inner, std::vector<T>& y) {
    if (!c.has(input)) return;
    if (c.in(input).count() != channels) c.bad_shape(input, fmt::format("a bias of {} is expected; repair the model", channels));
    std::vector<T> bias(static_cast<std::size_t>(channels));
    load(c.in(input), 0, std::span<T>(bias));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i / static_cast<std::size_t>(inner) % bias.size()];
}

Results conv(const Call& c) {
    c.same_types(0, 3);
    const Layer l = layer_of(c, c.in(0), c.in(1));
    auto y = convolve(l, reals_of(c.in(0)), reals_of(c.in(1)));
    add_bias(c, 2, l.outputs, product_of(l.w.out), y);
    return one(tensor_of(c, c.in(0).dtype, l.result, std::span<const double>(y)));
}

/// Integers minus their zero point: one, or (weights) one for each output.
std::vector<I64> centred(const Call& c, std::size_t x, std::size_t zero) {
    auto v = integers_of(c.in(x));
    if (!c.has(zero)) return v;
    const auto z = integers_of(c.in(zero));
    const I64 outer = c.in(x).shape[0];
    if (z.size() != 1 && static_cast<I64>(z.size()) != outer) c.bad_shape(zero, "one zero point, or one for each output, is expected; repair the model");
    const std::size_t run = v.size() / static_cast<std::size_t>(std::max<I64>(outer, 1));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] -= z[z.size() == 1 ? 0 : i / run];
    return v;
}

Results conv_integer(const Call& c) {
    const Layer l = layer_of(c, c.in(0), c.in(1));
    return one(tensor_of(c, DType::i32, l.result, std::span<const I64>(convolve(l, centred(c, 0, 2), centred(c, 1, 3)))));
}

/// QLinearConv-10: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (int32 at scale x_scale * w_scale).
Results qlinear_conv(const Call& c) {
    const Layer l = layer_of(c, c.in(0), c.in(3));
    auto sums = convolve(l, centred(c, 0, 2), centred(c, 3, 5));
    const I64 inner = product_of(l.w.out);
    add_bias(c, 8, l.outputs, inner, sums);
    const double sx = c.real(1), sy = c.real(6);
    const auto sw = reals_of(c.in(4));
    if (sw.size() != 1 && static_cast<I64>(sw.size()) != l.outputs) c.bad_shape(4, "one scale, or one for each output, is expected; repair the model");
    const I64 zero = c.integer(7);
    std::vector<double> y(sums.size());
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = requantized(static_cast<double>(sums[i]), sx * sw[sw.size() == 1 ? 0 : i / static_cast<std::size_t>(inner) % sw.size()] / sy, zero);
    return one(tensor_of(c, c.in(7).dtype, l.result, std::span<const double>(y)));
}

/// ConvTranspose-11: every input element adds its weighted kernel to the output; output_shape or auto_pad decide the pads.
Results conv_transpose(const Call& c) {
    c.same_types(0, 3);
    const Shape &xs = c.in(0).shape, &ws = c.in(1).shape;
    if (xs.size() < 3 || ws.size() != xs.size() || ws[0] != xs[1]) c.fail(fmt::format("input {} and weight {} do not fit; repair the model", to_string(xs), to_string(ws)));
    const std::size_t rank = xs.size() - 2;
    const I64 group = c.integer("group", 1);
    if (group < 1 || xs[1] % group) c.fail(fmt::format("{} channels in {} groups; repair the model", xs[1], group));
    const auto list = [&](const char* name, I64 otherwise, std::size_t count) {
        auto v = c.integers(name, std::vector<I64>(count, otherwise));
        if (v.size() != count) c.fail(fmt::format("{} has {} entries, expected {}; repair the model", name, v.size(), count));
        for (const I64 e : v)
            if (e < 0 || e > kMaxElements) c.fail(fmt::format("{} holds {}; repair the model", name, e));
        return v;
    };
    const auto output_padding = list("output_padding", 0, rank);
    auto pads = list("pads", 0, 2 * rank);
    const auto shape_wanted = c.integers("output_shape");
    const std::string auto_pad = c.text("auto_pad", "NOTSET");
    Windows w;  // of the convolution that this one transposes: its input is our output
    w.out.assign(xs.begin() + 2, xs.end());
    w.kernel.assign(ws.begin() + 2, ws.end());
    w.stride = list("strides", 1, rank);
    w.dilation = list("dilations", 1, rank);
    for (std::size_t d = 0; d < rank; ++d) {
        if (w.stride[d] < 1 || w.dilation[d] < 1 || w.kernel[d] < 1) c.fail("kernel, strides and dilations must be at least 1; repair the model");
        const I64 full = (w.out[d] - 1) * w.stride[d] + output_padding[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
        I64 extent_ = full - pads[d] - pads[rank + d];
        const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
        if (!shape_wanted.empty() || same) {
            if (!shape_wanted.empty() && shape_wanted.size() < rank) c.fail("output_shape does not fit the input's rank; repair the model");
            extent_ = shape_wanted.empty() ? w.out[d] * w.stride[d] : shape_wanted[shape_wanted.size() - rank + d];
            const I64 total = std::max<I64>(0, full - extent_);
            // ConvTranspose-11: SAME_UPPER puts the odd element at the end, everything else at the beginning.
            pads[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        } else if (auto_pad == "VALID") {
            pads[d] = 0;
            extent_ = full;
        }
        if (extent_ < 1) c.fail(fmt::format("an output dimension of {}; repair the model", extent_));
        w.in.push_back(extent_);
        w.begin.push_back(pads[d]);
    }
    const I64 per_group = xs[1] / group, out_per_group = ws[1], outputs = out_per_group * group, taps = product_of(w.kernel);
    Shape result{xs[0], outputs};
    result.insert(result.end(), w.in.begin(), w.in.end());
    Tensor out = c.make(c.in(0).dtype, result);
    const I64 positions = product_of(w.out), plane = product_of(w.in);
    c.work(static_cast<double>(xs[0]) * static_cast<double>(xs[1]) * static_cast<double>(out_per_group) * static_cast<double>(taps) * static_cast<double>(positions));
    const auto x = reals_of(c.in(0)), weight = reals_of(c.in(1));
    std::vector<double> y(static_cast<std::size_t>(out.count()), 0.0);
    const auto strides = strides_of(w.in), out_strides = strides_of(w.out);
    const I64 rows = out_per_group * taps;
    c.make(DType::u8, {std::min(element_count({per_group, rows}), kMaxElements + 1)});
    // columns[rows, block] = weight^T [rows, per_group] x [per_group, block], then scattered.
    std::vector<double> turned(static_cast<std::size_t>(per_group * rows));
    const I64 block = std::clamp<I64>((I64{1} << 20) / std::max<I64>(rows, 1), 1, std::max<I64>(positions, 1));
    std::vector<double> input, columns;
    for (I64 g = 0; g < group; ++g) {
        for (I64 i = 0; i < per_group; ++i)
            for (I64 r = 0; r < rows; ++r) turned[static_cast<std::size_t>(r * per_group + i)] = weight[static_cast<std::size_t>((g * per_group + i) * rows + r)];
        for (I64 n = 0; n < xs[0]; ++n)
            for (I64 from = 0; from < positions; from += block) {
                const I64 width = std::min(block, positions - from);
                input.resize(static_cast<std::size_t>(per_group * width));
                for (I64 i = 0; i < per_group; ++i)
                    std::copy_n(x.begin() + ((n * xs[1] + g * per_group + i) * positions + from), width, input.begin() + i * width);
                columns.resize(static_cast<std::size_t>(rows * width));
                product(turned.data(), input.data(), columns.data(), rows, per_group, width);
                std::vector<I64> tap(rank, 0);
                I64 t = 0;
                do {
                    for (I64 p = 0; p < width; ++p) {
                        I64 at = 0;
                        for (std::size_t d = 0; d < rank && at >= 0; ++d) {
                            const I64 s = w.source(d, (from + p) / out_strides[d] % w.out[d], tap[d]);
                            at = s < 0 || s >= w.in[d] ? -1 : at + s * strides[d];
                        }
                        if (at < 0) continue;
                        for (I64 o = 0; o < out_per_group; ++o)
                            y[static_cast<std::size_t>((n * outputs + g * out_per_group + o) * plane + at)] += columns[static_cast<std::size_t>((o * taps + t) * width + p)];
                    }
                    ++t;
                } while (next_index(tap, w.kernel));
            }
    }
    add_bias(c, 2, outputs, plane, y);
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

/// DeformConv-19: each tap is read at its own offset by bilinear interpolation and scaled by an optional mask. Two dimensions.
Results deform_conv(const Call& c) {
    const Tensor &x = c.in(0), &weight = c.in(1), &offset = c.in(2);
    if (x.shape.size() != 4) c.bad_shape(0, "four dimensions are expected; repair the model");
    const Layer l = layer_of(c, x, weight);
    const I64 groups = c.integer("offset_group", 1), taps = product_of(l.w.kernel), positions = product_of(l.w.out);
    if (groups < 1 || l.channels % groups) c.fail(fmt::format("{} channels in {} offset groups; repair the model", l.channels, groups));
    const Shape expected{l.batch, groups * taps * 2, l.w.out[0], l.w.out[1]};
    if (offset.shape != expected) c.bad_shape(2, fmt::format("{} is expected; repair the model", to_string(expected)));
    if (c.has(4) && c.in(4).shape != Shape{l.batch, groups * taps, l.w.out[0], l.w.out[1]}) c.bad_shape(4, "it does not fit the offsets; repair the model");
    const auto v = reals_of(x), w = reals_of(weight), o = reals_of(offset);
    const auto mask = c.has(4) ? reals_of(c.in(4)) : std::vector<double>{};
    const I64 h = x.shape[2], wide = x.shape[3], per_group = l.channels / l.group, per_output = l.outputs / l.group, depth = per_group * taps;
    std::vector<double> y(static_cast<std::size_t>(element_count(l.result)), 0.0);
    c.make(DType::u8, {std::min(element_count({depth, positions}), kMaxElements + 1)});
    std::vector<double> columns(static_cast<std::size_t>(depth * positions));
    for (I64 n = 0; n < l.batch; ++n)
        for (I64 g = 0; g < l.group; ++g) {
            for (I64 i = 0; i < per_group; ++i) {
                const I64 ch = g * per_group + i, og = ch / (l.channels / groups);
                const double* plane = v.data() + (n * l.channels + ch) * h * wide;
                const auto pixel = [&](I64 r, I64 k) { return r < 0 || r >= h || k < 0 || k >= wide ? 0.0 : plane[r * wide + k]; };
                for (I64 t = 0; t < taps; ++t)
                    for (I64 p = 0; p < positions; ++p) {
                        const I64 base = ((n * groups + og) * taps + t) * 2;
                        const double r = static_cast<double>(l.w.source(0, p / l.w.out[1], t / l.w.kernel[1])) + o[static_cast<std::size_t>(base * positions + p)];
                        const double k = static_cast<double>(l.w.source(1, p % l.w.out[1], t % l.w.kernel[1])) + o[static_cast<std::size_t>((base + 1) * positions + p)];
                        double e = 0;
                        if (r > -1 && r < static_cast<double>(h) && k > -1 && k < static_cast<double>(wide)) {
                            const double r0 = std::floor(r), k0 = std::floor(k), fr = r - r0, fk = k - k0;
                            const auto ri = static_cast<I64>(r0), ki = static_cast<I64>(k0);
                            e = (1 - fr) * ((1 - fk) * pixel(ri, ki) + fk * pixel(ri, ki + 1)) + fr * ((1 - fk) * pixel(ri + 1, ki) + fk * pixel(ri + 1, ki + 1));
                        }
                        if (!mask.empty()) e *= mask[static_cast<std::size_t>(((n * groups + og) * taps + t) * positions + p)];
                        columns[static_cast<std::size_t>((i * taps + t) * positions + p)] = e;
                    }
            }
            product(w.data() + g * per_output * depth, columns.data(), y.data() + (n * l.outputs + g * per_output) * positions, per_output, depth, positions);
        }
    add_bias(c, 3, l.outputs, positions, y);
    return one(tensor_of(c, x.dtype, l.result, std::span<const double>(y)));
}

/// Col2Im-18: columns [N, C * taps, positions] added back into images.
Results col_to_im(const Call& c) {
    const Tensor& x = c.in(0);
    const auto image = c.list(1), kernel = c.list(2);
    if (x.shape.size() != 3 || image.empty() || kernel.size() != image.size()) c.bad_shape(0, "columns, an image shape and a block shape are expected; repair the model");
    for (const auto* list : {&image, &kernel})
        for (const I64 e : *list)
            if (e < 1 || e > kMaxElements) c.fail("image_shape and block_shape must be at least 1; repair the model");
    Shape like{1, 1};
    like.insert(like.end(), image.begin(), image.end());
    const Windows w = windows_of(c, like, kernel);
    const I64 taps = element_count(kernel), positions = product_of(w.out), plane = element_count(image);
    if (x.shape[1] % taps || x.shape[2] != positions) c.bad_shape(0, fmt::format("{} taps and {} positions are expected; repair the model", taps, positions));
    const I64 channels = x.shape[1] / taps;
    Shape result{x.shape[0], channels};
    result.insert(result.end(), image.begin(), image.end());
    Tensor out = c.make(x.dtype, result);
    const auto v = reals_of(x);
    std::vector<double> y(static_cast<std::size_t>(out.count()), 0.0);
    const auto strides = strides_of(w.in), out_strides = strides_of(w.out);
    std::vector<I64> tap(w.rank(), 0);
    I64 t = 0;
    do {
        for (I64 p = 0; p < positions; ++p) {
            I64 at = 0;
            for (std::size_t d = 0; d < w.rank() && at >= 0; ++d) {
                const I64 s = w.source(d, p / out_strides[d] % w.out[d], tap[d]);
                at = s < 0 || s >= w.in[d] ? -1 : at + s * strides[d];
            }
            if (at < 0) continue;
            for (I64 nc = 0; nc < x.shape[0] * channels; ++nc)
                y[static_cast<std::size_t>(nc * plane + at)] += v[static_cast<std::size_t>((nc * taps + t) * positions + p)];
        }
        ++t;
    } while (next_index(tap, w.kernel));
    store(out, 0, std::span<const double>(y));
    return one(std::move(out));
}

}  // namespace

Windows windows_of(const Call& c, const Shape& x, std::vector<I64> kernel) {
    Windows w;
    const std::size_t rank = x.size() < 2 ? 0 : x.size() - 2;
    if (rank == 0) c.fail(fmt::format("input {} has no spatial dimensions; repair the model", to_string(x)));
    if (kernel.size() != rank) c.fail(fmt::format("kernel_shape has {} entries for {} spatial dimensions; repair the model", kernel.size(), rank));
    const auto list = [&](const char* name, I64 otherwise, std::size_t count) {
        auto v = c.integers(name, std::vector<I64>(count, otherwise));
        if (v.empty()) v.assign(count, otherwise);
        if (v.size() != count) c.fail(fmt::format("{} has {} entries, expected {}; repair the model", name, v.size(), count));
        for (const I64 e : v)
            if (std::abs(e) > kMaxElements) c.fail(fmt::format("{} holds {}; repair the model", name, e));
        return v;
    };
    w.in.assign(x.begin() + 2, x.end());
    w.kernel = std::move(kernel);
    w.stride = list("strides", 1, rank);
    w.dilation = list("dilations", 1, rank);
    const auto pads = list("pads", 0, 2 * rank);
    const std::string auto_pad = c.text("auto_pad", "NOTSET");
    const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
    for (std::size_t d = 0; d < rank; ++d) {
        if (w.kernel[d] < 1 || w.stride[d] < 1 || w.dilation[d] < 1 || w.kernel[d] > kMaxElements)
            c.fail(fmt::format("kernel {}, stride {} and dilation {} must be at least 1; repair the model", w.kernel[d], w.stride[d], w.dilation[d]));
        const I64 reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
        I64 begin = 0, end = 0, out = 0;
        if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
            out = (w.in[d] + w.stride[d] - 1) / w.stride[d];
            const I64 total = std::max<I64>(0, (out - 1) * w.stride[d] + reach - w.in[d]);
            begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
            end = total - begin;
        } else {
            c.require(auto_pad == "NOTSET" || auto_pad == "VALID" || auto_pad.empty(), "auto_pad is unknown; use NOTSET, SAME_UPPER, SAME_LOWER or VALID");
            if (auto_pad != "VALID") begin = pads[d], end = pads[rank + d];
            const I64 room = w.in[d] + begin + end - reach;
            if (room < 0) c.fail(fmt::format("a window of {} does not fit the padded input of {}; repair the model", reach, room + reach));
            out = room / w.stride[d] + 1;
            // One window more, unless it would start in the padding past the end.
            if (ceil_mode && room % w.stride[d] != 0 && out * w.stride[d] < w.in[d] + begin) ++out;
        }
        w.begin.push_back(begin);
        w.end.push_back(end);
        w.out.push_back(out);
    }
    return w;
}

bool next_index(std::vector<I64>& index, const std::vector<I64>& shape) {
    for (std::size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

std::span<const Operator> conv_operators() {
    static constexpr Operator table[] = {
        {"Col2Im", col_to_im, 18}, {"Conv", conv},          {"ConvInteger", conv_integer, 10}, {"ConvTranspose", conv_transpose},
        {"DeformConv", deform_conv, 19}, {"QLinearConv", qlinear_conv, 10},
    };
    return table;
}

}  // namespace assay::workloads::hostops
