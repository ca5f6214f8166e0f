#include "campaign/session.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <sys/resource.h>

#include "campaign/host_executor.hpp"
#include "golden/judge/judge_run.hpp"
#include "golden/store/store.hpp"
#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"

namespace assay::campaign {

using golden::Verdict;
namespace fs = std::filesystem;

namespace {

class Stopwatch {
public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const double seconds = std::chrono::duration<double>(now - last_).count();
        last_ = now;
        return seconds;
    }

private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::uint64_t peak_rss() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::string layer_of(const simkernel::Program& program, std::uint32_t descriptor) {
    return descriptor < program.debug.size() ? program.layers[program.debug[descriptor].layer].name : "?";
}

/// What the chip and the sanitizer say, before any value is compared. Empty when both are content.
std::string device_complaint(const SessionReport& report) {
    using namespace simkernel;
    const CompletionRecord& record = report.run.completion;
    if (!report.run.findings.empty()) {
        const Finding& first = report.run.findings.front();
        return fmt::format("{} at descriptor {} (layer '{}'): {}", name_of(first.kind), first.descriptor, layer_of(report.program, first.descriptor), first.text);
    }
    if (record.status == static_cast<std::uint32_t>(JobStatus::done)) {
        if (report.run.corrupt.empty()) return "";
        const switchover::CorruptConstant& first = report.run.corrupt.front();
        return fmt::format("device memory is corrupt: constant '{}' of layer '{}' differs from the program at {:#x}", first.constant,
                           report.program.layers[first.layer].name, first.address);
    }
    const auto code = static_cast<ErrorCode>(record.error_code);
    std::string text = fmt::format("job failed on the chip: {} at descriptor {} (layer '{}', {} engine): {}", simkernel::name_of(code), record.descriptor,
                                   layer_of(report.program, record.descriptor), simkernel::name_of(static_cast<Engine>(record.engine)), text_of(code));
    if (!report.run.post_mortem.empty()) text += "\n" + report.run.post_mortem;
    return text;
}

void decide(SessionReport& report) {
    report.verdict = report.judgement.verdict;
    report.reason = report.judgement.reason;
    if (report.verdict != Verdict::pass && report.reason.empty()) {
        for (const auto* list : {&report.judgement.tensors, &report.judgement.outputs})
            for (const golden::TensorVerdict& t : *list)
                if (t.verdict == report.verdict && report.reason.empty()) report.reason = fmt::format("tensor '{}' (layer '{}'): {}", t.name, t.layer, t.reason);
    }
    if (const std::string complaint = device_complaint(report); !complaint.empty()) {
        report.verdict = golden::worse(report.verdict, Verdict::fail);
        report.reason = complaint;
    }
    report.first_failing_layer = report.judgement.first_failing_layer;
    // A corrupt weight can leave every value right on this input (it met only zeros); its layer is wrong all the same.
    if (!report.run.corrupt.empty()) {
        std::uint32_t first = report.run.corrupt.front().layer;
        for (const switchover::CorruptConstant& c : report.run.corrupt) first = std::min(first, c.layer);
        if (!report.judgement.first_failing || first < *report.judgement.first_failing) report.first_failing_layer = report.program.layers[first].name;
    }
}

void write_tensors(const fs::path& path, const SessionReport& report) {
    write_atomically(path, [&](const fs::path& temporary) {
        Hdf5File file = Hdf5File::create(temporary);
        file.write_attribute("schema", "assay.tensors.1");
        file.write_attribute("model_sha256", report.program.model_sha256);
        for (const auto& [name, tensor] : report.run.tensors) file.write_tensor("tensors", name, tensor);
        file.close();
    });
}

void leave_files(SessionReport& report, const SessionOptions& options) {
    if (!options.trace_path.empty()) {
        switchover::write_perfetto(options.trace_path, report.program, report.run, static_cast<double>(report.chip.clock_mhz));
        report.artifacts.push_back(options.trace_path);
    }
    if (const std::string& wave = options.target_options.wave_path; !wave.empty()) {
        report.artifacts.push_back(wave);
        if (std::error_code error; fs::file_size(wave, error) == 0)
            report.judgement.warnings.push_back(fmt::format("{}: empty: the RTL unit did not run in these cycles (counted from power-on); widen --wave-from and --wave-for", wave));
    }
    if (options.out_dir.empty()) return;
    const fs::path out = options.out_dir;
    write_tensors(out / "tensors.h5", report);
    simkernel::save_program(report.program, out / "program.h5");
    for (const char* name : {"tensors.h5", "program.h5", "report.html", "verdict.json"}) report.artifacts.push_back((out / name).string());
    write_file(out / "report.html", to_html(report));
    write_file(out / "verdict.json", to_json(report));
}

void prepare_folder(const std::string& out_dir) {
    if (out_dir.empty()) return;
    std::error_code error;
    fs::create_directories(out_dir, error);
    if (error || !fs::is_directory(out_dir)) throw Error(ErrorKind::io, fmt::format("--out {}: cannot be made ({})", out_dir, error.message()));
    write_file(fs::path(out_dir) / ".probe", "");  // a read-only folder is found before the work, not after it
    fs::remove(fs::path(out_dir) / ".probe");
}

/// The same program on the same target again and again, nothing judged.
void measure(SessionReport& report, const LoadedModel& model, const SessionOptions& options) {
    switchover::RunOptions run = options.run;
    run.host = execute_host_step;
    run.trace = false;
    const std::unique_ptr<switchover::Target> target = switchover::make_target(options.target, options.target_options);
    if (const auto identity = target->identity(); identity.ok()) report.identity = identity.value();
    report.verdict = Verdict::measured;
    for (unsigned i = 0; i <= options.measure; ++i) {
        if (options.progress) options.progress(fmt::format("run {} of {} on {}", i, options.measure, options.target));
        switchover::Result<switchover::RunResult> ran = switchover::Runtime(*target).run(report.program, model.data.inputs, run);
        if (!ran.ok()) {
            report.verdict = Verdict::error;
            report.reason = report.target_error = fmt::format("{}: {}", switchover::name_of(ran.error().kind), ran.error().text);
            return;
        }
        report.run = std::move(ran.value());
        if (const std::string complaint = device_complaint(report); !complaint.empty()) {
            report.verdict = Verdict::fail;
            report.reason = complaint;
            return;
        }
        if (i > 0) report.measured_seconds.push_back(report.run.device_seconds);
    }
    std::vector<double> sorted = report.measured_seconds;
    std::sort(sorted.begin(), sorted.end());
    report.seconds.device = sorted[sorted.size() / 2];
    report.peak_rss_bytes = peak_rss();
}

}  // namespace

SessionReport run_session(const SessionOptions& options) {
    SessionReport report;
    Stopwatch total, phase;
    const auto progress = [&](const std::string& text) {
        if (options.progress) options.progress(text);
    };
    prepare_folder(options.out_dir);
    report.chip = options.target_options.chip;
    report.target = options.target;
    report.precision = options.precision;
    report.seed = options.model.seed;
    for (const simkernel::FaultSpec& fault : options.run.faults) report.faults.push_back(fault.text);

    progress("import");
    const LoadedModel model = load_model(options.model);
    std::optional<golden::Reference> made;
    if (options.measure == 0) made.emplace(model.proto, options.model.model, model.data.inputs);
    report.data = model.data.text;
    report.random_inputs = model.random_inputs;
    report.seconds.import = phase.lap();

    progress("compile");
    if (options.program.empty()) {
        workloads::CompileOptions compile = compile_options(model, options.model, report.chip, options.precision);
        if (options.measure > 0) compile.probes_all = false;
        report.program = workloads::compile(*model.proto, model.source, compile);
    } else {
        report.program = simkernel::load_program(options.program);
        if (report.program.model_sha256 != model.source.sha256)
            throw Error(ErrorKind::bad_input, fmt::format("{}: was compiled from another model (SHA-256 {}…, {} is {}…)", options.program,
                                                          report.program.model_sha256.substr(0, 8), options.model.model, model.source.sha256.substr(0, 8)));
        report.precision = report.program.precision;
    }
    report.seconds.compile = phase.lap();

    if (options.measure > 0) {
        measure(report, model, options);
        report.seconds.total = total.lap();
        return report;
    }

    progress("golden");
    const golden::Reference& reference = *made;
    golden::Values values;
    if (options.golden.empty()) values = reference.run(model.data.inputs);
    else
        values = golden::from_stored(golden::load_golden_for(options.golden, model.source.sha256, golden::hash_inputs(model.data.inputs)).tensors);
    for (const std::string& name : reference.outputs())
        if (const auto found = values.find(name); found != values.end()) report.golden_outputs[name] = golden::to_tensor(found->second);
    report.seconds.golden = phase.lap();

    progress(fmt::format("run on {}", options.target));
    const std::unique_ptr<switchover::Target> target = switchover::make_target(options.target, options.target_options);
    switchover::RunOptions run_options = options.run;
    run_options.host = execute_host_step;
    switchover::Result<switchover::RunResult> ran = switchover::Runtime(*target).run(report.program, model.data.inputs, run_options);
    if (const auto identity = target->identity(); identity.ok()) report.identity = identity.value();
    if (ran.ok()) {
        report.run = std::move(ran.value());
    } else {
        report.target_error = fmt::format("{}: {}", switchover::name_of(ran.error().kind), ran.error().text);
        report.verdict = Verdict::error;
        report.reason = report.target_error;
    }
    report.seconds.device = report.run.device_seconds;
    report.roofline = roofline(report.program, report.run, report.chip);
    phase.lap();

    if (ran.ok()) {
        progress("judge");
        report.judgement = golden::judge_run({report.program, reference, model.data.inputs, report.run.tensors, report.run.unwritten,
                                              model.data.expected.empty() ? nullptr : &model.data.expected,
                                              options.golden.empty() ? nullptr : &values, options.golden.empty() ? &values : nullptr});
        decide(report);
    }
    report.seconds.judge = phase.lap();
    report.seconds.total = total.lap();
    report.peak_rss_bytes = peak_rss();
    leave_files(report, options);
    return report;
}

int exit_status(Verdict verdict) {
    switch (verdict) {
        case Verdict::fail: return 1;
        case Verdict::error: case Verdict::miss: return 3;
        case Verdict::inconclusive: return 4;
        case Verdict::pass: case Verdict::measured: case Verdict::skip: return 0;
    }
    return 3;
}

}  // namespace assay::campaign
