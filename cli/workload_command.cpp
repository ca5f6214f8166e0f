// assay workload list, assay workload make
#include <cmath>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "campaign/workload_ranges.hpp"
#include "cli/commands.hpp"
#include "support/error.hpp"
#include "workloads/generate/catalogue.hpp"
#include "workloads/generate/model_writer.hpp"
#include "workloads/generate/quantize.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
namespace gen = workloads::generate;

struct WorkloadOptions {
    std::string kind, out, bn = "folded", calibrate = "run";
    gen::MakeOptions make;
    double width = 0;
    int opset = 0;
    bool json = false;
};

/// "layers 12, hidden 768"
std::string sizes_text(const gen::Dimensions& d) {
    std::vector<std::string> parts;
    for (const gen::DimensionName& each : gen::dimension_names())
        if (d.*each.field != gen::kUnused && !(std::string(each.name) == "width" && d.*each.field == 100))
            parts.push_back(fmt::format("{} {}", each.name, std::string(each.name) == "width" ? fmt::format("{:g}", static_cast<double>(d.*each.field) / 100) : std::to_string(d.*each.field)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string grouped(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), 1, ',');
    return text;
}

int list(const WorkloadOptions& options) {
    nlohmann::json all = nlohmann::json::array();
    Table table({"kind", "parameters", "MAC", "model", "sizes (options of the same name)", "presets"}, {false, true, true, false, false, false});
    for (const gen::Kind& kind : gen::kinds()) {
        const gen::GeneratedModel model = gen::make(kind, {});
        std::vector<std::string> presets;
        for (const auto& [name, sizes] : kind.presets) presets.push_back(name);
        if (options.json) {
            nlohmann::json sizes;
            for (const gen::DimensionName& each : gen::dimension_names())
                if (kind.defaults.*each.field != gen::kUnused) sizes[each.name] = kind.defaults.*each.field;
            all.push_back({{"kind", kind.name}, {"text", kind.text}, {"parameters", model.parameters}, {"macs", model.macs}, {"sizes", sizes}, {"presets", presets}});
        } else {
            table.add({kind.name, grouped(model.parameters), grouped(model.macs), kind.text, sizes_text(kind.defaults), fmt::format("{}", fmt::join(presets, " "))});
        }
    }
    fmt::print("{}", options.json ? all.dump(2) + "\n" : table.text());
    return kPass;
}

int make(WorkloadOptions options) {
    const gen::Kind& kind = gen::find_kind(options.kind);
    options.make.bn_nodes = options.bn == "nodes";
    if (options.opset != 0) options.make.opset = options.opset;
    if (options.width != 0) {
        if (!(options.width >= 0.01 && options.width <= 100)) throw Error(ErrorKind::usage, fmt::format("workload make: --width {}: must be 0.01 to 100", options.width));
        options.make.sizes.width_percent = std::lround(options.width * 100);
    }
    gen::GeneratedModel model = gen::make(kind, options.make);
    if (options.make.dtype == "int8")
        model = gen::quantize(model, options.calibrate == "run" ? campaign::measured_ranges(model) : gen::analytic_ranges(model), {kind.quantise_all});
    const fs::path out = options.out.empty() ? kind.name : options.out;
    const fs::path file = out.extension() == ".onnx" ? out : out / "model.onnx";
    if (file.has_parent_path()) {
        std::error_code error;
        fs::create_directories(file.parent_path(), error);
        if (error) throw Error(ErrorKind::io, fmt::format("--out {}: cannot be made ({})", out.string(), error.message()));
    }
    const fs::path inputs = file.parent_path() / "test_data_set_0";
    gen::write_model(model, file);
    gen::write_inputs(model, inputs);
    const gen::Dimensions sizes = gen::resolve(kind, options.make);
    if (options.json)
        fmt::print("{}\n", nlohmann::json{{"kind", kind.name}, {"model", file.string()}, {"inputs", inputs.string()}, {"parameters", model.parameters},
                                          {"macs", model.macs}, {"weight_bytes", gen::weight_bytes(model)}, {"seed", model.seed}, {"dtype", options.make.dtype}}.dump(2));
    else
        fmt::print("{}: {} ({}), {}, seed {}: {} parameters, {} MAC; inputs in {}\n", file.string(), kind.name, sizes_text(sizes), options.make.dtype, model.seed,
                   grouped(model.parameters), grouped(model.macs), inputs.string());
    return kPass;
}

}  // namespace

void setup_workload(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<WorkloadOptions>();
    CLI::App* workload = app.add_subcommand("workload", "Models of known shapes with seeded weights: any size, nobody's weights");
    workload->require_subcommand(1);
    CLI::App* list_command = workload->add_subcommand("list", "Kinds, their default sizes, parameters and multiply-accumulates");
    list_command->add_flag("--json", options->json, "As JSON");
    list_command->callback([options, &chosen] { chosen = [options] { return list(*options); }; });

    CLI::App* command = workload->add_subcommand("make", "Write an ONNX model with seeded, realistically scaled weights, and inputs for it");
    command->add_option("kind", options->kind, "Kind of model ('assay workload list')")->required();
    command->add_option("-o,--out", options->out, "FILE.onnx, or a folder for model.onnx; inputs go to test_data_set_0 beside it. Default: a folder named after the kind");
    command->add_option("--preset", options->make.preset, "Named sizes, e.g. llama-layer --preset 70b");
    for (const gen::DimensionName& each : gen::dimension_names()) {
        if (std::string(each.name) == "width") command->add_option("--width", options->width, "Multiplier of all channels, e.g. 0.5");
        else command->add_option(std::string("--") + each.name, options->make.sizes.*each.field, each.text);
    }
    command->add_option("--dtype", options->make.dtype, "Weights and activations: float32, float16, bfloat16, or int8 (QuantizeLinear and DequantizeLinear around the layers)")
        ->check(CLI::IsMember({"float32", "float16", "bfloat16", "int8"}))
        ->capture_default_str();
    command->add_option("--calibrate", options->calibrate, "int8: ranges of activations by running the float model on its inputs, or as the builder expects them")
        ->check(CLI::IsMember({"run", "analytic"}))
        ->capture_default_str();
    command->add_option("--opset", options->opset, "Operator set, 13 to 24; default 17 (22 where bfloat16 needs it); from 23 llama uses the attention operators");
    command->add_option("--bn", options->bn, "Batch normalisation folded into convolutions, as deployed, or as nodes")->check(CLI::IsMember({"folded", "nodes"}))->capture_default_str();
    command->add_option("--seed", options->make.seed, "Seed of weights and inputs: equal seeds give equal bytes")->capture_default_str();
    command->add_flag("--json", options->json, "Print what was made as JSON");
    command->callback([options, &chosen] { chosen = [options] { return make(*options); }; });
}

}  // namespace assay::cli
