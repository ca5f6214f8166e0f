// verdict.json. Equal runs give equal bytes apart from seconds, memory and paths.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "campaign/session.hpp"
#include "support/hash.hpp"

namespace assay::campaign {

using nlohmann::json;

namespace {

/// JSON has no NaN or infinity: they become strings.
json number(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json tensor_json(const golden::TensorVerdict& t) {
    json out{{"name", t.name}, {"node", t.node}, {"op", t.op}, {"layer", t.layer}, {"role", t.role}, {"dtype", t.dtype}, {"shape", t.shape},
             {"precision", t.precision}, {"verdict", golden::name_of(t.verdict)}, {"reason", t.reason}, {"max_abs", number(t.max_abs)},
             {"max_rel", number(t.max_rel)}, {"elements", t.elements}, {"pcc", number(t.pcc)}, {"cosine", number(t.cosine)}, {"psnr_db", number(t.psnr)}};
    out["local_error"] = nullptr;
    if (t.local)
        out["local_error"] = {{"max_abs", number(t.local->max_abs)}, {"max_ratio_to_allowance", number(t.local->max_ratio)}, {"grey", t.local->grey},
                              {"lsb", t.local->lsb}, {"failed", t.local->failed}};
    out["global_error"] = nullptr;
    if (t.global) out["global_error"] = {{"r_rms", number(t.global->r_rms)}, {"r_max", number(t.global->r_max)}, {"max_abs", number(t.global->max_abs)}};
    if (t.first_failing)
        out["first_failing_element"] = {{"index", t.first_failing->index}, {"at", t.first_failing->at}, {"device", number(t.first_failing->device)},
                                        {"expected", number(t.first_failing->expected)}, {"allowance", number(t.first_failing->allow)}};
    return out;
}

json counters_json(const switchover::CoreCounters& all) {
    json counters = json::object();
    for (const simkernel::Engine engine : simkernel::kAllEngine) {
        json& mine = counters[std::string(simkernel::name_of(engine))];
        for (std::size_t c = 0; c < simkernel::kCounterCount; ++c)
            mine[std::string(simkernel::kCounterNames[c])] = all[static_cast<std::size_t>(engine)][c];
    }
    return counters;
}

json core_counters_json(const SessionReport& report) {
    json cores = json::array();
    for (const switchover::CoreCounters& core : report.run.core_counters) cores.push_back(counters_json(core));
    return cores;
}

json fallback_json(const simkernel::Program& program) {
    json list = json::array();
    for (const simkernel::HostStep& step : program.host_steps) {
        const simkernel::Layer& layer = program.layers[step.layer];
        list.push_back({{"name", layer.name}, {"op", layer.op}, {"nodes", layer.nodes}, {"outputs", layer.outputs}, {"operations", layer.operations}, {"reason", step.reason}});
    }
    return list;
}

json roofline_json(const LayerRoofline& r) {
    json busy = json::object();
    for (const simkernel::Engine engine : simkernel::kAllEngine) busy[std::string(simkernel::name_of(engine))] = r.busy[static_cast<std::size_t>(engine)];
    return {{"limit", name_of(r.limit)}, {"busy", busy}, {"mxu_utilization", r.mxu_utilization}, {"memory_utilization", r.memory_utilization}, {"bytes", r.bytes},
            {"operations_per_byte", r.intensity}, {"operations_per_cycle", r.achieved}, {"attainable_operations_per_cycle", r.attainable}};
}

}  // namespace

std::string fallback_text(const simkernel::Program& program) {
    if (program.host_steps.empty()) return "none";
    return fmt::format("{} steps on the host, {:.2f} % of the arithmetic", program.host_steps.size(), 100 * simkernel::host_share(program));
}

std::string to_json(const SessionReport& r) {
    std::uint64_t macs = 0;
    json layers = json::array();
    for (std::size_t i = 0; i < r.program.layers.size(); ++i) {
        const simkernel::Layer& layer = r.program.layers[i];
        macs += layer.macs;
        layers.push_back({{"name", layer.name}, {"op", layer.op}, {"precision", layer.precision}, {"macs", layer.macs}, {"mapping", layer.mapping},
                          {"outputs", layer.outputs}, {"operations", layer.operations}, {"cycles", i < r.run.layer_cycles.size() ? json(r.run.layer_cycles[i]) : json(nullptr)},
                          {"roofline", i < r.roofline.size() ? roofline_json(r.roofline[i]) : json(nullptr)}});
    }
    json tensors = json::array(), outputs = json::array(), findings = json::array();
    for (const golden::TensorVerdict& t : r.judgement.tensors) tensors.push_back(tensor_json(t));
    for (const golden::TensorVerdict& t : r.judgement.outputs) outputs.push_back(tensor_json(t));
    for (const simkernel::Finding& f : r.run.findings)
        findings.push_back({{"kind", simkernel::name_of(f.kind)}, {"descriptor", f.descriptor}, {"other", f.other}, {"address", f.address}, {"text", f.text},
                            {"layer", f.descriptor < r.program.debug.size() ? json(r.program.layers[r.program.debug[f.descriptor].layer].name) : json(nullptr)}});
    json corrupt = json::array();
    for (const switchover::CorruptConstant& c : r.run.corrupt)
        corrupt.push_back({{"constant", c.constant}, {"layer", r.program.layers[c.layer].name}, {"address", c.address}, {"wrong_bytes", c.wrong_bytes}});
    json out{{"schema", "assay.verdict.1"},
             {"verdict", golden::name_of(r.verdict)},
             {"reason", r.reason},
             {"target", r.target},
             {"chip", r.chip.name},
             {"model", {{"path", r.program.model_path}, {"sha256", r.program.model_sha256}}},
             {"data", r.data},
             {"seed", r.seed},
             {"precision", r.precision},
             {"faults", r.faults},
             {"cycles", r.run.cycles},
             {"cycles_basis", "uncalibrated: the error of the modelled cycles against whole-core RTL is not measured yet"},
             {"seconds", {{"import", r.seconds.import}, {"compile", r.seconds.compile}, {"golden", r.seconds.golden}, {"device", r.seconds.device}, {"host", r.run.host_seconds},
                          {"judge", r.seconds.judge}, {"total", r.seconds.total}}},
             {"measured_seconds", r.measured_seconds},
             {"peak_rss_bytes", r.peak_rss_bytes},
             {"macs", macs},
             {"units", r.identity.units},
             {"outputs", outputs},
             {"tensors", tensors},
             {"layers", layers},
             {"fallback", fallback_json(r.program)},
             {"host_share", simkernel::host_share(r.program)},
             {"findings", findings},
             {"corrupt_constants", corrupt},
             {"counters", counters_json(r.run.counters)},
             {"core_counters", core_counters_json(r)},
             {"warnings", r.judgement.warnings},
             {"artifacts", r.artifacts}};
    out["first_failing"] = r.first_failing_layer.empty() ? json(nullptr) : json(r.first_failing_layer);
    return out.dump(1) + "\n";
}

}  // namespace assay::campaign
