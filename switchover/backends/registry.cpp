// The only place that knows which targets exist.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rtl_models/rtl_units.hpp"
#include "support/error.hpp"
#include "switchover/backends/chip_target.hpp"
#include "switchover/target.hpp"

namespace assay::switchover {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

}  // namespace

std::unique_ptr<Target> make_target(const std::string& name, const TargetOptions& options) {
    if (name == "tlm") {
        if (!options.wave_path.empty()) throw Error(ErrorKind::usage, "--wave: 'tlm' has no RTL unit to trace; use --target hybrid:mxu");
        return make_chip_target(name, {}, options);
    }
    if (name.starts_with("hybrid:")) return make_chip_target(name, split(name.substr(7), ','), options);
    throw Error(ErrorKind::usage, fmt::format("--target {}: unknown; 'assay target list' shows: tlm, hybrid:<units>", name));
}

std::vector<TargetListing> list_targets() {
    return {{"tlm", "SystemC TLM-2.0 model of the chip; bit-exact values at host speed, modelled cycles"},
            {"hybrid:mxu", fmt::format("the same chip with the Verilated matrix unit; geometries built: {}", fmt::join(rtl::built_mxu_geometries(), ", "))}};
}

}  // namespace assay::switchover
