// assay golden make|show|verify
#include <ctime>
#include <filesystem>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "golden/reference/reference.hpp"
#include "golden/store/store.hpp"

namespace assay::cli {
namespace {

struct GoldenCommand {
    campaign::ModelRequest request;
    std::string out = ".", file;
};

int make(const GoldenCommand& options) {
    const campaign::LoadedModel model = campaign::load_model(options.request);
    const golden::Reference reference(model.proto, options.request.model, model.data.inputs);
    golden::Golden made;
    made.provenance.model_path = options.request.model;
    made.provenance.model_sha256 = model.source.sha256;
    made.provenance.input_sha256 = golden::hash_inputs(model.data.inputs);
    made.provenance.producer = "assay " ASSAY_VERSION " fp64 reference";
    if (model.random_inputs) made.provenance.seed = std::to_string(options.request.seed);
    made.provenance.date = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
    made.inputs = model.data.inputs;
    made.tensors = golden::to_stored(reference.run(model.data.inputs));
    const std::filesystem::path path = options.out.ends_with(".h5") ? std::filesystem::path(options.out)
                                                                  : golden::golden_path(options.out, made.provenance.model_sha256, made.provenance.input_sha256);
    golden::save_golden(path, made);
    for (const std::string& warning : reference.warnings()) fmt::print(stderr, "assay: warning: {}\n", warning);
    fmt::print("{}: {} tensors; manifest {}\n", path.string(), made.tensors.size(), golden::manifest_path(path).string());
    return kPass;
}

int verify(const GoldenCommand& options) {
    const std::vector<std::string> problems = golden::verify_golden(options.file);
    for (const std::string& problem : problems) fmt::print("{}\n", problem);
    if (problems.empty()) fmt::print("{}: sound\n", options.file);
    return problems.empty() ? kPass : kError;
}

}  // namespace

void setup_golden(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<GoldenCommand>();
    CLI::App* golden = app.add_subcommand("golden", "Make, show or verify golden files (fp64 reference values with checksums)");
    golden->require_subcommand(1);
    CLI::App* make_command = golden->add_subcommand("make", "Compute every tensor of a model in fp64 and store it");
    make_command->add_option("model", options->request.model, "ONNX model")->required();
    make_command->add_option("-i,--input", options->request.inputs, "Inputs, as for 'assay run'");
    make_command->add_option("--seed", options->request.seed, "Seed of random inputs")->capture_default_str();
    make_command->add_option("-o,--out", options->out, "Folder (the name is made from the hashes) or a .h5 file")->capture_default_str();
    make_command->callback([options, &chosen] { chosen = [options] { return make(*options); }; });
    CLI::App* show_command = golden->add_subcommand("show", "Provenance and tensors of a golden file");
    show_command->add_option("file", options->file, "Golden file")->required();
    show_command->callback([options, &chosen] {
        chosen = [options] {
            fmt::print("{}", golden::show_golden(options->file));
            return static_cast<int>(kPass);
        };
    });
    CLI::App* verify_command = golden->add_subcommand("verify", "Check every tensor of a golden file against its manifest");
    verify_command->add_option("file", options->file, "Golden file")->required();
    verify_command->callback([options, &chosen] { chosen = [options] { return verify(*options); }; });
}

}  // namespace assay::cli
