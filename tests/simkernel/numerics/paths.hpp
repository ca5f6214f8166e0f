#pragma once
// Every way that this host can compute the numerics, for tests that demand the same bits of all.
#include <string>
#include <vector>

namespace assay::simkernel::test {

/// Names of available_dispatch(), and "wide" (64-byte vectors on AVX2) where it runs.
std::vector<std::string> all_paths();

/// Forces one of all_paths() for its lifetime; then the best path is back.
class PathScope {
public:
    explicit PathScope(const std::string& name);
    ~PathScope();
    PathScope(const PathScope&) = delete;
    PathScope& operator=(const PathScope&) = delete;
};

}  // namespace assay::simkernel::test
