#pragma once
// What limits each layer of a run: the engines' work against what the chip could do in the layer's cycles (Williams, Waterman and Patterson,
// "Roofline", CACM 52(4), 2009).
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aurum_contract.hpp"
#include "simkernel/program.hpp"
#include "switchover/runtime.hpp"

namespace assay::campaign {

/// A layer lasts from the retirement of the last descriptor of all layers before it to that of its own last (RunResult::layer_cycles).
enum class Limit {
    none,        ///< it took no cycles of its own
    mxu,         ///< the matrix unit is busy, at most of its peak
    vpu,         ///< the vector unit is busy
    hbm,         ///< a DMA engine is busy and moves most of what the memory path could
    latency,     ///< a DMA or the matrix unit is busy, but with short pieces: set-up, fill and memory latency
    dependency,  ///< no engine is busy most of the time: they wait for each other
    host,        ///< it runs on the host
};
std::string_view name_of(Limit limit);

struct LayerRoofline {
    Limit limit = Limit::none;
    std::uint64_t cycles = 0;
    /// Share of the layer's cycles in which an engine executed (any layer's descriptors: engines run ahead), by engine, mean of the program's cores, 0 to 1.
    std::array<double, simkernel::kAllEngine.size()> busy{};
    double mxu_utilization = 0;     ///< products of the layer over rows * cols * cores * cycles, 0 to 1; work of it done before its cycles began counts too
    double memory_utilization = 0;  ///< bytes of the layer over what the memory path moves in its cycles
    std::uint64_t bytes = 0;        ///< that its descriptors move to or from device memory
    double intensity = 0;           ///< operations a byte; 0 when it moves none
    double achieved = 0;            ///< operations a cycle
    double attainable = 0;          ///< operations a cycle under the roof at this intensity
};

/// The roofs of `cores` cores of a chip.
struct Roofs {
    double memory = 0;  ///< bytes a cycle to and from device memory: the narrower of HBM and the cores' NoC ports
    double mxu = 0;     ///< products a cycle
    double vpu = 0;     ///< lanes
    /// Operations a cycle at the top of the roof of a layer: two a MAC, divided by the products that its precision's split takes; one a vector lane
    /// for a layer without matrix work.
    double peak(const simkernel::Layer& layer) const;
};
Roofs roofs(const simkernel::ChipConfig& chip, std::int64_t cores);
/// Cores that the program was compiled for.
std::int64_t cores_of(const simkernel::Program& program);

/// By layer, against the roofs of the cores that the program was compiled for. Empty for a run without retire records.
std::vector<LayerRoofline> roofline(const simkernel::Program& program, const switchover::RunResult& run, const simkernel::ChipConfig& chip);

/// The layers under the chip's roofs as an SVG picture, both axes logarithmic; "" when no layer computes and moves bytes.
std::string roofline_svg(const simkernel::Program& program, const std::vector<LayerRoofline>& layers, const simkernel::ChipConfig& chip);

}  // namespace assay::campaign
