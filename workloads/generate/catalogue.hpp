#pragma once
// The kinds of model that `assay workload make` writes, their sizes and presets. A kind is a function that builds it (kinds/).
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/generate/graph_builder.hpp"

namespace assay::workloads::generate {

class Net;

/// Sizes of a model. kUnused: the kind has no such size, and naming it is an error.
inline constexpr std::int64_t kUnused = -1;
struct Dimensions {
    std::int64_t layers = kUnused, hidden = kUnused, heads = kUnused, kv_heads = kUnused, head_dim = kUnused, ffn = kUnused;
    std::int64_t experts = kUnused, top_k = kUnused, vocab = kUnused, seq = kUnused, past = kUnused;
    std::int64_t batch = kUnused, image = kUnused, channels = kUnused, classes = kUnused, kernel = kUnused, stride = kUnused;
    std::int64_t width_percent = kUnused;  ///< multiplier of channels, per cent
    std::int64_t m = kUnused, n = kUnused, k = kUnused, tables = kUnused;
};

/// One size: its option's name and meaning, and where it is.
struct DimensionName {
    const char* name;
    const char* text;
    std::int64_t Dimensions::*field;
    std::int64_t least;
};
const std::vector<DimensionName>& dimension_names();

struct Kind {
    std::string name, text;
    Dimensions defaults;
    void (*build)(Net& net, const Dimensions& d);
    std::vector<std::pair<std::string, Dimensions>> presets{};  ///< sizes laid over the defaults
    bool convolves = false;      ///< uses operators that take bfloat16 only from opset 22
    bool quantise_all = false;   ///< int8: activations between layers too (CNNs); else matrix products alone (transformers)
};
const std::vector<Kind>& kinds();
const Kind& find_kind(const std::string& name);  ///< throws Error(usage) listing the kinds

struct MakeOptions {
    std::string preset;          ///< "" for the defaults
    Dimensions sizes;            ///< given by the user; kUnused where not given
    std::string dtype = "float32";  ///< float32, float16, bfloat16 or int8 (QDQ)
    std::optional<int> opset;    ///< 13 … 24; none: 17, or 22 for a convolution in bfloat16
    std::uint64_t seed = 0;
    bool bn_nodes = false;
};

/// Defaults, preset and the user's sizes, checked. Throws Error(usage) naming every option that the kind does not take or that is out of range.
Dimensions resolve(const Kind& kind, const MakeOptions& options);

/// Builds the model in float; int8 is a step of its own (quantize.hpp). Throws Error(usage).
GeneratedModel make(const Kind& kind, const MakeOptions& options);

}  // namespace assay::workloads::generate
