#include "workloads/generate/catalogue.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/error.hpp"
#include "workloads/generate/kinds/kinds.hpp"

namespace assay::workloads::generate {
namespace {

/// A size past this is a slip of the keyboard; products are checked again when the file is written.
constexpr std::int64_t kMost = std::int64_t{1} << 24;

std::string option_of(const char* name) { return fmt::format("--{}", name); }

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorKind::usage, "workload make: " + text); }

}  // namespace

const std::vector<DimensionName>& dimension_names() {
    static const std::vector<DimensionName> names{
        {"layers", "layers, or blocks", &Dimensions::layers, 1},
        {"hidden", "width of the hidden state (conv: channels out; unet: channels at the top; decoder: latent)", &Dimensions::hidden, 1},
        {"heads", "attention heads", &Dimensions::heads, 1},
        {"kv-heads", "heads of keys and values (grouped-query attention)", &Dimensions::kv_heads, 1},
        {"head-dim", "width of a head", &Dimensions::head_dim, 1},
        {"ffn", "width inside the feed-forward part (of an expert)", &Dimensions::ffn, 1},
        {"experts", "experts", &Dimensions::experts, 1},
        {"top-k", "experts a token", &Dimensions::top_k, 1},
        {"vocab", "tokens of the vocabulary, or rows of an embedding table", &Dimensions::vocab, 2},
        {"seq", "tokens or frames of a call", &Dimensions::seq, 1},
        {"past", "tokens in the KV cache before this call; with it, --seq is 1 unless given", &Dimensions::past, 0},
        {"batch", "batch", &Dimensions::batch, 1},
        {"image", "height and width of the image", &Dimensions::image, 1},
        {"channels", "channels or features of the input", &Dimensions::channels, 1},
        {"classes", "classes or channels of the output", &Dimensions::classes, 1},
        {"kernel", "size of the kernel or patch", &Dimensions::kernel, 1},
        {"stride", "stride", &Dimensions::stride, 1},
        {"width", "multiplier of all channels, per cent", &Dimensions::width_percent, 1},
        {"m", "rows of A", &Dimensions::m, 1},
        {"n", "columns of B", &Dimensions::n, 1},
        {"k", "columns of A, rows of B", &Dimensions::k, 1},
        {"tables", "embedding tables", &Dimensions::tables, 1},
    };
    return names;
}

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = [] {
        const auto image = [](std::int64_t layers) { return Dimensions{.layers = layers, .batch = 1, .image = 224, .channels = 3, .classes = 1000, .width_percent = 100}; };
        const auto scaled = Dimensions{.batch = 1, .image = 224, .channels = 3, .classes = 1000, .width_percent = 100};
        const auto plain = Dimensions{.batch = 1, .image = 224, .channels = 3, .classes = 1000};
        const auto decoder = [](std::int64_t hidden, std::int64_t heads, std::int64_t kv, std::int64_t ffn) {
            return Dimensions{.hidden = hidden, .heads = heads, .kv_heads = kv, .head_dim = 128, .ffn = ffn};
        };
        const std::vector<std::pair<std::string, Dimensions>> llamas{{"7b", decoder(4096, 32, 32, 11008)},   {"13b", decoder(5120, 40, 40, 13824)},
                                                                     {"llama3-8b", decoder(4096, 32, 8, 14336)}, {"70b", decoder(8192, 64, 8, 28672)},
                                                                     {"405b", decoder(16384, 128, 8, 53248)}};
        auto models = llamas;
        const std::int64_t depth[] = {32, 40, 32, 80, 126}, words[] = {32000, 32000, 128256, 32000, 128256};
        for (std::size_t i = 0; i < models.size(); ++i) {
            models[i].second.layers = depth[i];
            models[i].second.vocab = words[i];
        }
        Dimensions layer = llamas[0].second;
        layer.seq = 512;
        layer.past = 0;
        layer.batch = 1;
        Dimensions whole = decoder(2048, 32, 4, 5632);
        whole.head_dim = 64;
        whole.layers = 22;
        whole.vocab = 32000;
        whole.seq = 128;
        whole.past = 0;
        whole.batch = 1;
        return std::vector<Kind>{
            {"resnet18", "ResNet-18 (basic blocks; --layers 34 too)", image(18), build_resnet_basic, {}, true, true},
            {"resnet50", "ResNet-50 v1.5 (bottleneck blocks)", image(50), build_resnet_bottleneck, {}, true, true},
            {"resnet101", "ResNet-101 v1.5", image(101), build_resnet_bottleneck, {}, true, true},
            {"mobilenet", "MobileNetV2", scaled, build_mobilenet_v2, {}, true, true},
            {"mobilenet-v3", "MobileNetV3 large (hard-swish, squeeze-and-excite)", scaled, build_mobilenet_v3, {}, true, true},
            {"efficientnet-lite0", "EfficientNet-Lite0", scaled, build_efficientnet_lite, {}, true, true},
            {"vgg16", "VGG-16", Dimensions{.hidden = 4096, .batch = 1, .image = 224, .channels = 3, .classes = 1000, .width_percent = 100}, build_vgg, {}, true, true},
            {"densenet121", "DenseNet-121", plain, build_densenet, {}, true, true},
            {"googlenet", "GoogLeNet (Inception v1)", plain, build_googlenet, {}, true, true},
            {"unet", "U-Net, padded", Dimensions{.layers = 4, .hidden = 64, .batch = 1, .image = 256, .channels = 3, .classes = 2}, build_unet, {}, true, true},
            {"decoder", "Latent to image by transposed convolutions", Dimensions{.hidden = 128, .batch = 1, .image = 64, .channels = 64}, build_decoder, {}, true, true},
            {"bert-base", "BERT encoder with pooler",
             Dimensions{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 30522, .seq = 128, .batch = 1}, build_bert,
             {{"large", Dimensions{.layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096}}}},
            {"gpt2", "GPT-2; with --past a decode step with KV cache",
             Dimensions{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50257, .seq = 64, .past = 0, .batch = 1}, build_gpt2,
             {{"medium", Dimensions{.layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096}},
              {"large", Dimensions{.layers = 36, .hidden = 1280, .heads = 20, .ffn = 5120}},
              {"xl", Dimensions{.layers = 48, .hidden = 1600, .heads = 25, .ffn = 6400}}}},
            {"vit-b", "Vision transformer",
             Dimensions{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .batch = 1, .image = 224, .channels = 3, .classes = 1000, .kernel = 16}, build_vit,
             {{"large", Dimensions{.layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096}}}, true},
            {"llama-layer", "One LLaMA layer: RMSNorm, RoPE, grouped-query attention, SwiGLU; with --past a decode step", layer, build_llama_layer, llamas},
            {"llama", "A LLaMA with embedding and head (defaults: TinyLlama-1.1B)", whole, build_llama, models},
            {"moe-layer", "Mixture of experts: router, top-k, gated experts",
             Dimensions{.hidden = 2048, .ffn = 1408, .experts = 64, .top_k = 2, .seq = 32, .batch = 1}, build_moe_layer,
             {{"mixtral", Dimensions{.hidden = 4096, .ffn = 14336, .experts = 8, .top_k = 2}}, {"fine-grained", Dimensions{.hidden = 2048, .ffn = 768, .experts = 128, .top_k = 8}}}},
            {"lstm", "Stacked LSTM over frames of features", Dimensions{.layers = 3, .hidden = 512, .seq = 100, .batch = 1, .channels = 80, .classes = 29}, build_lstm, {}, true},
            {"gru", "Stacked GRU over frames of features", Dimensions{.layers = 3, .hidden = 512, .seq = 100, .batch = 1, .channels = 80, .classes = 29}, build_gru, {}, true},
            {"tcn", "Temporal convolutional network, dilated and causal",
             Dimensions{.layers = 8, .hidden = 128, .seq = 256, .batch = 1, .channels = 80, .classes = 29, .kernel = 3}, build_tcn, {}, true, true},
            {"dlrm", "Recommendation: embeddings, pairwise products, perceptrons", Dimensions{.hidden = 128, .vocab = 10000, .batch = 16, .tables = 26}, build_dlrm, {}},
            {"gemm", "One matrix product with weights", Dimensions{.m = 512, .n = 512, .k = 512}, build_gemm, {}},
            {"conv", "One convolution", Dimensions{.hidden = 64, .batch = 1, .image = 56, .channels = 64, .kernel = 3, .stride = 1}, build_conv, {}, true, true},
            {"attention", "One causal attention of queries, keys and values",
             Dimensions{.heads = 32, .kv_heads = 32, .head_dim = 128, .seq = 512, .past = 0, .batch = 1}, build_attention, {}},
        };
    }();
    return all;
}

