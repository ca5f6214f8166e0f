// Operators that rearrange, repeat or cut out elements by their attributes alone: which source element goes where.
#include <algorithm>

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {

Outputs split(const Node& node) {
    const Value& x = node.in(0);
    const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 0), x.rank()));
    const auto outputs = static_cast<std::int64_t>(node.output_count());
    std::vector<std::int64_t> sizes;
    if (node.version() < 13) {
        if (const auto given = node.integers("split")) sizes = *given;
    } else if (node.has(1)) {
        sizes = node.integers(1);
    }
    if (sizes.empty()) {
        const std::int64_t parts = node.version() >= 18 ? node.integer("num_outputs", outputs) : outputs;
        if (parts < 1 || parts > outputs) node.fail(fmt::format("num_outputs={}: the node has {} outputs", parts, outputs));
        // From version 18 on the last part may be smaller; before, the parts must be equal.
        const std::int64_t each = (x.shape[axis] + parts - 1) / parts;
        if (node.version() < 18 && x.shape[axis] % parts != 0)
            node.fail(fmt::format("dimension {} does not divide into {} equal parts", x.shape[axis], parts));
        for (std::int64_t i = 0, left = x.shape[axis]; i < parts; ++i, left -= each)
            sizes.push_back(std::max<std::int64_t>(0, std::min(each, left)));
    } else if (node.version() >= 18) {
        (void)node.integer("num_outputs", 0);
    }
    std::int64_t total = 0;
    for (const std::int64_t size : sizes) {
        if (size < 0 || size > x.shape[axis]) node.fail(fmt::format("split {} of dimension {}", to_string(sizes), x.shape[axis]));
        total += size;
    }
    if (total != x.shape[axis] || static_cast<std::int64_t>(sizes.size()) < outputs)
        node.fail(fmt::format("split {} of dimension {} into {} outputs", to_string(sizes), x.shape[axis], outputs));
    const auto strides = strides_of(x.shape);
    Outputs out;
    std::int64_t first = 0;
    for (const std::int64_t size : sizes) {
        Shape shape = x.shape;
        shape[axis] = size;
        out.push_back(x.gather(index_of(shape,
                                        [&](const std::vector<std::int64_t>& at) {
                                            std::int64_t from = first * strides[axis];
                                            for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * strides[d];
                                            return from;
                                        }),
                               shape));
        first += size;
    }
    return out;
}

Outputs expand(const Node& node) {
    const Value& x = node.in(0);
    Shape shape;
    try {
        shape = broadcast(x.shape, node.integers(1));
    } catch (const Error& error) {
        node.fail(error.what());
    }
    return {x.gather(broadcast_index(x.shape, shape), shape)};
}

Outputs tile(const Node& node) {
    const Value& x = node.in(0);
    const std::vector<std::int64_t> repeats = node.integers(1);
    if (repeats.size() != x.shape.size()) node.fail(fmt::format("{} repeats for {} dimensions", repeats.size(), x.rank()));
    Shape shape = x.shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (repeats[d] < 0 || __builtin_mul_overflow(shape[d], repeats[d], &shape[d]))
            node.fail(fmt::format("repeats {} of {} holds a negative or absurd number", to_string(repeats), to_string(x.shape)));
    }
    const auto strides = strides_of(x.shape);
    return {x.gather(index_of(shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  std::int64_t from = 0;
                                  for (std::size_t d = 0; d < at.size(); ++d) from += at[d] % x.shape[d] * strides[d];
                                  return from;
                              }),
                     shape)};
}

Outputs depth_to_space(const Node& node) {
    const Value& x = node.in(0);
    const std::int64_t b = node.integer("blocksize", 0);
    const std::string mode = node.version() < 11 ? "DCR" : node.text("mode", "DCR");
    if (x.rank() != 4 || b < 1 || b > 1 << 15 || x.shape[1] % (b * b) != 0)
        node.fail(fmt::format("input of shape {} and blocksize {}", to_string(x.shape), b));
    if (mode != "DCR" && mode != "CRD") node.fail(fmt::format("mode=\"{}\" must be DCR or CRD", mode));
    const std::int64_t depth = x.shape[1] / (b * b);
    const auto strides = strides_of(x.shape);
    const Shape shape{x.shape[0], depth, x.shape[2] * b, x.shape[3] * b};
    return {x.gather(index_of(shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  const std::int64_t block = at[2] % b * b + at[3] % b;
                                  const std::int64_t channel = mode == "DCR" ? block * depth + at[1] : at[1] * b * b + block;
                                  return at[0] * strides[0] + channel * strides[1] + at[2] / b * strides[2] + at[3] / b * strides[3];
                              }),
                     shape)};
}

