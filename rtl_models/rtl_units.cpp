#include "rtl_models/rtl_units.hpp"

#include "rtl_models/mxu_registry.hpp"
#include "rtl_models/rtl_mxu.hpp"
#include "support/error.hpp"

namespace assay::rtl {
namespace {

std::string geometry_name(std::int64_t rows, std::int64_t cols) { return std::to_string(rows) + "x" + std::to_string(cols); }

}  // namespace

std::vector<std::string> built_mxu_geometries() {
    std::vector<std::string> names;
    for (const MxuGeometry& g : mxu_registry()) names.push_back(geometry_name(g.rows, g.cols));
    return names;
}

std::unique_ptr<chip::Unit> make_mxu(const simkernel::ChipConfig& config, chip::UnitPorts& ports, const chip::WaveOptions& wave) {
    for (const MxuGeometry& g : mxu_registry()) {
        if (g.rows != config.mxu_rows || g.cols != config.mxu_cols) continue;
        auto model = wave.path.empty() ? g.make({}) : g.make_traced({});
        if (!wave.path.empty()) model->open_wave(wave);
        return std::make_unique<RtlMxu>(std::move(model), ports);
    }
    const std::string wanted = geometry_name(config.mxu_rows, config.mxu_cols);
    std::string built, list;
    for (const std::string& name : built_mxu_geometries()) {
        built += (built.empty() ? "" : ", ") + name;
        list += name + ";";
    }
    throw Error(ErrorKind::usage, "chip '" + config.name + "': no RTL of a " + wanted + " matrix unit in this build, which has " + built +
                                      "; add it with 'cmake -B BUILD -DASSAY_RTL_CONFIGS=\"" + list + wanted + "\"' and build again");
}

}  // namespace assay::rtl
