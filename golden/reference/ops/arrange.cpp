// Split-2, -11, -13, -18; Expand-8, -13; Tile-6, -13; DepthToSpace-1, -11, -13; SpaceToDepth-1, -13: which source element goes where.
#include <fmt/format.h>

#include "golden/reference/ops/kernels.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

template <class Source>
std::vector<std::int64_t> index_of(const Shape& shape, Source source) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(element_count(shape))), at(shape.size(), 0);
    for (auto& i : index) {
        i = source(at);
        for (std::size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
    }
    return index;
}

}  // namespace

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
        if (parts < 1) node.fail(fmt::format("num_outputs={} must be positive", parts));
        // From version 18 on the last part may be smaller; before, the parts must be equal.
        const std::int64_t each = (x.shape[axis] + parts - 1) / parts;
        if (node.version() < 18 && x.shape[axis] % parts != 0) node.fail(fmt::format("dimension {} does not divide into {} equal parts", x.shape[axis], parts));
        for (std::int64_t i = 0, left = x.shape[axis]; i < parts; ++i, left -= each) sizes.push_back(std::max<std::int64_t>(0, std::min(each, left)));
    } else if (node.version() >= 18) {
        (void)node.integer("num_outputs", 0);
    }
    std::int64_t total = 0;
    for (const std::int64_t size : sizes) total += size;
    if (total != x.shape[axis] || static_cast<std::int64_t>(sizes.size()) < outputs)
        node.fail(fmt::format("split {} of dimension {} into {} outputs", to_string(sizes), x.shape[axis], outputs));
    const auto strides = strides_of(x.shape);
    Outputs out;
    std::int64_t first = 0;
    for (const std::int64_t size : sizes) {
        if (size < 0) node.fail(fmt::format("split {} holds a negative size", to_string(sizes)));
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
        if (repeats[d] < 0) node.fail(fmt::format("repeats {} holds a negative number", to_string(repeats)));
        shape[d] *= repeats[d];
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
    if (x.rank() != 4 || b < 1 || x.shape[1] % (b * b) != 0) node.fail(fmt::format("input of shape {} and blocksize {}", to_string(x.shape), b));
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
    if (x.rank() != 4 || b < 1 || x.shape[2] % b != 0 || x.shape[3] % b != 0) node.fail(fmt::format("input of shape {} and blocksize {}", to_string(x.shape), b));
    const auto strides = strides_of(x.shape);
    const std::int64_t channels = x.shape[1];
    const Shape shape{x.shape[0], channels * b * b, x.shape[2] / b, x.shape[3] / b};
    return {x.gather(index_of(shape,
                              [&](const std::vector<std::int64_t>& at) {
                                  const std::int64_t block = at[1] / channels;
                                  return at[0] * strides[0] + at[1] % channels * strides[1] + (at[2] * b + block / b) * strides[2] + (at[3] * b + block % b) * strides[3];
                              }),
                     shape)};
}

}  // namespace assay::golden::ops
