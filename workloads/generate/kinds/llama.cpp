// LLaMA-shaped decoders and mixtures of experts. Before opset 23 in the terms that exporters write (Pow, ReduceMean, Slice, Expand …),
// from 23 with RMSNormalization-23, RotaryEmbedding-23 and Attention-23.
#include <cmath>

#include <fmt/format.h>

#include "support/error.hpp"
#include "workloads/generate/kinds/attention.hpp"
#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

/// What all layers share: rotary tables at the positions of this call, and the mask.
struct Shared {
    Value cos, sin, positions;  ///< tables [B,1,S,D/2], or the caches and the position ids from opset 23
    Value mask;                 ///< no name: nothing is masked
};

Shared make_shared_values(Net& net, const Dimensions& d) {
    if (d.head_dim % 2 != 0) throw Error(ErrorKind::usage, fmt::format("workload make: --head-dim {} must be even (rotary halves)", d.head_dim));
    if (d.heads % d.kv_heads != 0)
        throw Error(ErrorKind::usage, fmt::format("workload make: --heads {} is not a multiple of --kv-heads {}", d.heads, d.kv_heads));
    const std::int64_t length = d.past + d.seq, half = d.head_dim / 2;
    std::vector<float> cosines, sines;
    for (std::int64_t p = 0; p < length; ++p)
        for (std::int64_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
            cosines.push_back(static_cast<float>(std::cos(angle)));
            sines.push_back(static_cast<float>(std::sin(angle)));
        }
    Ints at;
    for (std::int64_t b = 0; b < d.batch; ++b)
        for (std::int64_t s = 0; s < d.seq; ++s) at.push_back(d.past + s);
    Shared shared;
    shared.positions = net.input("position_ids", {d.batch, d.seq}, DType::i64, Fill::values(at));
    const auto inside = net.scope("rotary");
    shared.cos = net.table("cos_cache", {length, half}, net.float_type(), Fill::values(cosines, net.float_type())).with(0, 0.5);
    shared.sin = net.table("sin_cache", {length, half}, net.float_type(), Fill::values(sines, net.float_type())).with(0, 0.5);
    if (net.opset() < 23) {
        shared.cos = net.unsqueeze(net.gather(shared.cos, shared.positions, 0), 1);
        shared.sin = net.unsqueeze(net.gather(shared.sin, shared.positions, 0), 1);
    }
    if (d.seq > 1) shared.mask = causal_mask(net, d.seq, d.past);
    return shared;
}

/// Rotates the two halves of each head (Su et al. 2021, in the layout of LLaMA's exporters).
Value rotate(Net& net, const Value& x, const Shared& shared) {
    if (net.opset() >= 23) return net.node("RotaryEmbedding", "", {x, shared.cos, shared.sin, shared.positions}, x.shape);
    const std::int64_t width = x.dim(-1);
    const Value a = net.slice(x, 3, 0, width / 2), b = net.slice(x, 3, width / 2, width);
    return net.concat({net.sub(net.mul(a, shared.cos), net.mul(b, shared.sin)), net.add(net.mul(b, shared.cos), net.mul(a, shared.sin))}, 3).with(x.mean, x.variance);
}

