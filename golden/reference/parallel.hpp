#pragma once
// Both cores for work whose parts are independent. What each part computes never depends on the number of threads.
#include <cstdint>
#include <functional>

namespace assay::golden {

/// Calls body(i) for each i in [0, count), on several threads when `work` (multiply-adds or the like) is worth their start. The first
/// exception of a body is thrown here after all have ended. Bodies that call this again run theirs one after another.
void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body);

}  // namespace assay::golden
