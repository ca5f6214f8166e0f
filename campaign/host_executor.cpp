#include "campaign/host_executor.hpp"

#include <onnx/onnx_pb.h>

#include "support/onnx/onnx_file.hpp"
#include "workloads/host/evaluate.hpp"

namespace assay::campaign {

std::map<std::string, Tensor> execute_host_step(const simkernel::HostStep& step, const std::map<std::string, Tensor>& inputs) {
    return workloads::hostops::evaluate_model(*parse_onnx(step.model, "host step"), inputs);
}

}  // namespace assay::campaign