Outputs space_to_depth(const Node& node) {
    const Value& x = node.in(0);
    const std::int64_t b = node.integer("blocksize", 0);
    if (x.rank() != 4 || b < 1 || b > 1 << 15 || x.shape[2] % b != 0 || x.shape[3] % b != 0)
        node.fail(fmt::format("input of shape {} and blocksize {}", to_string(x.shape), b));
    const auto strides = strides_of(x.shape);
    const std::int64_t channels = x.shape[1];
    const Shape shape{x.shape[0], channels * b * b, x.shape[2] / b, x.shape[3] / b};
    return {x.gather(index_of(shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  const std::int64_t block = at[1] / channels;
                                  return at[0] * strides[0] + at[1] % channels * strides[1] + (at[2] * b + block / b) * strides[2] +
                                         (at[3] * b + block % b) * strides[3];
                              }),
                     shape)};
}

Outputs trilu(const Node& node) {
    const Value& x = node.in(0);
    if (x.rank() < 2) node.fail(fmt::format("input of shape {} is no matrix", to_string(x.shape)));
    const bool upper = node.integer("upper", 1) != 0;
    const std::int64_t rows = x.shape[x.shape.size() - 2], cols = x.shape.back();
    // Diagonals beyond the matrix are all alike: clamped, so that no sum overflows.
    const std::int64_t k = node.has(1) ? (node.scalar(1), std::clamp(node.integers(1)[0], -rows - 1, cols + 1)) : 0;
    std::int64_t from = 0;
    return {x.gather(index_of(x.shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  const std::int64_t diagonal = at.back() - at[at.size() - 2], here = from++;
                                  return (upper ? diagonal >= k : diagonal <= k) ? here : -1;
                              }),
                     x.shape)};
}

Outputs center_crop_pad(const Node& node) {
    const Value& x = node.in(0);
    const std::vector<std::int64_t> sizes = node.integers(1);
    std::vector<std::int64_t> axes(x.shape.size());
    for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<std::int64_t>(d);
    if (const auto given = node.integers("axes")) axes = *given;
    if (sizes.size() != axes.size()) node.fail(fmt::format("shape of {} entries for {} axes", sizes.size(), axes.size()));
    Shape shape = x.shape;
    std::vector<std::int64_t> offset(x.shape.size(), 0);  // position of the result's first element in the input
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto d = static_cast<std::size_t>(node.axis(axes[i], x.rank()));
        if (sizes[i] < 0) node.fail(fmt::format("shape {} holds a negative size", to_string(sizes)));
        const std::int64_t more = x.shape[d] - sizes[i];
        offset[d] = more >= 0 ? more / 2 : -((-more) / 2);  // of an odd difference, the smaller half comes first
        shape[d] = sizes[i];
    }
    const auto strides = strides_of(x.shape);
    return {x.gather(index_of(shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  std::int64_t from = 0;
                                  for (std::size_t d = 0; d < at.size(); ++d) {
                                      const std::int64_t p = at[d] + offset[d];
                                      if (p < 0 || p >= x.shape[d]) return std::int64_t{-1};
                                      from += p * strides[d];
                                  }
                                  return from;
                              }),
                     shape)};
}

Outputs reverse_sequence(const Node& node) {
    const Value& x = node.in(0);
    const std::vector<std::int64_t> lengths = node.integers(1);
    const auto batch = static_cast<std::size_t>(node.axis(node.integer("batch_axis", 1), x.rank()));
    const auto time = static_cast<std::size_t>(node.axis(node.integer("time_axis", 0), x.rank()));
    if (batch == time || static_cast<std::int64_t>(lengths.size()) != x.shape[batch])
        node.fail(fmt::format("{} sequence lengths, input {}, batch axis {}, time axis {}", lengths.size(), to_string(x.shape), batch, time));
    for (const std::int64_t length : lengths)
        if (length < 0 || length > x.shape[time]) node.fail(fmt::format("sequence length {} of {} steps", length, x.shape[time]));
    const auto strides = strides_of(x.shape);
    return {x.gather(index_of(x.shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  const std::int64_t length = lengths[static_cast<std::size_t>(at[batch])];
                                  std::int64_t from = 0;
                                  for (std::size_t d = 0; d < at.size(); ++d)
                                      from += (d == time && at[d] < length ? length - 1 - at[d] : at[d]) * strides[d];
                                  return from;
                              }),
                     x.shape)};
}

}  // namespace assay::golden::ops
