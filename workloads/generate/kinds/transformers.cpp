// Encoders and GPT-2.
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "support/error.hpp"
#include "workloads/generate/kinds/attention.hpp"
#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

void check_heads(const Dimensions& d) {
    if (d.hidden % d.heads != 0)
        throw Error(ErrorKind::usage, fmt::format("workload make: --hidden {} is not a multiple of --heads {}", d.hidden, d.heads));
}

Value self_attention(Net& net, const Value& x, std::int64_t heads, const Value& mask, double out_gain) {
    const auto inside = net.scope("attention");
    const std::int64_t width = x.dim(2);
    const Value q = split_heads(net, net.linear("query", x, width, kQueryGain), heads);
    const Value k = split_heads(net, net.linear("key", x, width, kQueryGain), heads);
    const Value v = split_heads(net, net.linear("value", x, width), heads);
    return net.linear("output", merge_heads(net, attend(net, q, k, v, mask)), width, out_gain);
}

Value ids(Net& net, const std::string& name, const Shape& shape, std::int64_t count) {
    return net.input(name, shape, DType::i64, Fill::integers(0, count - 1));
}

/// Positions first … of each row, as an input: exporters leave it to the caller.
Value positions(Net& net, std::int64_t batch, std::int64_t first, std::int64_t count) {
    Ints values;
    for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
    return net.input("position_ids", {batch, count}, DType::i64, Fill::values(values));
}

}  // namespace

/// Devlin et al. 2019: post-norm encoder with pooler; the last eighth of every row but the first is padding.
void build_bert(Net& net, const Dimensions& d) {
    check_heads(d);
    const Shape tokens{d.batch, d.seq};
    Ints attended(static_cast<std::size_t>(d.batch * d.seq), 1);
    for (std::int64_t b = 1; b < d.batch; ++b)
        for (std::int64_t s = d.seq - d.seq / 8; s < d.seq; ++s) attended[static_cast<std::size_t>(b * d.seq + s)] = 0;
    const Value input_ids = ids(net, "input_ids", tokens, d.vocab);
    const Value attention_mask = net.input("attention_mask", tokens, DType::i64, Fill::values(attended));
    const Value types = ids(net, "token_type_ids", tokens, 2);
    Value x, mask;
    {
        const auto inside = net.scope("embeddings");
        const std::int64_t most = std::max<std::int64_t>(512, d.seq);
        const Value where = net.slice(net.weight("position.weight", {most, d.hidden}, Fill::normal(0, 0.02)).with(0, 0.0004), 0, 0, d.seq);
        x = net.add(net.embedding("word", input_ids, d.vocab, d.hidden, 0.05), net.embedding("token_type", types, 2, d.hidden, 0.02));
        x = net.layer_norm("norm", net.add(x, where), 1e-12);
    }
    {
        const auto inside = net.scope("mask");
        const Value wide = net.cast(net.unsqueeze(net.unsqueeze(attention_mask, 1), 2), net.float_type());
        mask = net.mul(net.sub(net.scalar(1), wide), net.scalar(masked_score(net.float_type()))).with(0, 0);
    }
    for (std::int64_t i = 0; i < d.layers; ++i) {
        const auto inside = net.scope(fmt::format("encoder.{}", i));
        x = net.layer_norm("attention_norm", net.add(self_attention(net, x, d.heads, mask, 0.7), x), 1e-12);
        const Value inner = net.gelu(net.linear("intermediate", x, d.ffn));
        x = net.layer_norm("output_norm", net.add(net.linear("output", inner, d.hidden, 0.7), x), 1e-12);
    }
    const Value first = net.gather(x, net.integer_scalar(0), 1);
    const Value pooled = net.tanh(net.linear("pooler", first, d.hidden));
    net.output(x, "last_hidden_state");
    net.output(pooled, "pooler_output");
}

