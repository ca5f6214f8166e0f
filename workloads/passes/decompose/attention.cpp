// Attention and RotaryEmbedding as products, softmax and elementwise nodes.
//
//     Attention (23 to 25)   s = scale (Q K^T); s = cap tanh(s / cap); p = softmax(s + bias); Y = p V          by batch and head of keys:
//                            the query heads that share a head of keys are further rows of one product
//     RotaryEmbedding (23)   re = c u - s v, im = s u + c v          of the halves, or neighbours, u and v of each head
//
// bias is a constant for what positions alone forbid (causal, windows), a mask as given, and a comparison with the keys' lengths. A query that may
// attend to nothing gives zeros by the definition, where softmax of -inf alone is NaN: such rows are selected away, if there can be any.
#include <cmath>
#include <limits>

#include "workloads/passes/decompose/families.hpp"

namespace assay::workloads {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct Sizes {
    std::int64_t batch, heads, shared_heads, queries, keys, size, v_size, past;
    std::int64_t rows() const { return heads / shared_heads * queries; }
};

/// [batch, sequence, heads * size] as [batch, heads, sequence, size].
ValueId by_heads(Rewriter& r, std::size_t i, std::int64_t heads) {
    const Shape shape = r.in(i).shape;
    if (shape.size() == 4) return r.original.inputs[i];
    if (heads < 1 || shape[2] % heads != 0) throw MalformedNode(r.id, "the heads do not divide an input's last dimension; repair the model");
    return r.transpose(r.reshape(r.original.inputs[i], {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Shape shape_by_heads(const Rewriter& r, std::size_t i, std::int64_t heads) {
    const Shape& shape = r.in(i).shape;
    return shape.size() == 4 ? shape : Shape{shape[0], heads, shape[1], shape[2] / heads};
}

/// What is added to the scores, and whether it may forbid a query every key.
struct Bias {
    ValueId value = kNoValue;
    bool may_close = false;
};

struct Positions {
    bool causal;
    std::int64_t left, right;
    /// `ahead`: how far a key lies past the query.
    bool forbid(std::int64_t ahead) const { return (causal && ahead > 0) || (left >= 0 && -ahead > left) || (right >= 0 && ahead > right); }
};

/// queries x keys of 0 and -inf.
Bias by_position(Rewriter& r, const Sizes& s, const Positions& positions) {
    std::vector<double> values;
    bool forbids = false, closes = false;
    for (std::int64_t i = 0; i < s.queries; ++i) {
        bool open = false;
        for (std::int64_t j = 0; j < s.keys; ++j) {
            const bool forbidden = positions.forbid(j - i - s.past);
            values.push_back(forbidden ? -HUGE_VAL : 0.0);
            forbids = forbids || forbidden;
            open = open || !forbidden;
        }
        closes = closes || !open;
    }
    if (!forbids) return {};
    return {r.constant(float_tensor({s.queries, s.keys}, values)), closes};
}

/// attn_mask as an fp32 addend; one that is shorter than the keys forbids the rest.
Bias by_mask(Rewriter& r, const Sizes& s) {
    const Shape shape = r.in(3).shape;
    const DType type = r.in(3).dtype;
    if (shape.empty() || shape.size() > 4 || (type != DType::boolean && type != DType::f32)) throw NotTakenApart{};
    ValueId mask = r.original.inputs[3];
    if (type == DType::boolean) mask = r.add("Where", {mask, r.scalar(0), r.scalar(kForbidden)});
    if (shape.back() != 1 && shape.back() < s.keys) {
        std::vector<std::int64_t> pads(2 * shape.size(), 0);
        pads.back() = s.keys - shape.back();
        mask = r.add("Pad", {mask, r.integers(pads), r.scalar(kForbidden)});
    }
    return {mask, true};
}

/// Keys past nonpad_kv_seqlen, and what positions forbid when the lengths say where the queries stand: batch x 1 x queries x keys.
Bias by_length(Rewriter& r, const Sizes& s, const Positions& positions) {
    // Lengths are small integers: exact in fp32.
    const ValueId length = r.reshape(r.add("Cast", {r.original.inputs[6]}, {{"to", std::int64_t{1}}}), {s.batch, 1, 1, 1});
    const auto where_less = [&](ValueId bias, auto bound, bool length_is_less) {
        std::vector<double> bounds;
        for (std::int64_t i = 0; i < s.queries; ++i)
            for (std::int64_t j = 0; j < s.keys; ++j) bounds.push_back(static_cast<double>(bound(i, j)));
        const ValueId limit = r.constant(float_tensor({s.queries, s.keys}, bounds));
        const ValueId forbidden = length_is_less ? r.add("Less", {length, limit}) : r.add("Less", {limit, length});
        return r.add("Where", {forbidden, r.scalar(kForbidden), bias == kNoValue ? r.scalar(0) : bias});
    };
    // A query stands at i + length - queries. Key j is past the end when length < j + 1; it is ahead of the query by j - i - length + queries.
    ValueId bias = where_less(kNoValue, [](auto, auto j) { return j + 1; }, true);
    if (positions.causal) bias = where_less(bias, [&](auto i, auto j) { return j - i + s.queries; }, true);
    if (positions.right >= 0) bias = where_less(bias, [&](auto i, auto j) { return j - i + s.queries - positions.right; }, true);
    if (positions.left >= 0) bias = where_less(bias, [&](auto i, auto j) { return j - i + s.queries + positions.left; }, false);
    return {bias, true};
}

Bias joined(Rewriter& r, const Bias& a, const Bias& b) {
    if (a.value == kNoValue) return b;
    if (b.value == kNoValue) return a;
    return {r.add("Add", {a.value, b.value}), true};
}

void attention(Rewriter& r) {
    const Node& n = r.original;
    for (const std::size_t i : {0u, 1u, 2u})
        if (r.in(i).dtype != DType::f32) throw NotTakenApart{};
    const std::int64_t precision = n.integer("softmax_precision", 1), kv_heads = n.integer("kv_num_heads", 0), q_heads = n.integer("q_num_heads", 0);
    if ((precision != 1 && precision != 11) || n.outputs[0] == kNoValue) throw NotTakenApart{};
    if (r.has(4) != r.has(5) || (r.has(4) && r.has(6))) throw MalformedNode(r.id, "past_key and past_value go together, and not with nonpad_kv_seqlen; repair the model");
    const bool packed = r.in(0).shape.size() == 3;
    ValueId q = by_heads(r, 0, q_heads), k = by_heads(r, 1, kv_heads), v = by_heads(r, 2, kv_heads);
    const Shape q_shape = shape_by_heads(r, 0, q_heads), k_shape = shape_by_heads(r, 1, kv_heads), v_shape = shape_by_heads(r, 2, kv_heads);
    const std::int64_t past = r.has(4) ? r.in(4).shape[2] : 0;
    const Sizes s{q_shape[0], q_shape[1], k_shape[1], q_shape[2], k_shape[2] + past, q_shape[3], v_shape[3], past};
    if (s.shared_heads < 1 || s.heads % s.shared_heads != 0) throw MalformedNode(r.id, "the heads of keys do not divide those of queries; repair the model");
    const Rewriter::Attributes along{{"axis", std::int64_t{2}}};
    if (r.has(4)) {
        k = r.add("Concat", {n.inputs[4], k}, along, r.output(1));
        v = r.add("Concat", {n.inputs[5], v}, along, r.output(2));
    } else {
        if (r.output(1) != kNoValue) r.add("Identity", {k}, {}, r.output(1));
        if (r.output(2) != kNoValue) r.add("Identity", {v}, {}, r.output(2));
    }
    const Shape all{s.batch, s.heads, s.queries, s.keys};
    const bool grouped = s.heads != s.shared_heads;
    const std::int64_t mode = n.integer("qk_matmul_output_mode", 0);
    const auto show = [&](std::int64_t stage, ValueId x) {
        if (mode == stage && r.output(3) != kNoValue) r.add("Identity", {x}, {}, r.output(3));
    };
    if (grouped) q = r.reshape(q, {s.batch, s.shared_heads, s.rows(), s.size});
    ValueId scores = r.add("MatMul", {q, r.transpose(k, {0, 1, 3, 2})});
    scores = r.add("Mul", {scores, r.scalar(n.has("scale") ? n.real("scale", 1.0f) : static_cast<float>(1 / std::sqrt(static_cast<double>(s.size))))});
    if (grouped) scores = r.reshape(scores, all);
    show(0, scores);
    if (const float cap = n.real("softcap", 0.0f); cap != 0) scores = r.add("Mul", {r.add("Tanh", {r.add("Div", {scores, r.scalar(cap)})}), r.scalar(cap)});
    show(1, scores);
    const Positions positions{n.integer("is_causal", 0) != 0, n.integer("left_window_size", -1), n.integer("right_window_size", -1)};
    Bias bias = r.has(6) ? by_length(r, s, positions) : by_position(r, s, positions);
    if (r.has(3)) bias = joined(r, by_mask(r, s), bias);
    if (bias.value != kNoValue) scores = r.add("Add", {scores, bias.value});
    show(2, scores);
    ValueId p = r.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
    // The greatest addend of a row is -inf, below every number, where all its keys are forbidden.
    ValueId closed = kNoValue;
    if (bias.may_close) {
        closed = r.add("Less", {r.reduce("ReduceMax", bias.value, {-1}), r.scalar(std::numeric_limits<float>::lowest())});
        p = r.add("Where", {closed, r.scalar(0), p});
    }
    show(3, p);
    if (grouped) p = r.reshape(p, {s.batch, s.shared_heads, s.rows(), s.keys});
    const bool last = !grouped && !packed;
    ValueId y = r.add("MatMul", {p, v}, {}, last ? n.outputs[0] : kNoValue);
    if (grouped) y = r.reshape(y, {s.batch, s.heads, s.queries, s.v_size}, packed ? kNoValue : n.outputs[0]);
    if (packed) r.reshape(r.transpose(y, {0, 2, 1, 3}), {s.batch, s.queries, s.heads * s.v_size}, n.outputs[0]);
}

void rotary(Rewriter& r) {
    const Node& n = r.original;
    const Shape shape = r.in(0).shape;
    const bool packed = shape.size() == 3;
    const std::int64_t heads = packed ? n.integer("num_heads", 0) : shape[1];
    if (r.in(0).dtype != DType::f32) throw NotTakenApart{};
    if (heads < 1 || (packed && shape[2] % heads != 0)) throw MalformedNode(r.id, "num_heads does not divide the last dimension; repair the model");
    const std::int64_t size = packed ? shape[2] / heads : shape[3], sequence = shape[packed ? 1 : 2];
    const std::int64_t turned = n.integer("rotary_embedding_dim", 0) == 0 ? size : n.integer("rotary_embedding_dim", 0), pairs = turned / 2;
    if (turned < 2 || turned > size || turned % 2 != 0) throw MalformedNode(r.id, "rotary_embedding_dim is no even part of a head; repair the model");
    const bool interleaved = n.integer("interleaved", 0) != 0;
    // Heads stay where they are: the angles broadcast over them.
    const Shape whole = packed ? Shape{shape[0], sequence, heads, size} : shape;
    const auto angles = [&](std::size_t i) {
        ValueId a = n.inputs[i];
        if (r.has(3)) a = r.add("Gather", {a, n.inputs[3]}, {{"axis", std::int64_t{0}}});
        Shape to = packed ? Shape{shape[0], sequence, 1, pairs} : Shape{shape[0], 1, sequence, pairs};
        if (interleaved) to.push_back(1);
        return r.reshape(a, to);
    };
    const ValueId c = angles(1), s = angles(2);
    ValueId x = packed ? r.reshape(n.inputs[0], whole) : n.inputs[0];
    ValueId rest = kNoValue;
    if (turned < size) {
        rest = r.slice(x, 3, turned, size);
        x = r.slice(x, 3, 0, turned);
    }
    Shape part = whole;
    part[3] = turned;
    Shape by_pairs = part;
    by_pairs[3] = pairs;
    by_pairs.push_back(2);
    if (interleaved) x = r.reshape(x, by_pairs);
    const std::int64_t axis = interleaved ? 4 : 3, half = interleaved ? 1 : pairs;
    const ValueId u = r.slice(x, axis, 0, half), v = r.slice(x, axis, half, 2 * half);
    const ValueId re = r.add("Sub", {r.add("Mul", {u, c}), r.add("Mul", {v, s})}), im = r.add("Add", {r.add("Mul", {u, s}), r.add("Mul", {v, c})});
    const bool joins = rest != kNoValue, reshapes = packed || interleaved;
    ValueId y = r.add("Concat", {re, im}, {{"axis", axis}}, joins || reshapes ? kNoValue : n.outputs[0]);
    if (joins) {
        if (interleaved) y = r.reshape(y, part);
        y = r.add("Concat", {y, rest}, {{"axis", std::int64_t{3}}}, packed ? kNoValue : n.outputs[0]);
        if (packed) r.reshape(y, shape, n.outputs[0]);
    } else if (reshapes) {
        r.reshape(y, shape, n.outputs[0]);
    }
}

}  // namespace

void take_apart_attention(Rewriter& r) {
    if (r.original.op == "Attention") return attention(r);
    rotary(r);
}

}  // namespace assay::workloads
