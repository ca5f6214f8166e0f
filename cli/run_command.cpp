// assay run
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/summary.hpp"
#include "simkernel/exec/faults.hpp"
#include "simkernel/numerics/workers.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace assay::cli {
namespace {

struct RunCommand {
    ModelOptions model;
    campaign::SessionOptions session;
    std::vector<std::string> faults;
    std::string json;
    unsigned threads = 0;
    bool no_color = false, no_progress = false, verbose = false, quiet = false;
};

int run(RunCommand& options) {
    allow_color(!options.no_color);
    campaign::SessionOptions& session = options.session;
    session.model = options.model.request;
    session.precision = options.model.precision;
    session.target_options.chip = options.model.chip_config();
    session.target_options.seed = session.model.seed;
    session.run.seed = session.model.seed;
    for (const std::string& fault : options.faults) session.run.faults.push_back(simkernel::parse_fault(fault));
    if (options.threads > 0) simkernel::set_worker_count(options.threads);
    const bool terminal = isatty(STDERR_FILENO);
    if (!options.no_progress && (terminal || options.verbose))
        session.progress = [terminal](const std::string& phase) { fmt::print(stderr, fmt::runtime(terminal ? "\r\033[K{} …" : "assay: {}\n"), phase); };
    const campaign::SessionReport report = campaign::run_session(session);
    if (session.progress && terminal) fmt::print(stderr, "\r\033[K");
    if (options.json == "-") fmt::print("{}", campaign::to_json(report));
    else fmt::print("{}", summary(report));
    if (!options.json.empty() && options.json != "-") write_file(options.json, campaign::to_json(report));
    return campaign::exit_status(report.verdict);
}

}  // namespace

void setup_run(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<RunCommand>();
    CLI::App* command = app.add_subcommand("run", "Compile a model, run it on a target, judge every tensor, leave a report");
    options->model.add_to(*command);
    campaign::SessionOptions& session = options->session;
    command->add_option("--target", session.target, "tlm, or hybrid:<units> with the units in Verilated RTL ('assay target list')")->capture_default_str();
    command->add_option("--program", session.program, "Run this compiled program (assay compile -o) instead of compiling");
    command->add_option("--golden", session.golden, "Judge against this golden file (assay golden make) instead of computing it");
    command->add_option("--out", session.out_dir, "Folder for verdict.json, tensors.h5, program.h5, report.html");
    command->add_option("--json", options->json, "Write the verdict as JSON to FILE, or to standard output with -");
    command->add_option("--trace", session.trace_path, "Write a Perfetto trace: one track an engine, one slice a descriptor");
    command->add_option("--wave", session.target_options.wave_path, "Write waves of the RTL unit (FST); hybrid targets only");
    command->add_option("--wave-from", session.target_options.wave_from, "First cycle of the waves, counted from power-on");
    command->add_option("--wave-for", session.target_options.wave_count, "Number of cycles of waves; 0: to the end");
    command->add_flag("--sanitize", session.run.sanitize, "Find races, uninitialised reads, out-of-range accesses and deadlocks");
    command->add_option("--fault", options->faults, std::string("Plant a fault (repeatable):\n") + simkernel::kFaultGrammar);
    command->add_flag("--silicon-shaped", session.target_options.silicon_shaped, "As unfriendly as hardware: no backdoor, random memory after reset, random latencies");
    command->add_flag("--jitter", session.target_options.jitter, "Random extra latencies from --seed: cycles change, values must not");
    command->add_option("--quantum", session.target_options.quantum_cycles, "Temporal decoupling, cycles; changes neither values nor cycles")->capture_default_str();
    command->add_option("--deadline", session.run.deadline_cycles, "Give up after so many device cycles; 0: from the program's size");
    command->add_option("--measure", session.measure, "Time N runs after a first one, without probes, trace or judgement: verdict MEASURED, seconds.device their median");
    command->add_option("--threads", options->threads, "Host threads for values; 0: all cores");
    command->add_flag("-v,--verbose", options->verbose, "Print each phase");
    command->add_flag("--no-color", options->no_color, "No colour");
    command->add_flag("--no-progress", options->no_progress, "No progress on standard error");
    command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace assay::cli