/// Attention-23 with its cache as inputs and outputs 4, 5 and 1, 2.
Value attention_operator(Net& net, const Value& q, Value k, Value v, const Shared& shared, const Dimensions& d, const std::string& suffix) {
    const std::string name = fmt::format("attention{}", suffix);
    const Shape kv{d.batch, d.kv_heads, d.past + d.seq, d.head_dim};
    if (d.past == 0) {
        net.output(k, fmt::format("present_k{}", suffix));
        net.output(v, fmt::format("present_v{}", suffix));
        std::vector<Value> inputs{q, k, v};
        if (!shared.mask.name.empty()) inputs.push_back(shared.mask);
        net.count_macs(2 * static_cast<std::uint64_t>(element_count(q.shape)) * static_cast<std::uint64_t>(d.seq));
        return net.node("Attention", name, inputs, q.shape).with(0, 0.3);
    }
    const Shape past{d.batch, d.kv_heads, d.past, d.head_dim};
    const auto cache = [&](const char* which, const Value& x) {
        return net.input(which + suffix, past, x.type, Fill::normal(0, std::sqrt(x.second_moment())));
    };
    const Value past_k = cache("past_k", k), past_v = cache("past_v", v);
    net.count_macs(2 * static_cast<std::uint64_t>(element_count(q.shape)) * static_cast<std::uint64_t>(d.past + d.seq));
    const auto made = net.nodes("Attention", name, {q, k, v, shared.mask, past_k, past_v}, {q.shape, kv, kv}, {q.type, q.type, q.type}, {});
    net.output(made[1], fmt::format("present_k{}", suffix));
    net.output(made[2], fmt::format("present_v{}", suffix));
    return made[0].with(0, 0.3);
}

/// One decoder layer. `suffix` numbers the cache's inputs and outputs: past_k, or past_k_0 in a whole model.
Value decoder_layer(Net& net, const Value& x, const Shared& shared, const Dimensions& d, const std::string& layer, const std::string& suffix, double branch) {
    Value q, k, v;
    {
        const auto inside = net.scope(layer + ".attention");
        const Value normed = net.rms_norm("norm", x);
        q = rotate(net, split_heads(net, net.linear("wq", normed, d.heads * d.head_dim, kQueryGain, false), d.heads), shared);
        k = rotate(net, split_heads(net, net.linear("wk", normed, d.kv_heads * d.head_dim, kQueryGain, false), d.kv_heads), shared);
        v = split_heads(net, net.linear("wv", normed, d.kv_heads * d.head_dim, 1, false), d.kv_heads);
    }
    Value attended;
    if (net.opset() >= 23) {
        attended = attention_operator(net, q, k, v, shared, d, suffix);
    } else {
        k = cached(net, fmt::format("past_k{}", suffix), fmt::format("present_k{}", suffix), k, d.past);
        v = cached(net, fmt::format("past_v{}", suffix), fmt::format("present_v{}", suffix), v, d.past);
        const auto inside = net.scope(layer + ".attention");
        const std::int64_t groups = d.heads / d.kv_heads;
        attended = attend(net, q, repeat_heads(net, k, groups), repeat_heads(net, v, groups), shared.mask);
    }
    const auto inside = net.scope(layer);
    const Value after = net.add(x, net.linear("attention.wo", merge_heads(net, attended), d.hidden, branch, false));
    const Value normed = net.rms_norm("ffn_norm", after);
    const Value gate = net.silu(net.linear("ffn.gate", normed, d.ffn, 1, false));
    const Value inner = net.mul(gate, net.linear("ffn.up", normed, d.ffn, 1, false));
    return net.add(after, net.linear("ffn.down", inner, d.hidden, branch, false));
}

}  // namespace

void build_llama_layer(Net& net, const Dimensions& d) {
    const Value x = net.input("hidden_states", {d.batch, d.seq, d.hidden}, net.float_type(), Fill::normal(0, 1)).with(0, 1);
    const Shared shared = make_shared_values(net, d);
    net.output(decoder_layer(net, x, shared, d, "layer", "", 0.5), "hidden_states_out");
}

void build_llama(Net& net, const Dimensions& d) {
    const Value ids = net.input("input_ids", {d.batch, d.seq}, DType::i64, Fill::integers(0, d.vocab - 1));
    const Shared shared = make_shared_values(net, d);
    Value x = net.embedding("embed", ids, d.vocab, d.hidden, 0.5);
    const double branch = 1 / std::sqrt(2.0 * static_cast<double>(d.layers));
    for (std::int64_t i = 0; i < d.layers; ++i) x = decoder_layer(net, x, shared, d, fmt::format("layers.{}", i), fmt::format("_{}", i), branch);
    net.output(net.linear("lm_head", net.rms_norm("norm", x), d.vocab, 2, false), "logits");
}

