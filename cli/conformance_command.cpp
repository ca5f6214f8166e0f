// assay conformance onnx
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "campaign/conformance.hpp"
#include "cli/commands.hpp"
#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "workloads/precision/policy.hpp"

namespace assay::cli {
namespace {

using campaign::VectorOutcome;
using Status = VectorOutcome::Status;

struct ConformanceCommand {
    campaign::ConformanceOptions options;
    std::string chip = "aurum-edge", json, junit;
    bool no_progress = false, list = false;
};

std::string by_operator(const campaign::ConformanceReport& report) {
    struct Row {
        std::size_t device = 0, host = 0, failed = 0, unsupported = 0;
    };
    std::map<std::string, Row> rows;
    for (const VectorOutcome& v : report.vectors) {
        Row& row = rows[v.op.empty() ? "?" : v.op];
        if (v.status == Status::passed) ++(v.on_host ? row.host : row.device);
        else if (v.status == Status::unsupported) ++row.unsupported;
        else ++row.failed;
    }
    Table table({"operator", "passed on device", "passed with fallback", "failed", "unsupported"}, {false, true, true, true, true});
    const auto number = [](std::size_t n) { return n == 0 ? std::string(".") : std::to_string(n); };
    for (const auto& [op, row] : rows) table.add({op, number(row.device), number(row.host), number(row.failed), number(row.unsupported)});
    return table.text();
}

int run(ConformanceCommand& command) {
    command.options.target_options.chip = simkernel::find_chip_config(command.chip);
    const bool terminal = isatty(STDERR_FILENO);
    if (!command.no_progress)
        command.options.progress = [terminal](std::size_t done, std::size_t total) {
            if (terminal) fmt::print(stderr, "\r\033[K{} of {} vectors", done, total);
            else if (done % 100 == 0 || done == total) fmt::print(stderr, "assay: {} of {} vectors\n", done, total);
        };
    const campaign::ConformanceReport report = campaign::run_conformance(command.options);
    if (terminal && !command.no_progress) fmt::print(stderr, "\r\033[K");
    if (!command.junit.empty()) write_file(command.junit, campaign::conformance_junit(report));
    if (!command.json.empty() && command.json != "-") write_file(command.json, campaign::conformance_json(report));
    const std::size_t passed = report.count(Status::passed), failed = report.count(Status::failed) + report.count(Status::crashed);
    if (command.json == "-") {
        fmt::print("{}", campaign::conformance_json(report));
    } else {
        fmt::print("{}\n", by_operator(report));
        for (const VectorOutcome& v : report.vectors)
            if (v.status == Status::failed || v.status == Status::crashed) fmt::print("{} {} ({}): {}\n", red(std::string(name_of(v.status))), v.name, v.op, v.reason);
            else if (command.list && v.status == Status::unsupported) fmt::print("unsupported {}: {}\n", v.name, v.reason);
        fmt::print("{}: {} vectors on {} ({}, {}): {} passed ({} on the device alone, {} with host fallback), {} failed ({} crashed), {} unsupported\n", report.folder,
                   report.vectors.size(), report.target, report.chip, report.precision, passed, report.passed_on_device(), passed - report.passed_on_device(), failed,
                   report.count(Status::crashed), report.count(Status::unsupported));
    }
    if (failed > 0) return kFail;
    return passed > 0 ? kPass : kError;  // nothing was judged: MISS
}

}  // namespace

void setup_conformance(CLI::App& app, Command& chosen) {
    CLI::App* suite = app.add_subcommand("conformance", "Run published operator vectors through compiler and target");
    suite->require_subcommand(1);
    auto options = std::make_shared<ConformanceCommand>();
    CLI::App* command = suite->add_subcommand("onnx", "ONNX node vectors: passed, failed and unsupported by operator; exit 1 when one fails");
    command->add_option("folder", options->options.folder, "Folder of vectors (<name>/model.onnx with test_data_set_*); default: the system's ONNX test data");
    command->add_option("--target", options->options.target, "Target to run on")->capture_default_str();
    command->add_option("--chip", options->chip, "Chip preset or .toml file")->capture_default_str();
    command->add_option("--precision", options->options.precision, "Precision policy")->check(CLI::IsMember(workloads::policy_names()))->capture_default_str();
    command->add_option("--filter", options->options.filter, "Only vectors whose name contains this");
    command->add_option("--rtol", options->options.rtol, "Relative tolerance of floats (ONNX's own: 1e-3)")->capture_default_str();
    command->add_option("--atol", options->options.atol, "Absolute tolerance of floats (ONNX's own: 1e-7)")->capture_default_str();
    command->add_option("--jobs", options->options.jobs, "Processes")->capture_default_str();
    command->add_option("--timeout", options->options.timeout_seconds, "Seconds for one vector")->capture_default_str();
    command->add_flag("--sanitize", options->options.sanitize, "Find races, uninitialised reads and out-of-range accesses");
    command->add_flag("--list", options->list, "Print each unsupported vector with its reason");
    command->add_option("--json", options->json, "Write the results as JSON to FILE, or to standard output with -");
    command->add_option("--junit", options->junit, "Write a JUnit XML file");
    command->add_flag("--no-progress", options->no_progress, "No progress on standard error");
    command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace assay::cli
