#pragma once
// One judged run of one model: import, compile, golden, run, judge, and the files it leaves. Prints nothing.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "campaign/model.hpp"
#include "campaign/roofline.hpp"
#include "golden/judge/verdict.hpp"
#include "switchover/runtime.hpp"
#include "switchover/target.hpp"

namespace assay::campaign {

struct SessionOptions {
    ModelRequest model;
    std::string program;                 ///< run this compiled program instead of compiling the model
    std::string target = "tlm";
    switchover::TargetOptions target_options;  ///< chip, seed, silicon_shaped, jitter, wave
    std::string precision = "native";
    std::string golden;                  ///< golden file made before; empty: computed now
    switchover::RunOptions run;
    /// Runs after the first to time, without probes, trace or judgement: the verdict is MEASURED and seconds.device their median. 0: a judged run.
    unsigned measure = 0;
    std::string out_dir;                 ///< empty: only the report is made
    std::string trace_path;              ///< Perfetto
    std::function<void(const std::string&)> progress;  ///< called at the start of each phase; may be empty
};

struct Seconds {
    double import = 0, compile = 0, golden = 0, device = 0, judge = 0, total = 0;
};

struct SessionReport {
    simkernel::Program program;
    switchover::RunResult run;
    std::vector<LayerRoofline> roofline;   ///< by layer; empty without retire records
    switchover::Identity identity;
    golden::RunVerdict judgement;
    golden::Verdict verdict = golden::Verdict::miss;  ///< with the chip's own failures and the sanitizer's findings
    std::string reason;                    ///< one line, when it is not PASS
    std::string first_failing_layer;       ///< of the judgement, or of a corrupt constant; "" when none
    std::string target_error;              ///< typed error of the target, when the run did not end
    simkernel::ChipConfig chip;
    std::string target, precision, data;
    std::uint64_t seed = 0;
    Seconds seconds;
    std::uint64_t peak_rss_bytes = 0;
    std::vector<std::string> artifacts;
    std::vector<std::string> faults;
    std::map<std::string, Tensor> golden_outputs;  ///< by graph output, rounded to its type
    bool random_inputs = false;
    std::vector<double> measured_seconds;          ///< device seconds of each timed run, in order
};

/// Throws Error for what is wrong before the run (usage, bad input, damaged golden, refused writes); what happens on the target is a verdict.
SessionReport run_session(const SessionOptions& options);

/// verdict.json (docs/file-formats.md).
std::string to_json(const SessionReport& report);
/// "none", or how many steps run on the host and their share of the arithmetic.
std::string fallback_text(const simkernel::Program& program);
/// report.html: the same for people, one self-contained page.
std::string to_html(const SessionReport& report);

/// Exit status of a verdict (DESIGN §9).
int exit_status(golden::Verdict verdict);

}  // namespace assay::campaign