/// Router, top-k, gated experts (Shazeer et al. 2017, in Mixtral's form). When the chosen experts are fewer than all (decoding), the chosen
/// weights are gathered and only they compute; otherwise every expert computes every token and a scattered gate, mostly 0, selects.
void build_moe_layer(Net& net, const Dimensions& d) {
    if (d.top_k > d.experts)
        throw Error(ErrorKind::usage, fmt::format("workload make: --top-k {} is more than --experts {}", d.top_k, d.experts));
    const Value x = net.input("hidden_states", {d.batch, d.seq, d.hidden}, net.float_type(), Fill::normal(0, 1)).with(0, 1);
    const std::int64_t tokens = d.batch * d.seq;
    const Value normed = net.reshape(net.rms_norm("norm", x), {tokens, d.hidden}).with(0, 1);
    // A router of variance 1 spreads its choices over the experts. Routing is in float32 whatever the activations are.
    const Value router = net.weight("router.weight", {d.hidden, d.experts}, Fill::normal(0, 1 / std::sqrt(static_cast<double>(d.hidden))))
                             .with(0, 1 / static_cast<double>(d.hidden));
    const Value scores = net.softmax(net.cast(net.matmul(normed, router), DType::f32));
    const Shape chosen{tokens, d.top_k};
    const auto top = net.nodes("TopK", "top_k", {scores, net.integers({d.top_k})}, {chosen, chosen}, {DType::f32, DType::i64},
                               {{"axis", std::int64_t{-1}}, {"largest", std::int64_t{1}}, {"sorted", std::int64_t{1}}});
    const auto share = 1 / static_cast<double>(d.top_k);
    const Value gates = net.cast(net.div(top[0], net.reduce_sum(top[0], -1, true)).with(share, 0.1 * share * share), x.type);
    const auto expert = [&](const char* name, std::int64_t in, std::int64_t out, double moment) {
        const double variance = 1 / (static_cast<double>(in) * moment);
        return net.weight(name, {d.experts, in, out}, Fill::normal(0, std::sqrt(variance))).with(0, variance);
    };
    const Value w_gate = expert("experts.gate", d.hidden, d.ffn, 1), w_up = expert("experts.up", d.hidden, d.ffn, 1), w_down = expert("experts.down", d.ffn, d.hidden, 0.36);
    Value mixed;
    if (tokens * d.top_k < d.experts) {
        const Value each = net.reshape(normed, {tokens, 1, 1, d.hidden});
        const Value gate = net.silu(net.matmul(each, net.gather(w_gate, top[1], 0)));
        const Value inner = net.mul(gate, net.matmul(each, net.gather(w_up, top[1], 0)));
        const Value out = net.reshape(net.matmul(inner, net.gather(w_down, top[1], 0)), {tokens, d.top_k, d.hidden});
        mixed = net.reduce_sum(net.mul(out, net.unsqueeze(gates, 2)), 1);
    } else {
        const Value zeros = net.table("no_gates", {tokens, d.experts}, x.type, Fill::constant(0)).with(0, 0);
        const Value all = net.node("ScatterElements", "", {zeros, top[1], gates}, {tokens, d.experts}, {{"axis", std::int64_t{1}}});
        const Value selector = net.unsqueeze(net.transpose(all, {1, 0}), 2).with(0, 1 / static_cast<double>(d.experts));
        const Value gate = net.silu(net.matmul(net.unsqueeze(normed, 0), w_gate));
        const Value inner = net.mul(gate, net.matmul(net.unsqueeze(normed, 0), w_up));
        mixed = net.reduce_sum(net.mul(net.matmul(inner, w_down), selector), 0);
    }
    net.output(net.add(x, net.reshape(mixed, x.shape)), "hidden_states_out");
}

}  // namespace assay::workloads::generate
