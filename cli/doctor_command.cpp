// assay doctor: what this installation has, and what is optional and absent.
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.hpp"
#include "simkernel/chip_config.hpp"
#include "simkernel/numerics/dispatch.hpp"
#include "simkernel/numerics/workers.hpp"
#include "switchover/target.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::string rest = path ? path : "";
    while (!rest.empty()) {
        const std::string folder = rest.substr(0, rest.find(':'));
        if (std::error_code error; fs::exists(fs::path(folder) / name, error)) return (fs::path(folder) / name).string();
        rest = rest.find(':') == std::string::npos ? "" : rest.substr(rest.find(':') + 1);
    }
    return "";
}

int doctor() {
    bool sound = true;
    Table table({"what", "state", "detail"}, {false, false, false});
    const std::vector<std::string> presets = simkernel::preset_names();
    table.add({"chip presets", presets.empty() ? red("missing") : green("ok"), fmt::format("{}", fmt::join(presets, ", "))});
    sound = sound && !presets.empty();
    for (const switchover::TargetListing& t : switchover::list_targets()) table.add({"target " + t.name, green("ok"), t.text});
    table.add({"vector dispatch", green("ok"), fmt::format("{} (available: {})", simkernel::current_dispatch(), fmt::join(simkernel::available_dispatch(), ", "))});
    table.add({"worker threads", green("ok"), fmt::format("{}", simkernel::worker_count())});
    const char* models = std::getenv("ASSAY_MODELS");
    table.add({"ASSAY_MODELS", models && fs::is_directory(models) ? green("ok") : yellow("optional"),
               models ? models : "not set: tests on real models use ../shared/models or skip"});
    for (const auto& [program, use] : {std::pair{"gtkwave", "shows --wave files"}, {"h5dump", "reads every file we write"}, {"qemu-system-x86_64", "PCI rehearsal (not used yet)"}}) {
        const std::string where = find_program(program);
        table.add({program, where.empty() ? yellow("optional") : green("ok"), where.empty() ? fmt::format("not installed; {}", use) : where});
    }
    fmt::print("{}", table.text());
    return sound ? kPass : kError;
}

}  // namespace

void setup_doctor(CLI::App& app, Command& chosen) {
    app.add_subcommand("doctor", "Report what this installation has and what is optional")->callback([&chosen] { chosen = [] { return doctor(); }; });
}

}  // namespace assay::cli
