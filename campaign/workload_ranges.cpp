#include "campaign/workload_ranges.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "golden/reference/reference.hpp"
#include "support/error.hpp"
#include "workloads/generate/model_writer.hpp"

namespace assay::campaign {

workloads::generate::Ranges measured_ranges(const workloads::generate::GeneratedModel& model) {
    std::map<std::string, Tensor> inputs;
    for (const auto& recipe : model.inputs) inputs[recipe.name] = produce(recipe, model.seed);
    golden::Values values;
    try {
        values = golden::Reference(in_memory(model), "the float32 model").run(inputs);
    } catch (const Error& error) {
        throw Error(ErrorKind::usage, fmt::format("workload make: --dtype int8: calibration cannot run: {}; use --calibrate analytic", error.what()));
    }
    workloads::generate::Ranges ranges;
    for (const auto& [name, value] : values) {
        if (!value.floating() || value.f.empty()) continue;
        const auto [low, high] = std::minmax_element(value.f.begin(), value.f.end());
        ranges[name] = {*low, *high};
    }
    return ranges;
}

}  // namespace assay::campaign
