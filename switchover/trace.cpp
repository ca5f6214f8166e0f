// The retire trace as a Chrome/Perfetto trace: one track an engine.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files.hpp"
#include "switchover/runtime.hpp"

namespace assay::switchover {

using namespace simkernel;

void write_perfetto(const std::string& path, const Program& program, const RunResult& result, double clock_mhz) {
    nlohmann::json events = nlohmann::json::array();
    for (const Engine engine : kAllEngine)
        events.push_back({{"ph", "M"}, {"pid", 0}, {"tid", static_cast<int>(engine)}, {"name", "thread_name"}, {"args", {{"name", std::string(simkernel::name_of(engine))}}}});
    for (const TraceEvent& event : result.trace) {
        const DebugEntry& where = program.debug[event.descriptor];
        events.push_back({{"ph", "X"}, {"pid", 0}, {"tid", event.record.engine}, {"name", program.layers[where.layer].name},
                          {"ts", static_cast<double>(event.record.start) / clock_mhz},
                          {"dur", static_cast<double>(event.record.end - event.record.start) / clock_mhz},
                          {"args", {{"descriptor", event.descriptor}, {"tile", where.tile}, {"cycles", event.record.end - event.record.start},
                                    {"waited", event.record.start - event.record.queued}, {"stall_memory", event.record.stall_memory},
                                    {"text", disassemble(event.descriptor, program.descriptors[event.descriptor])}}}});
    }
    write_file(path, nlohmann::json{{"displayTimeUnit", "ns"}, {"traceEvents", events}}.dump());
}

}  // namespace assay::switchover
