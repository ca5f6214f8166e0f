#pragma once
// The host fallback as the runtime calls it.
#include <map>
#include <string>

#include "simkernel/program.hpp"

namespace assay::campaign {

/// Executes a host step's model with the host evaluator (switchover::HostExecutor). Throws Error.
std::map<std::string, Tensor> execute_host_step(const simkernel::HostStep& step, const std::map<std::string, Tensor>& inputs);

}  // namespace assay::campaign
