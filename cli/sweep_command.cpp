// assay sweep: one model over chip parameters.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "campaign/sweep.hpp"
#include "cli/commands.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct SweepCommand {
    campaign::SweepOptions sweep;
    std::vector<std::string> set;
    std::string json;
    bool no_progress = false, no_color = false;
};

std::string table_of(const campaign::SweepReport& report) {
    std::vector<std::string> header;
    std::vector<bool> right;
    for (const campaign::SweepAxis& axis : report.axes) header.push_back(axis.key);
    right.assign(header.size(), true);
    for (const char* title : {"cycles", "ms", "util %", "busy %", "HBM MB", "mJ (estimate)", "verdict"}) {
        header.emplace_back(title);
        right.push_back(header.back() != "verdict");
    }
    Table table(header, right);
    for (const campaign::SweepPoint& p : report.points) {
        std::vector<std::string> row = p.values;
        if (p.measured()) {
            row.insert(row.end(), {std::to_string(p.cycles), fmt::format("{:.4g}", p.milliseconds), fmt::format("{:.1f}", 100 * p.utilisation), fmt::format("{:.1f}", 100 * p.matrix_busy),
                                   fmt::format("{:.4g}", static_cast<double>(p.hbm_bytes) * 1e-6), fmt::format("{:.4g}", p.energy.total_pj() * 1e-9),
                                   p.exit_status == kPass ? green(p.verdict) : red(p.verdict)});
        } else {
            row.insert(row.end(), {"-", "-", "-", "-", "-", "-", red(p.verdict.empty() ? "none" : p.verdict) + ": " + p.reason});
        }
        table.add(row);
    }
    return table.text();
}

/// The worst of the points; when none ran, what the first one said.
int status_of(const campaign::SweepReport& report) {
    bool any = false, failed = false, broken = false;
    for (const campaign::SweepPoint& p : report.points) {
        any = any || p.measured();
        failed = failed || p.exit_status == kFail;
        broken = broken || p.exit_status == kError || p.exit_status >= 128;
    }
    if (failed) return kFail;
    if (broken) return kError;
    return any ? kPass : kUsage;
}

int sweep(SweepCommand& options) {
    allow_color(!options.no_color);
    for (const std::string& text : options.set) options.sweep.axes.push_back(campaign::parse_axis(text));
    if (options.sweep.out_dir.empty()) options.sweep.out_dir = fs::path(options.sweep.model).stem().string() + "-sweep";
    const bool terminal = isatty(STDERR_FILENO);
    if (!options.no_progress)
        options.sweep.progress = [terminal](const std::string& line) { fmt::print(stderr, fmt::runtime(terminal ? "\r\033[K{}" : "assay: sweep: {}\n"), line); };
    const campaign::SweepReport report = campaign::run_sweep(options.sweep);
    if (terminal && !options.no_progress) fmt::print(stderr, "\r\033[K");
    if (options.json == "-") fmt::print("{}", campaign::to_json(report));
    else fmt::print("{}", table_of(report));
    if (!options.json.empty() && options.json != "-") write_file(options.json, campaign::to_json(report));
    const auto reused = std::count_if(report.points.begin(), report.points.end(), [](const auto& p) { return p.reused; });
    fmt::print(stderr, "{} points{}; tables and plots in {}\n", report.points.size(), reused > 0 ? fmt::format(" ({} from an earlier sweep)", reused) : "",
               (fs::path(options.sweep.out_dir) / "sweep.html").string());
    return status_of(report);
}

}  // namespace

void setup_sweep(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<SweepCommand>();
    CLI::App* command = app.add_subcommand("sweep", "Run a model over chip parameters: cycles, utilisation, HBM traffic and an energy estimate, tabulated and plotted");
    campaign::SweepOptions& sweep_options = options->sweep;
    command->add_option("model", sweep_options.model, "ONNX model")->required()->check(CLI::ExistingFile);
    command->add_option("--set", options->set, "KEY=V1,V2,…: a chip parameter, chip, precision, target, or hbm.gbps (repeatable: full factorial)")->required();
    command->add_option("-i,--input", sweep_options.inputs, "Inputs, as for 'assay run'; without it: random by --seed");
    command->add_option("--dim", sweep_options.dims, "Bind a dynamic dimension: NAME=VALUE (repeatable)");
    command->add_option("--chip", sweep_options.chip, "Chip preset or .toml file that the parameters change")->capture_default_str();
    command->add_option("--precision", sweep_options.precision, "Precision policy, as for 'assay run'")->check(CLI::IsMember(workloads::policy_names()))->capture_default_str();
    command->add_option("--target", sweep_options.target, "Target")->capture_default_str();
    command->add_option("--energy", sweep_options.energy, "Table of operation energies: a name in configs/energy, or a .toml file")->capture_default_str();
    command->add_option("--seed", sweep_options.seed, "Seed of everything random")->capture_default_str();
    command->add_flag("--judge", sweep_options.judge, "Judge every tensor of every point too (slower)");
    command->add_option("-j,--jobs", sweep_options.jobs, "Points at once")->check(CLI::Range(1, 256))->capture_default_str();
    command->add_option("--out", sweep_options.out_dir, "Folder for sweep.csv, sweep.json, sweep.html and the finished points. A sweep that was stopped continues there");
    command->add_option("--json", options->json, "Write the points as JSON to FILE, or to standard output with -");
    command->add_flag("--no-progress", options->no_progress, "No progress on standard error");
    command->add_flag("--no-color", options->no_color, "No colour");
    command->callback([options, &chosen] { chosen = [options] { return sweep(*options); }; });
}

}  // namespace assay::cli
