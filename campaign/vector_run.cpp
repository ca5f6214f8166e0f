#include "campaign/vector_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "campaign/host_executor.hpp"
#include "campaign/model.hpp"
#include "support/error.hpp"
#include "switchover/runtime.hpp"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
using Status = VectorOutcome::Status;

std::string operator_of(const onnx::ModelProto& model) { return model.graph().node_size() == 1 ? model.graph().node(0).op_type() : "(graph)"; }

/// Sequences, optionals, maps and strings are no tensors that a chip could hold.
std::string unsupported_values(const onnx::ModelProto& model) {
    for (const auto* list : {&model.graph().input(), &model.graph().output()})
        for (const auto& value : *list) {
            if (!value.type().has_tensor_type()) return fmt::format("'{}' is a sequence, an optional or a map, not a tensor", value.name());
            if (value.type().tensor_type().elem_type() == onnx::TensorProto::STRING) return fmt::format("'{}' is a tensor of strings", value.name());
        }
    return "";
}

/// Why the tensors differ; empty when they do not. IEEE infinities and NaN match only themselves.
std::string difference(const Tensor& got, const Tensor& want, const ConformanceOptions& options) {
    if (got.dtype != want.dtype || got.shape != want.shape)
        return fmt::format("{} {} instead of {} {}", name_of(got.dtype), to_string(got.shape), name_of(want.dtype), to_string(want.shape));
    // The vectors round each intermediate value to bfloat16 where the chip holds fp32: two units in the last place.
    const double rtol = want.dtype == DType::bf16 ? std::max(options.rtol, 0x1p-6) : options.rtol;
    for (std::int64_t i = 0; i < want.count(); ++i) {
        const double g = got.value(i), w = want.value(i);
        bool same = g == w || (std::isnan(g) && std::isnan(w));
        if (!is_float(want.dtype)) same = got.integer(i) == want.integer(i);
        else if (!same && std::isfinite(g) && std::isfinite(w)) same = std::fabs(g - w) <= options.atol + rtol * std::fabs(w);
        if (!same) return fmt::format("element {}: {:.9g} instead of {:.9g}", i, g, w);
    }
    return "";
}

/// One data set of the vector: empty when every output is right.
std::string run_data_set(const LoadedModel& model, const simkernel::Program& program, switchover::Target& target, const ConformanceOptions& options) {
    switchover::RunOptions run;
    run.host = execute_host_step;
    run.sanitize = options.sanitize;
    const switchover::Result<switchover::RunResult> ran = switchover::Runtime(target).run(program, model.data.inputs, run);
    if (!ran.ok()) return fmt::format("{}: {}", switchover::name_of(ran.error().kind), ran.error().text);
    const switchover::RunResult& result = ran.value();
    if (result.completion.status != static_cast<std::uint32_t>(simkernel::JobStatus::done))
        return fmt::format("the job failed: {} at descriptor {}", simkernel::name_of(static_cast<simkernel::ErrorCode>(result.completion.error_code)),
                           result.completion.descriptor);
    if (!result.findings.empty()) return fmt::format("sanitizer: {}", result.findings.front().text);
    for (const auto& [name, want] : model.data.expected) {
        const auto got = result.tensors.find(name);
        if (got == result.tensors.end()) return fmt::format("output '{}' was not made", name);
        if (const std::string text = difference(got->second, want, options); !text.empty()) return fmt::format("output '{}': {}", name, text);
    }
    return "";
}

}  // namespace

VectorOutcome run_vector(const std::string& folder, switchover::Target& target, const ConformanceOptions& options) {
    VectorOutcome outcome;
    outcome.name = fs::path(folder).filename().string();
    outcome.status = Status::unsupported;  // until something of it has run
    try {
        ModelRequest request;
        request.model = (fs::path(folder) / "model.onnx").string();
        request.need_data = false;
        LoadedModel model = load_model(request);
        outcome.op = operator_of(*model.proto);
        outcome.reason = unsupported_values(*model.proto);
        if (!outcome.reason.empty()) return outcome;
        std::vector<std::string> sets;
        for (const auto& entry : fs::directory_iterator(folder))
            if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path().string());
        std::sort(sets.begin(), sets.end());
        std::size_t compared = 0;
        for (const std::string& set : sets) {
            // A model without inputs has a data set without input files.
            if (graph_inputs(*model.proto).empty()) model.data = load_expected(*model.proto, set);
            else model.data = load_data_set(*model.proto, {set});
            const simkernel::Program program =
                workloads::compile(*model.proto, model.source, compile_options(model, request, options.target_options.chip, options.precision));
            outcome.on_host = outcome.on_host || !program.host_steps.empty();
            outcome.status = Status::failed;
            outcome.reason = run_data_set(model, program, target, options);
            if (!outcome.reason.empty()) return outcome;
            compared += model.data.expected.size();
        }
        outcome.reason = compared == 0 ? "no expected output to compare with" : "";
        outcome.status = compared == 0 ? Status::failed : Status::passed;
    } catch (const Error& error) {
        outcome.reason = error.what();
        // What is refused, before a run or by the host evaluator in it (a random Dropout), is a clean "unsupported"; our own broken invariants
        // are not.
        if (error.kind() == ErrorKind::bad_input) outcome.status = Status::unsupported;
        else if (error.kind() != ErrorKind::usage) outcome.status = Status::failed;
    } catch (const std::exception& error) {
        outcome.status = Status::failed;
        outcome.reason = fmt::format("internal error: {}", error.what());
    }
    return outcome;
}

}  // namespace assay::campaign