/// Radford et al. 2019: pre-norm decoder, fused query-key-value, tied embeddings. With past > 0 a step with a cache in and out.
void build_gpt2(Net& net, const Dimensions& d) {
    check_heads(d);
    const Value input_ids = ids(net, "input_ids", {d.batch, d.seq}, d.vocab);
    const std::int64_t most = std::max<std::int64_t>(1024, d.past + d.seq);
    const Value words = net.weight("wte.weight", {d.vocab, d.hidden}, Fill::normal(0, 0.1)).with(0, 0.01);
    Value x = net.add(net.gather(words, input_ids, 0), net.embedding("wpe", positions(net, d.batch, d.past, d.seq), most, d.hidden, 0.05));
    const Value mask = d.seq > 1 ? causal_mask(net, d.seq, d.past) : Value{};
    const double branch = 0.5 / std::sqrt(2.0 * static_cast<double>(d.layers));
    for (std::int64_t i = 0; i < d.layers; ++i) {
        Value k, v, attended;
        {
            const auto inside = net.scope(fmt::format("h.{}.attn", i));
            const Value qkv = net.linear("c_attn", net.layer_norm("ln", x), 3 * d.hidden, 1.3);
            const Shape part{d.batch, d.seq, d.hidden};
            const auto parts = net.nodes("Split", "split", {qkv, net.integers({d.hidden, d.hidden, d.hidden})}, {part, part, part}, {qkv.type, qkv.type, qkv.type},
                                         {{"axis", std::int64_t{2}}});
            const Value q = split_heads(net, parts[0], d.heads);
            k = split_heads(net, parts[1], d.heads);
            v = split_heads(net, parts[2], d.heads);
            attended = q;
        }
        if (d.past > 0) {
            k = cached(net, fmt::format("past_k_{}", i), fmt::format("present_k_{}", i), k, d.past);
            v = cached(net, fmt::format("past_v_{}", i), fmt::format("present_v_{}", i), v, d.past);
        }
        const auto inside = net.scope(fmt::format("h.{}", i));
        attended = merge_heads(net, attend(net, attended, k, v, mask));
        x = net.add(net.linear("c_proj", attended, d.hidden, branch), x);
        const Value inner = net.gelu_tanh(net.linear("mlp.c_fc", net.layer_norm("ln_2", x), d.ffn));
        x = net.add(net.linear("mlp.c_proj", inner, d.hidden, branch), x);
    }
    x = net.layer_norm("ln_f", x);
    net.output(net.matmul(x, net.transpose(words, {1, 0})), "logits");
}

/// Dosovitskiy et al. 2021: patches of 16, a class token, pre-norm encoder.
void build_vit(Net& net, const Dimensions& d) {
    check_heads(d);
    if (d.image % d.kernel != 0)
        throw Error(ErrorKind::usage, fmt::format("workload make: --image {} is not a multiple of the patch, --kernel {}", d.image, d.kernel));
    Value x = net.conv("patch", image_input(net, d), {.out = d.hidden, .kernel = d.kernel, .stride = d.kernel, .gain = 0.5});
    const std::int64_t patches = x.dim(2) * x.dim(3);
    x = net.transpose(net.reshape(x, {d.batch, d.hidden, patches}), {0, 2, 1});
    const Value token = net.weight("class_token", {1, 1, d.hidden}, Fill::normal(0, 0.5)).with(0, 0.25);
    x = net.concat({d.batch == 1 ? token : net.expand(token, {d.batch, 1, d.hidden}), x}, 1);
    x = net.add(x, net.weight("position", {1, patches + 1, d.hidden}, Fill::normal(0, 0.2)).with(0, 0.04));
    for (std::int64_t i = 0; i < d.layers; ++i) {
        const auto inside = net.scope(fmt::format("encoder.{}", i));
        x = net.add(self_attention(net, net.layer_norm("norm1", x, 1e-6), d.heads, {}, 0.3), x);
        const Value inner = net.gelu(net.linear("mlp.fc1", net.layer_norm("norm2", x, 1e-6), d.ffn));
        x = net.add(net.linear("mlp.fc2", inner, d.hidden, 0.3), x);
    }
    const Value first = net.gather(net.layer_norm("norm", x, 1e-6), net.integer_scalar(0), 1);
    net.output(net.linear("head", first, d.classes, 2), "logits");
}

/// One attention of given queries, keys and values: causal, grouped when kv_heads < heads.
void build_attention(Net& net, const Dimensions& d) {
    if (d.heads % d.kv_heads != 0)
        throw Error(ErrorKind::usage, fmt::format("workload make: --heads {} is not a multiple of --kv-heads {}", d.heads, d.kv_heads));
    const auto make = [&](const char* name, std::int64_t heads, std::int64_t length, double deviation) {
        return net.input(name, {d.batch, heads, length, d.head_dim}, net.float_type(), Fill::normal(0, deviation)).with(0, deviation * deviation);
    };
    const Value q = make("query", d.heads, d.seq, kQueryGain), k = make("key", d.kv_heads, d.past + d.seq, kQueryGain), v = make("value", d.kv_heads, d.past + d.seq, 1);
    const Value mask = d.seq > 1 ? causal_mask(net, d.seq, d.past) : Value{};
    const std::int64_t groups = d.heads / d.kv_heads;
    net.output(attend(net, q, repeat_heads(net, k, groups), repeat_heads(net, v, groups), mask), "attended");
}

}  // namespace assay::workloads::generate
