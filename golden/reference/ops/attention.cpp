// Attention: versions 23, 24 (nonpad_kv_seqlen) and 25 (sliding windows), as the chain of products and a softmax that the specification draws.
#include <cmath>

#include <fmt/format.h>

#include "golden/reference/ops/indexing.hpp"
#include "golden/reference/ops/kernels.hpp"
#include "golden/reference/ops/matrix_product.hpp"
#include "golden/reference/ops/softmax_row.hpp"
#include "support/error.hpp"

namespace assay::golden::ops {
namespace {

/// batch x sequence x (heads * size) to batch x heads x sequence x size; four dimensions stay.
Value by_heads(const Node& node, const Value& x, std::int64_t heads, const char* what) {
    if (x.rank() == 4) return x;
    if (x.rank() != 3) node.fail(fmt::format("{} is {}; 3 or 4 dimensions are expected", what, to_string(x.shape)));
    if (heads < 1 || x.shape[2] % heads != 0) node.fail(fmt::format("{} is {}, which {} heads do not divide", what, to_string(x.shape), heads));
    const std::int64_t sequence = x.shape[1], size = x.shape[2] / heads;
    const Shape shape{x.shape[0], heads, sequence, size};
    return x.gather(index_of(shape, [&](const std::vector<std::int64_t>& at) { return ((at[0] * sequence + at[2]) * heads + at[1]) * size + at[3]; }), shape);
}

/// `past` and then `next` along the sequence.
Value appended(const Node& node, const Value& past, const Value& next, const char* what) {
    Shape shape = next.shape;
    if (past.rank() == 4) shape[2] = past.shape[2];
    if (past.shape != shape || past.dtype != next.dtype) node.fail(fmt::format("{} is {}; it does not fit {}", what, to_string(past.shape), to_string(next.shape)));
    shape[2] += next.shape[2];
    Value y(next.dtype, shape);
    if (!past.err.empty() || !next.err.empty()) y.err.resize(y.f.size());
    const std::int64_t size = shape[3], before = past.shape[2] * size, after = next.shape[2] * size;
    for (std::int64_t i = 0; i < y.count(); ++i) {
        const std::int64_t plane = i / (before + after), k = i % (before + after), from = k < before ? plane * before + k : plane * after + k - before;
        const Value& source = k < before ? past : next;
        y.f[static_cast<std::size_t>(i)] = source.at(from);
        if (!y.err.empty()) y.err[static_cast<std::size_t>(i)] = source.error(from);
    }
    return y;
}

/// Sizes of one evaluation, after heads are split and the past is joined.
struct Sizes {
    std::int64_t batch, heads, shared_heads, queries, keys, past;
    Shape scores() const { return {batch, heads, queries, keys}; }
};

/// What is added to each score: the mask's element, or -inf where something forbids the key. Has no errors where the mask has none.
Value bias_of(const Node& node, const Sizes& s) {
    const double forbidden = -HUGE_VAL;
    Value bias(DType::f32, s.scores());
    if (node.has(3)) {
        const Value& mask = node.in(3);
        const bool boolean = mask.dtype == DType::boolean;
        if (!boolean && !mask.floating()) node.fail(fmt::format("attn_mask is {}; bool or float is expected", name_of(mask.dtype)));
        if (mask.rank() < 1 || mask.rank() > 4) node.fail(fmt::format("attn_mask is {}; 1 to 4 dimensions are expected", to_string(mask.shape)));
        // A mask shorter than the keys forbids the rest; one of length 1 repeats.
        const std::int64_t own = mask.shape.back();
        Shape wide = mask.shape;
        if (own != 1 && own < s.keys) wide.back() = s.keys;
        try {
            if (broadcast(wide, s.scores()) != s.scores()) throw Error(ErrorKind::bad_input, "it is larger");
        } catch (const Error&) {
            node.fail(fmt::format("attn_mask is {}; the scores are {}", to_string(mask.shape), to_string(s.scores())));
        }
        const auto index = broadcast_index(wide, s.scores());
        if (!mask.err.empty()) bias.err.resize(bias.f.size());
        for (std::size_t i = 0; i < index.size(); ++i) {
            const std::int64_t row = index[i] / wide.back(), k = index[i] % wide.back();
            const std::int64_t at = row * own + k;
            bias.f[i] = k >= own ? forbidden : !boolean ? mask.at(at) : mask.at(at) != 0 ? 0 : forbidden;
            if (!bias.err.empty() && std::isfinite(bias.f[i])) bias.err[i] = mask.error(at);
        }
    }
    const bool causal = node.integer("is_causal", 0) != 0, padded = node.version() >= 24 && node.has(6);
    const std::int64_t left = node.version() >= 25 ? node.integer("left_window_size", -1) : -1;
    const std::int64_t right = node.version() >= 25 ? node.integer("right_window_size", -1) : -1;
    if (left < -1 || right < -1) node.fail(fmt::format("windows of {} and {}; -1 (none) or more is expected", left, right));
    std::vector<std::int64_t> length(static_cast<std::size_t>(s.batch), s.keys);
    if (padded) {
        length = node.integers(6);
        if (node.has(4)) node.fail("nonpad_kv_seqlen and past_key are both given; a cache is kept inside or outside of the node");
        if (node.in(6).shape != Shape{s.batch}) node.fail(fmt::format("nonpad_kv_seqlen is {}; one for each of {} batches is expected", to_string(node.in(6).shape), s.batch));
        for (const std::int64_t n : length)
            if (n < 0 || n > s.keys) node.fail(fmt::format("nonpad_kv_seqlen holds {} of {} keys", n, s.keys));
    }
    for (std::int64_t i = 0; i < bias.count(); ++i) {
        const std::int64_t key = i % s.keys, query = i / s.keys % s.queries, valid = length[static_cast<std::size_t>(i / (s.keys * s.queries * s.heads))];
        // Keys that precede the block of queries: the diagonal ends at the bottom right.
        const std::int64_t ahead = key - query - (padded ? valid - s.queries : s.past);
        if (key < valid && !(causal && ahead > 0) && !(left >= 0 && -ahead > left) && !(right >= 0 && ahead > right)) continue;
        bias.f[static_cast<std::size_t>(i)] = forbidden;
        if (!bias.err.empty()) bias.err[static_cast<std::size_t>(i)] = 0;
    }
    return bias;
}

void put(Value& y, std::int64_t i, Bounded b) {
    y.f[static_cast<std::size_t>(i)] = b.v;
    // What is not finite is compared by its class.
    if (!y.err.empty()) y.err[static_cast<std::size_t>(i)] = std::isfinite(b.v) ? b.e : 0.0;
}

/// softmax along the keys; a query that may attend to nothing gives zeros, whatever its scores.
Value probabilities(const Node& node, const Value& scores, const Value& bias, std::int64_t keys) {
    Value y(DType::f32, scores.shape);
    if (node.bounds()) y.err.resize(y.f.size());
    for (std::int64_t first = 0; first < scores.count(); first += keys) {
        bool open = false;
        for (std::int64_t k = 0; k < keys; ++k) open = open || bias.at(first + k) != -HUGE_VAL;
        if (open) normalise(node.numerics(), scores, y, keys, [=](std::int64_t k) { return first + k; });
    }
    return y;
}

/// softmax_precision below fp32 would round where the chip does not; the types of at least fp32 ask for no more than it does.
void check_softmax_precision(const Node& node) {
    const std::int64_t type = node.integer("softmax_precision", 1);
    if (type != 1 && type != 11) node.fail(fmt::format("softmax_precision={} is not supported; use 1 (float) or leave it out", type));
}

}  // namespace

/// Y = softmax(softcap(scale Q K^T) + bias) V by head; query heads share the heads of keys in groups. The chip scales scores, not
/// operands: a product that rounds its operands (bf16) rounds them as they come.
Outputs attention(const Node& node) {
    const Value &given_q = node.real(0), &given_k = node.real(1), &given_v = node.real(2);
    const bool packed = given_q.rank() == 3;
    if (given_k.rank() != given_q.rank() || given_v.rank() != given_q.rank()) node.fail("Q, K and V differ in their number of dimensions");
    const std::int64_t kv_heads = node.integer("kv_num_heads", 0);
    const Value q = by_heads(node, given_q, node.integer("q_num_heads", 0), "Q");
    Value k = by_heads(node, given_k, kv_heads, "K"), v = by_heads(node, given_v, kv_heads, "V");
    if (node.has(4) != node.has(5)) node.fail("past_key and past_value must be given together");
    if (node.has(4)) {
        k = appended(node, node.real(4), k, "past_key");
        v = appended(node, node.real(5), v, "past_value");
    }
    const Sizes s{q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], node.has(4) ? node.in(4).shape[2] : 0};
    const std::int64_t size = q.shape[3], v_size = v.shape[3];
    if (k.shape != Shape{s.batch, s.shared_heads, s.keys, size} || v.shape != Shape{s.batch, s.shared_heads, s.keys, v_size} || s.shared_heads < 1 ||
        s.heads % s.shared_heads != 0)
        node.fail(fmt::format("queries {}, keys {} and values {} do not fit", to_string(q.shape), to_string(k.shape), to_string(v.shape)));
    check_softmax_precision(node);
    const double scale = node.attribute("scale") ? node.real("scale", 1.0f) : 1 / std::sqrt(static_cast<double>(size));
    const double softcap = node.real("softcap", 0.0f);
    const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) node.fail(fmt::format("qk_matmul_output_mode={} is not known; use 0 to 3", mode));

    // The heads of a group are further rows of one product.
    const std::int64_t rows = s.heads / s.shared_heads * s.queries;
    const Shape turned{s.batch, s.shared_heads, size, s.keys};
    const Value kt = k.gather(index_of(turned, [&](const std::vector<std::int64_t>& at) { return ((at[0] * s.shared_heads + at[1]) * s.keys + at[3]) * size + at[2]; }), turned);
    Value scores = matrix_product(node, q.reshaped({s.batch, s.shared_heads, rows, size}), kt, node.numerics()).reshaped(s.scores());
    const Value bias = bias_of(node, s);
    const Functions f(node.numerics());
    Value shown;
    const auto each = [&](auto step) {
        for (std::int64_t i = 0; i < scores.count(); ++i) put(scores, i, step(Bounded{scores.at(i), scores.error(i)}, i));
    };
    // The factor is rounded to fp32 once, the product once.
    each([&](Bounded b, std::int64_t) { return f.mul(b, {f.numerics().round(scale), rounding(scale)}); });
    if (mode == 0) shown = scores;
    if (softcap != 0) each([&](Bounded b, std::int64_t) { return f.mul({softcap, 0}, f.tanh(f.div(b, {softcap, 0}))); });
    if (mode == 1) shown = scores;
    each([&](Bounded b, std::int64_t i) { return bias.at(i) == 0 && bias.error(i) == 0 ? b : f.add(b, {bias.at(i), bias.error(i)}); });
    if (mode == 2) shown = scores;
    const Value p = probabilities(node, scores, bias, s.keys);
    if (mode == 3) shown = p;
    Value y = matrix_product(node, p.reshaped({s.batch, s.shared_heads, rows, s.keys}), v, node.numerics()).reshaped({s.batch, s.heads, s.queries, v_size});
    if (packed) {
        const Shape shape{s.batch, s.queries, s.heads * v_size};
        y = y.gather(index_of(shape, [&](const std::vector<std::int64_t>& at) {
            return ((at[0] * s.heads + at[2] / v_size) * s.queries + at[1]) * v_size + at[2] % v_size;
        }), shape);
    }
    y.dtype = shown.dtype = given_q.dtype;
    return {std::move(y), std::move(k), std::move(v), std::move(shown)};
}

}  // namespace assay::golden::ops
