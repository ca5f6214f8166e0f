// Attention-23/24 and RotaryEmbedding-23.
#include <fmt/core.h>

#include <cmath>

#include "workloads/host/elements.hpp"
#include "workloads/host/matrix.hpp"

namespace assay::workloads::hostops {
namespace {

using I64 = std::int64_t;

/// [batch, sequence, heads * size] to [batch, heads, sequence, size]; four dimensions stay.
Tensor by_heads(const Call& c, std::size_t i, I64 heads) {
    const Tensor& x = c.in(i);
    if (x.shape.size() == 4) return x;
    if (x.shape.size() != 3) c.bad_shape(i, "three or four dimensions are expected; repair the model");
    if (heads < 1 || x.shape[2] % heads) c.bad_shape(i, fmt::format("it does not split into {} heads; repair the model", heads));
    const std::size_t perm[] = {0, 2, 1, 3};
    return permuted(c, reshaped(x, {x.shape[0], x.shape[1], heads, x.shape[2] / heads}), perm);
}

Tensor appended(const Call& c, const Tensor& past, const Tensor& next, std::size_t input) {
    Shape expected = next.shape;
    if (past.shape.size() != 4) c.bad_shape(input, "four dimensions are expected; repair the model");
    expected[2] = past.shape[2];
    if (past.shape != expected || past.dtype != next.dtype) c.bad_shape(input, fmt::format("it does not fit {}; repair the model", to_string(next.shape)));
    Shape shape = next.shape;
    shape[2] += past.shape[2];
    Tensor out = c.make(next.dtype, shape);
    for (I64 i = 0; i < shape[0] * shape[1]; ++i) {
        copy_elements(past, i * past.shape[2] * shape[3], out, i * shape[2] * shape[3], past.shape[2] * shape[3]);
        copy_elements(next, i * next.shape[2] * shape[3], out, (i * shape[2] + past.shape[2]) * shape[3], next.shape[2] * shape[3]);
    }
    return out;
}

/// softmax(softcap(scale Q K^T) + bias) V by batch and head; query heads share key heads in groups. Causal masking is aligned at the
/// bottom right: query i sees key j <= i + offset, offset being the keys that precede the block.
Results attention(const Call& c) {
    const Tensor q = by_heads(c, 0, c.integer("q_num_heads", 0));
    const I64 kv_heads = c.integer("kv_num_heads", 0);
    Tensor k = by_heads(c, 1, kv_heads), v = by_heads(c, 2, kv_heads);
    if (c.has(4) != c.has(5)) c.fail("past_key and past_value must be given together; repair the model");
    const I64 past = c.has(4) && c.in(4).shape.size() == 4 ? c.in(4).shape[2] : 0;
    if (c.has(4)) k = appended(c, c.in(4), k, 4);
    if (c.has(5)) v = appended(c, c.in(5), v, 5);
    const I64 batch = q.shape[0], heads = q.shape[1], queries = q.shape[2], size = q.shape[3], keys = k.shape[2], v_size = v.shape[3];
    if (k.shape[0] != batch || v.shape[0] != batch || k.shape[3] != size || v.shape[2] != keys || k.shape[1] != v.shape[1] || k.shape[1] < 1 || heads % k.shape[1])
        c.fail(fmt::format("query {}, key {} and value {} do not fit; repair the model", to_string(q.shape), to_string(k.shape), to_string(v.shape)));
    const I64 repeat = heads / k.shape[1];
    const double scale = c.attribute("scale") ? static_cast<double>(c.real("scale", 1.0f)) : 1 / std::sqrt(static_cast<double>(size));
    const double softcap = c.real("softcap", 0.0f);
    const bool causal = c.integer("is_causal", 0) != 0;
    const I64 mode = c.integer("qk_matmul_output_mode", 0);
    const Shape scores_shape{batch, heads, queries, keys};
    c.make(DType::u8, {std::min(element_count(scores_shape), kMaxElements + 1)});
    c.work(static_cast<double>(element_count(scores_shape)) * static_cast<double>(size + v_size));
    std::vector<double> bias(static_cast<std::size_t>(element_count(scores_shape)), 0.0);
    if (c.has(3)) {
        Tensor mask = c.in(3);
        if (mask.shape.empty() || mask.shape.size() > 4 || mask.shape.back() > keys) c.bad_shape(3, "it does not fit the scores; repair the model");
        const bool boolean = mask.dtype == DType::boolean;
        const I64 own = mask.shape.back();
        const auto given = reals_of(mask);
        Shape wide = mask.shape;
        if (own != 1 || keys == 1) wide.back() = keys;  // a mask shorter than the keys hides the rest
        Tensor padded(DType::f64, wide);
        const auto to = padded.as<double>();
        for (I64 r = 0; r < static_cast<I64>(to.size()) / std::max<I64>(wide.back(), 1); ++r)
            for (I64 j = 0; j < wide.back(); ++j) {
                const double e = j < own ? given[static_cast<std::size_t>(r * own + j)] : boolean ? 0 : -HUGE_VAL;
                to[static_cast<std::size_t>(r * wide.back() + j)] = boolean ? (e != 0 ? 0 : -HUGE_VAL) : e;
            }
        load(spread(c, padded, scores_shape), 0, std::span<double>(bias));
    }
    const auto lengths = c.has(6) ? c.list(6) : std::vector<I64>{};
    if (c.has(6) && static_cast<I64>(lengths.size()) != batch) c.bad_shape(6, "a length for each batch is expected; repair the model");
    const I64 left = c.integer("left_window_size", -1), right = c.integer("right_window_size", -1);
    const auto qv = reals_of(q), kv = reals_of(k), vv = reals_of(v);
    std::vector<double> y(static_cast<std::size_t>(batch * heads * queries * v_size)), shown(bias.size()), turned(static_cast<std::size_t>(size * keys)),
        scores(static_cast<std::size_t>(queries * keys));
    for (I64 b = 0; b < batch; ++b)
        for (I64 h = 0; h < heads; ++h) {
            const I64 head = b * heads + h, shared = b * k.shape[1] + h / repeat;
            const double* key = kv.data() + shared * keys * size;
            for (I64 j = 0; j < keys; ++j)
                for (I64 e = 0; e < size; ++e) turned[static_cast<std::size_t>(e * keys + j)] = key[j * size + e];
            product(qv.data() + head * queries * size, turned.data(), scores.data(), queries, size, keys);
            const I64 offset = c.has(6) && !c.has(4) ? lengths[static_cast<std::size_t>(b)] - queries : past;
            for (I64 i = 0; i < queries; ++i) {
                double* row = scores.data() + i * keys;
                double* to_show = shown.data() + (head * queries + i) * keys;
                double top = -HUGE_VAL, sum = 0, top_bias = -HUGE_VAL;
                for (I64 j = 0; j < keys; ++j) {
                    double e = row[j] * scale;
                    if (mode == 0) to_show[j] = e;
                    if (softcap > 0) e = softcap * std::tanh(e / softcap);
                    if (mode == 1) to_show[j] = e;
                    double add = bias[static_cast<std::size_t>((head * queries + i) * keys + j)];
                    const I64 distance = i + offset - j;
                    if ((causal && distance < 0) || (left >= 0 && distance > left) || (right >= 0 && -distance > right)) add = -HUGE_VAL;
                    if (!lengths.empty() && j >= lengths[static_cast<std::size_t>(b)]) add = -HUGE_VAL;
                    row[j] = e + add;
                    if (mode == 2) to_show[j] = row[j];
                    top = std::max(top, row[j]);
                    top_bias = std::max(top_bias, add);
                }
                for (I64 j = 0; j < keys; ++j) sum += row[j] = top == -HUGE_VAL ? 0 : std::exp(row[j] - top);
                // A query that may attend to nothing gives zeros, not the NaN of 0 / 0.
                for (I64 j = 0; j < keys; ++j) row[j] = sum == 0 || top_bias == -HUGE_VAL ? 0 : row[j] / sum;
                if (mode == 3) std::copy_n(row, keys, to_show);
            }
            product(scores.data(), vv.data() + shared * keys * v_size, y.data() + head * queries * v_size, queries, keys, v_size);
        }
    Tensor result = tensor_of(c, c.in(0).dtype, {batch, heads, queries, v_size}, std::span<const double>(y));
    if (c.in(0).shape.size() == 3) {
        const std::size_t perm[] = {0, 2, 1, 3};
        result = reshaped(permuted(c, result, perm), {batch, queries, heads * v_size});
    }
    Results out = one(std::move(result));
    out.push_back(std::move(k));
    out.push_back(std::move(v));
    out.push_back(tensor_of(c, c.in(0).dtype, scores_shape, std::span<const double>(shown)));
    return out;
}

/// RotaryEmbedding-23: pairs (halves, or neighbours with `interleaved`) of the first rotary_embedding_dim elements of each head turn by
/// the angle whose cosine and sine the caches hold, looked up by position_ids when given.
Results rotary_embedding(const Call& c) {
    const Tensor& given = c.in(0);
    if (given.shape.size() != 3 && given.shape.size() != 4) c.bad_shape(0, "three or four dimensions are expected; repair the model");
    const bool flat = given.shape.size() == 3;
    const I64 num_heads = c.integer("num_heads", 0);
    if (flat && (num_heads < 1 || given.shape[2] % num_heads)) c.bad_shape(0, fmt::format("it does not split into {} heads; repair the model", num_heads));
    const I64 batch = given.shape[0], sequence = flat ? given.shape[1] : given.shape[2], heads = flat ? num_heads : given.shape[1],
              size = flat ? given.shape[2] / num_heads : given.shape[3];
    const I64 attribute = c.integer("rotary_embedding_dim", 0), dims = attribute ? attribute : size, half = dims / 2;
    const bool interleaved = c.integer("interleaved", 0) != 0;
    if (dims < 0 || dims > size || dims % 2) c.fail(fmt::format("rotary_embedding_dim {} of {}; repair the model", dims, size));
    for (std::size_t i : {1u, 2u})
        if (c.in(i).shape.size() != (c.has(3) ? 2u : 3u) || c.in(i).shape.back() != half || (!c.has(3) && (c.in(i).shape[0] != batch || c.in(i).shape[1] != sequence)))
            c.bad_shape(i, fmt::format("the cache does not fit {} positions of {}; repair the model", sequence, half));
    if (c.in(1).shape != c.in(2).shape) c.bad_shape(2, "the cosine cache has another shape; repair the model");
    if (c.has(3) && c.in(3).shape != Shape{batch, sequence}) c.bad_shape(3, "a position for each element is expected; repair the model");
    auto v = reals_of(given);
    const auto cosine = reals_of(c.in(1)), sine = reals_of(c.in(2));
    for (I64 b = 0; b < batch; ++b)
        for (I64 s = 0; s < sequence; ++s) {
            I64 row = b * sequence + s;
            if (c.has(3)) {
                row = c.in(3).integer(row);
                if (row < 0 || row >= c.in(1).shape[0]) c.fail(fmt::format("position {} is outside the cache of {}", row, c.in(1).shape[0]));
            }
            for (I64 h = 0; h < heads; ++h) {
                double* x = v.data() + (flat ? ((b * sequence + s) * heads + h) * size : ((b * heads + h) * sequence + s) * size);
                for (I64 i = 0; i < half; ++i) {
                    double &p = x[interleaved ? 2 * i : i], &r = x[interleaved ? 2 * i + 1 : half + i];
                    const double cs = cosine[static_cast<std::size_t>(row * half + i)], sn = sine[static_cast<std::size_t>(row * half + i)];
                    const double real = cs * p - sn * r, imaginary = sn * p + cs * r;
                    p = real;
                    r = imaginary;
                }
            }
        }
    return one(tensor_of(c, given.dtype, given.shape, std::span<const double>(v)));
}

}  // namespace

std::span<const Operator> attention_operators() {
    static constexpr Operator table[] = {{"Attention", attention, 23}, {"RotaryEmbedding", rotary_embedding, 23}};
    return table;
}

}  // namespace assay::workloads::hostops
