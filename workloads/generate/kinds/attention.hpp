#pragma once
// Pieces of transformers.
#include <string>

#include "workloads/generate/net.hpp"

namespace assay::workloads::generate {

/// Standard deviation of queries and keys: scores of variance 5, so that softmax picks a few keys among hundreds as trained heads do.
inline constexpr double kQueryGain = 1.5;

/// Additive mask [queries, past + queries] of 0 and a very negative number, computed in the graph from positions (compilers fold it).
Value causal_mask(Net& net, std::int64_t queries, std::int64_t past);
/// The very negative number: finite in the type and after adding scores.
double masked_score(DType type);

/// [B,S,H·D] to [B,H,S,D].
Value split_heads(Net& net, const Value& x, std::int64_t heads);
/// [B,H,S,D] to [B,S,H·D].
Value merge_heads(Net& net, const Value& x);
/// softmax(q kᵀ / √D + mask) v of [B,H,S,D] and [B,H,T,D]; no mask when its name is empty.
Value attend(Net& net, const Value& q, const Value& k, const Value& v, const Value& mask);
/// [B,KV,T,D] to [B,KV·groups,T,D], each head `groups` times (grouped-query attention as exporters write it).
Value repeat_heads(Net& net, const Value& x, std::int64_t groups);

/// Appends to a cache: input `past_NAME` [B,KV,past,D] before x, output `present_NAME`. x itself when past is 0, with the output all the same.
Value cached(Net& net, const std::string& past_name, const std::string& present_name, const Value& x, std::int64_t past);

}  // namespace assay::workloads::generate
