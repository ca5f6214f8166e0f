#pragma once
// Runs another `assay` in a child process: two simulated targets cannot live in one (SystemC elaborates once a process).
#include <string>
#include <vector>

namespace assay::campaign {

struct ChildResult {
    int exit_status = 0;  ///< 128 + signal when it was killed
    double seconds = 0;
};

/// Runs this very program with the arguments, its output going to `log` (both streams). Throws Error(io) when it cannot be started.
ChildResult run_assay(const std::vector<std::string>& arguments, const std::string& log);

}  // namespace assay::campaign
