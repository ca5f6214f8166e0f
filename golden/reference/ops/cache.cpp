// RotaryEmbedding and TensorScatter: what decoders do to queries, keys and their caches.
#include <fmt/format.h>

#include "golden/reference/bounded.hpp"
#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"

namespace assay::golden::ops {

/// RotaryEmbedding-23. X: batch x heads x sequence x size, or batch x sequence x (heads * size) with num_heads. Of each head's first
/// rotary_embedding_dim elements, element i and its partner (half a turn further, or the next one when interleaved) are a complex number that is
/// multiplied by cos + i sin of its position; the rest stay.
Outputs rotary_embedding(const Node& node) {
    const Value& x = node.real(0);
    const Value &cosine = node.real(1), &sine = node.real(2);
    const bool packed = x.rank() == 3;
    if (!packed && x.rank() != 4) node.fail(fmt::format("X is {}; 3 or 4 dimensions are expected", to_string(x.shape)));
    const std::int64_t declared = node.integer("num_heads", 0);
    if (packed && (declared < 1 || x.shape[2] % declared != 0)) node.fail(fmt::format("num_heads={} does not divide {}", declared, x.shape[2]));
    const std::int64_t batch = x.shape[0], sequence = x.shape[packed ? 1 : 2], heads = packed ? declared : x.shape[1], size = packed ? x.shape[2] / declared : x.shape[3];
    const std::int64_t turned = node.integer("rotary_embedding_dim", 0) == 0 ? size : node.integer("rotary_embedding_dim", 0);
    if (turned < 0 || turned > size || turned % 2 != 0) node.fail(fmt::format("rotary_embedding_dim={} of heads of {}; an even part of it is expected", turned, size));
    const bool interleaved = node.integer("interleaved", 0) != 0;
    const std::int64_t pairs = turned / 2;
    std::vector<std::int64_t> row(static_cast<std::size_t>(batch * sequence));  // of the caches, by position in the batch
    const Shape expected = node.has(3) ? Shape{cosine.rank() > 0 ? cosine.shape[0] : 0, pairs} : Shape{batch, sequence, pairs};
    if (cosine.shape != expected || sine.shape != expected)
        node.fail(fmt::format("caches are {} and {}; {} is expected", to_string(cosine.shape), to_string(sine.shape), to_string(expected)));
    if (node.has(3)) {
        row = node.integers(3);
        if (node.in(3).shape != Shape{batch, sequence}) node.fail(fmt::format("position_ids is {}; {}x{} is expected", to_string(node.in(3).shape), batch, sequence));
        for (const std::int64_t r : row)
            if (r < 0 || r >= expected[0]) node.fail(fmt::format("position {} is outside the {} positions of the caches", r, expected[0]));
    } else {
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::int64_t>(i);
    }
    const BoundedArithmetic arithmetic(node.numerics());
    const auto bounded = [](const Value& v, std::int64_t i) { return Bounded{v.at(i), v.error(i)}; };
    Value y = x;
    if (node.bounds()) y.err.resize(y.f.size(), 0.0);
    const auto put = [&](std::int64_t at, Bounded b) {
        y.f[static_cast<std::size_t>(at)] = b.v;
        if (node.bounds()) y.err[static_cast<std::size_t>(at)] = b.e;
    };
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t s = 0; s < sequence; ++s)
                for (std::int64_t p = 0; p < pairs; ++p) {
                    const std::int64_t head = (packed ? (b * sequence + s) * heads + h : (b * heads + h) * sequence + s) * size;
                    const std::int64_t re = head + (interleaved ? 2 * p : p), im = interleaved ? re + 1 : re + pairs;
                    const std::int64_t angle = row[static_cast<std::size_t>(b * sequence + s)] * pairs + p;
                    const Bounded c = bounded(cosine, angle), i = bounded(sine, angle), u = bounded(x, re), v = bounded(x, im);
                    put(re, arithmetic.sub(arithmetic.mul(c, u), arithmetic.mul(i, v)));
                    put(im, arithmetic.add(arithmetic.mul(i, u), arithmetic.mul(c, v)));
                }
    return {y};
}

/// TensorScatter-24: a copy of the cache in which each batch's update lies along `axis` from its write index on (0 when none is given);
/// "circular" goes on at the start past the end.
Outputs tensor_scatter(const Node& node) {
    const Value &cache = node.in(0), &update = node.in(1);
    const std::int64_t axis = node.axis(node.integer("axis", -2), cache.rank());
    const std::string mode = node.text("mode", "linear");
    if (mode != "linear" && mode != "circular") node.fail(fmt::format("mode=\"{}\" is not known; use linear or circular", mode));
    if (axis == 0) node.fail("axis=0 is the batch; give another");
    Shape expected = cache.shape;
    if (update.rank() == cache.rank()) expected[static_cast<std::size_t>(axis)] = update.shape[static_cast<std::size_t>(axis)];
    if (update.shape != expected || update.dtype != cache.dtype) node.fail(fmt::format("update is {} of {}; the cache is {} of {}", to_string(update.shape), name_of(update.dtype), to_string(cache.shape), name_of(cache.dtype)));
    const std::int64_t length = cache.shape[static_cast<std::size_t>(axis)], steps = expected[static_cast<std::size_t>(axis)];
    if (steps > length) node.fail(fmt::format("{} steps do not fit a cache of {}", steps, length));
    std::vector<std::int64_t> first(static_cast<std::size_t>(cache.shape[0]), 0);
    if (node.has(2)) {
        first = node.integers(2);
        if (node.in(2).shape != Shape{cache.shape[0]}) node.fail(fmt::format("write_indices is {}; one for each of {} batches is expected", to_string(node.in(2).shape), cache.shape[0]));
    }
    for (const std::int64_t f : first)
        if (f < 0 || (length > 0 && f >= length) || (mode == "linear" && f + steps > length)) node.fail(fmt::format("write index {} with {} steps leaves a cache of {}", f, steps, length));
    Value y = cache;
    drop_unrounded(y);
    if (node.bounds() && y.err.empty() && !update.err.empty()) y.err.assign(static_cast<std::size_t>(y.count()), 0.0);
    const std::vector<std::int64_t> strides = strides_of(cache.shape), own = strides_of(update.shape);
    for (std::int64_t i = 0; i < update.count(); ++i) {
        const std::int64_t step = i / own[static_cast<std::size_t>(axis)] % steps, b = i / own[0];
        // The same coordinates in the cache, apart from the one on the axis.
        std::int64_t to = (first[static_cast<std::size_t>(b)] + step) % length * strides[static_cast<std::size_t>(axis)];
        for (std::size_t d = 0; d < own.size(); ++d)
            if (static_cast<std::int64_t>(d) != axis) to += i / own[d] % update.shape[d] * strides[d];
        if (y.floating()) y.f[static_cast<std::size_t>(to)] = update.f[static_cast<std::size_t>(i)];
        else y.n[static_cast<std::size_t>(to)] = update.n[static_cast<std::size_t>(i)];
        if (!y.err.empty()) y.err[static_cast<std::size_t>(to)] = update.error(i);
    }
    return {y};
}

}  // namespace assay::golden::ops
