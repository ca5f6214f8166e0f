// assay demo: the committed digit classifier on the SystemC chip and with the matrix unit in RTL, judged and shown.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "campaign/digits.hpp"
#include "campaign/session.hpp"
#include "campaign/subprocess.hpp"
#include "cli/commands.hpp"
#include "cli/summary.hpp"
#include "golden/judge/compare_files.hpp"
#include "golden/reference/reference.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"
#include "support/onnx/onnx_file.hpp"
#include "support/tensor_io.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct DemoCommand {
    std::string out = "assay-demo", chip = "aurum-edge";
};

struct DemoRun {
    std::string title, model, target, precision;
    fs::path out;
    int status = 0;
    campaign::Predictions chip, cpu;
    nlohmann::json verdict;
};

void run(DemoRun& run, const std::string& chip, const fs::path& digits, const Tensor& labels) {
    const fs::path model = digits / run.model / "model.onnx";
    const fs::path images = digits / "heldout/images.npz";
    fs::create_directories(run.out);
    fmt::print(stderr, "demo: {} …\n", run.title);
    run.status = campaign::run_assay({"run", model.string(), "--input", images.string(), "--chip", chip, "--target", run.target, "--precision", run.precision,
                                      "--sanitize", "--out", run.out.string(), "--trace", (run.out / "trace.json").string(), "--no-progress"},
                                     (run.out / "log.txt").string())
                     .exit_status;
    if (!fs::exists(run.out / "verdict.json"))
        throw Error(ErrorKind::internal, fmt::format("the run ended with status {}:\n{}", run.status, read_text(run.out / "log.txt")));
    run.verdict = nlohmann::json::parse(read_text(run.out / "verdict.json"));
    run.chip = campaign::predict(Hdf5File::open(run.out / "tensors.h5").read_tensor("tensors", "probabilities"), labels);
    const golden::Reference reference(load_onnx(model), model.string());
    const golden::Values values = reference.run({{"image", read_tensors(images).at(0).tensor}});
    run.cpu = campaign::predict(golden::to_tensor(values.at("probabilities")), labels);
}

void show_digits(const DemoRun& run, const Tensor& images, const Tensor& labels) {
    constexpr std::size_t kAcross = 6;
    fmt::print("{}\n{}", bold("Held-out digits, as the chip read them"), campaign::draw(images, 0, kAcross));
    for (std::size_t i = 0; i < kAcross; ++i)
        fmt::print("{:<18}", fmt::format("  read {} (is {})", run.chip.digit[i], labels.integer(static_cast<std::int64_t>(i))));
    fmt::print("\n");
    for (std::size_t i = 0; i < run.chip.digit.size(); ++i)
        if (const auto label = labels.integer(static_cast<std::int64_t>(i)); run.chip.digit[i] != label)
            fmt::print("  misread: image {} is a {}, read as {} ({} on the CPU)\n", i, label, run.chip.digit[i], run.cpu.digit[i]);
    fmt::print("\n");
}

int demo(const DemoCommand& options) {
    allow_color(true);
    const fs::path digits = campaign::digits_folder();
    const Tensor images = read_tensors(digits / "heldout/images.npz").at(0).tensor;
    const Tensor labels = read_tensors(digits / "heldout/labels.npy").at(0).tensor;
    const fs::path out = options.out;
    std::vector<DemoRun> runs{{"int8 on tlm", "int8", "tlm", "native", out / "int8-tlm", 0, {}, {}, {}},
                              {"int8 on hybrid:mxu (matrix unit in RTL)", "int8", "hybrid:mxu", "native", out / "int8-hybrid", 0, {}, {}, {}},
                              {"fp32 as bf16 on tlm", "fp32", "tlm", "bf16", out / "bf16-tlm", 0, {}, {}, {}}};
    for (DemoRun& each : runs) run(each, options.chip, digits, labels);

    show_digits(runs[0], images, labels);
    fmt::print("{}\n{}\n", bold("int8 on tlm, layer by layer"), read_text(runs[0].out / "log.txt"));
    const std::size_t count = runs[0].chip.digit.size();
    Table table({"run", "verdict", "right on chip", "right on CPU (fp64)", "cycles", "host s"}, {false, false, true, true, true, true});
    bool passed = true;
    for (const DemoRun& each : runs) {
        passed = passed && each.status == kPass;
        table.add({each.title, each.status == kPass ? green(each.verdict["verdict"]) : red(each.verdict["verdict"]),
                   fmt::format("{}/{} = {:.2f} %", each.chip.right, count, 100.0 * static_cast<double>(each.chip.right) / static_cast<double>(count)),
                   fmt::format("{}/{} = {:.2f} %", each.cpu.right, count, 100.0 * static_cast<double>(each.cpu.right) / static_cast<double>(count)),
                   std::to_string(each.verdict["cycles"].get<std::uint64_t>()), fmt::format("{:.2f}", each.verdict["seconds"]["device"].get<double>())});
    }
    fmt::print("{}", table.text());
    const golden::FileComparison same = golden::compare_exact(runs[0].out / "tensors.h5", runs[1].out / "tensors.h5");
    fmt::print("{} tensors of int8 on tlm and on the RTL matrix unit: {}\n", same.compared, same.equal() ? green("byte for byte equal") : red("different"));
    fmt::print("Full report: {}\n", fs::absolute(runs[0].out / "report.html").string());
    fmt::print("Trace for ui.perfetto.dev: {}\n", fs::absolute(runs[0].out / "trace.json").string());
    return passed && same.equal() ? kPass : kFail;
}

}  // namespace

void setup_demo(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<DemoCommand>();
    CLI::App* command = app.add_subcommand("demo", "Run the committed digit classifier on tlm and hybrid:mxu and show what the chip read");
    command->add_option("--out", options->out, "Folder for the reports")->capture_default_str();
    command->add_option("--chip", options->chip, "Chip preset or .toml file")->capture_default_str();
    command->callback([options, &chosen] { chosen = [options] { return demo(*options); }; });
}

}  // namespace assay::cli
