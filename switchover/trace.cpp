// The retire trace as a Chrome/Perfetto trace: one process a core, one track an engine.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simkernel/exec/core_streams.hpp"
#include "support/files.hpp"
#include "switchover/runtime.hpp"

namespace assay::switchover {

using namespace simkernel;

void write_perfetto(const std::string& path, const Program& program, const RunResult& result, double clock_mhz) {
    nlohmann::json events = nlohmann::json::array();
    const std::uint32_t cores = CoreStreams(program.descriptors).cores();
    for (std::uint32_t core = 0; core < cores; ++core) {
        if (cores > 1) events.push_back({{"ph", "M"}, {"pid", core}, {"name", "process_name"}, {"args", {{"name", fmt::format("core {}", core)}}}});
        for (const Engine engine : kAllEngine)
            events.push_back({{"ph", "M"}, {"pid", core}, {"tid", static_cast<int>(engine)}, {"name", "thread_name"}, {"args", {{"name", std::string(simkernel::name_of(engine))}}}});
    }
    for (const TraceEvent& event : result.trace) {
        const DebugEntry& where = program.debug[event.descriptor];
        const std::uint32_t core = decode_common_fields(program.descriptors[event.descriptor]).core;
        events.push_back({{"ph", "X"}, {"pid", core}, {"tid", event.record.engine}, {"name", program.layers[where.layer].name},
                          {"ts", static_cast<double>(event.record.start) / clock_mhz},
                          {"dur", static_cast<double>(event.record.end - event.record.start) / clock_mhz},
                          {"args", {{"descriptor", event.descriptor}, {"tile", where.tile}, {"cycles", event.record.end - event.record.start},
                                    {"waited", event.record.start - event.record.queued}, {"stall_memory", event.record.stall_memory},
                                    {"text", disassemble(event.descriptor, program.descriptors[event.descriptor])}}}});
    }
    write_file(path, nlohmann::json{{"displayTimeUnit", "ns"}, {"traceEvents", events}}.dump());
}

}  // namespace assay::switchover
