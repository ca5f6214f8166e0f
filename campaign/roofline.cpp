#include "campaign/roofline.hpp"

#include <algorithm>

#include "simkernel/exec/decode.hpp"
#include "simkernel/exec/semantics.hpp"

namespace assay::campaign {

using simkernel::Engine;

namespace {

/// An engine is the limit when it executes for at least this share of the layer's cycles.
constexpr double kMostOfTheTime = 0.7;
/// And does it at this share of its peak or more; below, latency is.
constexpr double kMostOfThePeak = 0.5;

/// What the layer's own descriptors ask of the chip.
struct Demand {
    std::uint64_t products = 0, bytes = 0;
};

std::vector<Demand> demands(const simkernel::Program& program, const simkernel::ChipConfig& chip) {
    std::vector<Demand> by_layer(program.layers.size());
    for (std::size_t i = 0; i < program.descriptors.size(); ++i) {
        simkernel::Decoded decoded;
        if (simkernel::decode(program.descriptors[i], chip, decoded)) continue;
        Demand& demand = by_layer[program.debug[i].layer];
        const bool transfer = std::holds_alternative<simkernel::LoadFields>(decoded.op) || std::holds_alternative<simkernel::StoreFields>(decoded.op);
        if (decoded.engine == Engine::matrix) demand.products += simkernel::work_of(decoded);
        else if (transfer) demand.bytes += simkernel::work_of(decoded);
    }
    return by_layer;
}

Limit limit_of(const LayerRoofline& layer, bool on_host) {
    if (on_host) return Limit::host;
    if (layer.cycles == 0) return Limit::none;
    const auto most = static_cast<std::size_t>(std::max_element(layer.busy.begin(), layer.busy.end()) - layer.busy.begin());
    if (layer.busy[most] < kMostOfTheTime) return Limit::dependency;
    switch (static_cast<Engine>(most)) {
        case Engine::vector: return Limit::vpu;
        case Engine::matrix: return layer.mxu_utilization >= kMostOfThePeak * layer.busy[most] ? Limit::mxu : Limit::latency;
        default: return layer.memory_utilization >= kMostOfThePeak * layer.busy[most] ? Limit::hbm : Limit::latency;
    }
}

}  // namespace

std::string_view name_of(Limit limit) {
    switch (limit) {
        case Limit::none: return "none";
        case Limit::mxu: return "MXU";
        case Limit::vpu: return "VPU";
        case Limit::hbm: return "HBM";
        case Limit::latency: return "latency";
        case Limit::dependency: return "dependency";
        case Limit::host: return "host";
    }
    return "?";
}

Roofs roofs(const simkernel::ChipConfig& chip, std::int64_t cores) {
    return {static_cast<double>(std::min(chip.hbm_channels * chip.hbm_bytes_per_cycle, cores * chip.noc_bytes_per_cycle)),
            static_cast<double>(cores * chip.mxu_rows * chip.mxu_cols), static_cast<double>(cores * chip.vpu_lanes)};
}

double Roofs::peak(const simkernel::Layer& layer) const {
    if (layer.macs == 0) return vpu;
    return 2 * mxu / (layer.precision == "bf16x3" ? 6 : 1);
}

std::int64_t cores_of(const simkernel::Program& program) {
    std::uint32_t last = 0;
    for (const simkernel::DescriptorWords& words : program.descriptors) last = std::max(last, simkernel::decode_common_fields(words).core);
    return std::int64_t{last} + 1;
}

std::vector<LayerRoofline> roofline(const simkernel::Program& program, const switchover::RunResult& run, const simkernel::ChipConfig& chip) {
    if (run.layer_cycles.empty()) return {};
    const std::int64_t cores = cores_of(program);
    const Roofs roof = roofs(chip, cores);
    std::vector<LayerRoofline> layers(program.layers.size());
    std::vector<std::uint64_t> ends;  // of the layers' cycles, ascending
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        layers[i].cycles = run.layer_cycles[i];
        ends.push_back(end += run.layer_cycles[i]);
    }
    for (const switchover::TraceEvent& event : run.trace) {
        std::uint64_t at = event.record.start;
        for (auto i = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin()); i < ends.size() && at < event.record.end; ++i) {
            const std::uint64_t until = std::min(ends[i], event.record.end);
            if (until > at && layers[i].cycles > 0)
                layers[i].busy[event.record.engine] += static_cast<double>(until - at) / static_cast<double>(layers[i].cycles) / static_cast<double>(cores);
            at = std::max(at, until);
        }
    }
    std::vector<bool> on_host(layers.size(), false);
    for (const simkernel::HostStep& step : program.host_steps) on_host[step.layer] = true;
    const std::vector<Demand> asked = demands(program, chip);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        LayerRoofline& layer = layers[i];
        const double peak = roof.peak(program.layers[i]);
        const auto operations = static_cast<double>(program.layers[i].operations);
        layer.bytes = asked[i].bytes;
        layer.intensity = layer.bytes > 0 ? operations / static_cast<double>(layer.bytes) : 0;
        layer.attainable = layer.bytes > 0 ? std::min(peak, layer.intensity * roof.memory) : peak;
        if (layer.cycles > 0) {
            const auto cycles = static_cast<double>(layer.cycles);
            layer.achieved = operations / cycles;
            layer.mxu_utilization = static_cast<double>(asked[i].products) / (roof.mxu * cycles);
            layer.memory_utilization = static_cast<double>(layer.bytes) / (roof.memory * cycles);
        }
        layer.limit = limit_of(layer, on_host[i]);
    }
    return layers;
}

}  // namespace assay::campaign