const Kind& find_kind(const std::string& name) {
    std::vector<std::string> names;
    for (const Kind& kind : kinds()) {
        if (kind.name == name) return kind;
        names.push_back(kind.name);
    }
    refuse(fmt::format("no kind '{}'; there are {}", name, fmt::join(names, ", ")));
}

Dimensions resolve(const Kind& kind, const MakeOptions& options) {
    Dimensions d = kind.defaults;
    if (!options.preset.empty()) {
        const auto found = std::find_if(kind.presets.begin(), kind.presets.end(), [&](const auto& p) { return p.first == options.preset; });
        if (found == kind.presets.end()) {
            std::vector<std::string> names;
            for (const auto& [name, sizes] : kind.presets) names.push_back(name);
            refuse(fmt::format("{} has no preset '{}'; it has {}", kind.name, options.preset, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
        }
        for (const DimensionName& each : dimension_names())
            if (found->second.*each.field != kUnused) d.*each.field = found->second.*each.field;
    }
    std::vector<std::string> problems, takes;
    for (const DimensionName& each : dimension_names()) {
        if (kind.defaults.*each.field != kUnused) takes.push_back(option_of(each.name));
        const std::int64_t given = options.sizes.*each.field;
        if (given == kUnused) continue;
        if (kind.defaults.*each.field == kUnused) problems.push_back(fmt::format("{} has no {}", kind.name, option_of(each.name)));
        else if (given < each.least || given > kMost) problems.push_back(fmt::format("{} {}: must be {} to {}", option_of(each.name), given, each.least, kMost));
        else d.*each.field = given;
    }
    if (!problems.empty()) refuse(fmt::format("{}; {} takes {}", fmt::join(problems, "; "), kind.name, fmt::join(takes, " ")));
    if (d.past > 0 && options.sizes.seq == kUnused && d.seq != kUnused) d.seq = 1;
    return d;
}

GeneratedModel make(const Kind& kind, const MakeOptions& options) {
    const Dimensions d = resolve(kind, options);
    GraphBuilder::Options build;
    build.seed = options.seed;
    if (options.dtype == "float16") build.float_type = DType::f16;
    else if (options.dtype == "bfloat16") build.float_type = DType::bf16;
    else if (options.dtype != "float32" && options.dtype != "int8")
        refuse(fmt::format("--dtype {}: must be float32, float16, bfloat16 or int8", options.dtype));
    const bool late = build.float_type == DType::bf16 && kind.convolves;
    build.opset = options.opset.value_or(late ? 22 : 17);
    if (build.opset < (late ? 22 : 13) || build.opset > 24)
        refuse(fmt::format("--opset {}: must be {} to 24{}", build.opset, late ? 22 : 13, late ? " (convolutions and recurrent layers take bfloat16 from 22)" : ""));
    if (options.dtype == "int8" && build.opset > 20)
        refuse(fmt::format("--opset {} with --dtype int8: must be 13 to 20", build.opset));
    Net net(kind.name, build, options.bn_nodes);
    kind.build(net, d);
    return net.finish();
}

}  // namespace assay::workloads::generate
