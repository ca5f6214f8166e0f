// assay generate
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "campaign/generate.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "support/files.hpp"

namespace assay::cli {
namespace {

struct GenerateCommand {
    ModelOptions model;
    campaign::GenerateOptions generate;
    std::string reference, json;
};

/// Where the text first differs from a reference; the reference may go on longer.
bool same_as(const std::string& text, const std::string& reference) {
    const std::size_t common = std::min(text.size(), reference.size());
    const auto differs = std::mismatch(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(common), reference.begin()).first;
    const auto at = static_cast<std::size_t>(differs - text.begin());
    if (at == common) {
        fmt::print("the first {} bytes are those of the reference\n", common);
        return common > 0;
    }
    fmt::print("{}: byte {} differs from the reference: '{}' instead of '{}', after '…{}'\n", yellow("differs"), at, text.substr(at, 24), reference.substr(at, 24),
               text.substr(at < 24 ? 0 : at - 24, std::min<std::size_t>(at, 24)));
    return false;
}

int run(GenerateCommand& command) {
    campaign::GenerateOptions& options = command.generate;
    options.model = command.model.request;
    options.precision = command.model.precision;
    options.target_options.chip = command.model.chip_config();
    const bool quiet = command.json == "-";
    if (!quiet)
        options.on_text = [](const std::string& piece) {
            fmt::print("{}", piece);
            std::fflush(stdout);
        };
    const campaign::GenerateReport report = campaign::generate(options);
    if (!command.json.empty() && command.json != "-") write_file(command.json, campaign::to_json(report));
    if (quiet) {
        fmt::print("{}", campaign::to_json(report));
        return kPass;
    }
    std::uint64_t cycles = 0;
    for (const std::uint64_t c : report.cycles) cycles += c;
    fmt::print("\n\n{} tokens on {} ({}, {}): {:.0f} tokens/s at {} MHz, {} cycles a token ({} to {}; uncalibrated)\n", report.cycles.size(), report.target, report.chip.name,
               report.precision, report.tokens_per_second(), report.chip.clock_mhz, report.cycles.empty() ? 0 : cycles / report.cycles.size(),
               report.cycles.empty() ? 0 : *std::min_element(report.cycles.begin(), report.cycles.end()),
               report.cycles.empty() ? 0 : *std::max_element(report.cycles.begin(), report.cycles.end()));
    fmt::print("state stayed in device memory for {} of {} steps; {:.2f} % of the arithmetic on the host\n", report.resident_steps, report.cycles.size(),
               report.operations ? 100.0 * static_cast<double>(report.host_operations) / static_cast<double>(report.operations) : 0.0);
    std::vector<std::pair<std::uint64_t, std::string>> shares;
    for (const auto& [op, spent] : report.cycles_by_operator) shares.push_back({spent, op});
    std::sort(shares.rbegin(), shares.rend());
    Table table({"operator", "cycles", "%"}, {false, true, true});
    for (const auto& [spent, op] : shares)
        if (spent > 0) table.add({op, std::to_string(spent), fmt::format("{:.1f}", 100.0 * static_cast<double>(spent) / static_cast<double>(cycles))});
    fmt::print("{}", table.text());
    fmt::print("host seconds: compile {:.2f}, device {:.2f}, host steps {:.2f}, total {:.2f}\n", report.compile_seconds, report.device_seconds, report.host_seconds,
               report.total_seconds);
    if (command.reference.empty()) return kPass;
    return same_as(report.text, read_text(command.reference)) ? kPass : kFail;
}

}  // namespace

void setup_generate(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<GenerateCommand>();
    CLI::App* command = app.add_subcommand("generate", "Decode token by token on a target, greedily, with the KV cache resident in device memory");
    options->model.add_to(*command);
    campaign::GenerateOptions& g = options->generate;
    command->add_option("--tokenizer", g.tokenizer, "Vocabulary in llama2.c's format (tok512.bin); without it tokens are numbers");
    command->add_option("--prompt", g.prompt, "Text to begin with");
    command->add_option("--loop,--steps", g.steps, "Tokens fed, those of the prompt included")->capture_default_str();
    command->add_option("--carry", g.carry, "OUTPUT=INPUT carried from step to step, '*' or '.*' for the same text on both sides (repeatable)")->capture_default_str();
    command->add_option("--token", g.token_input, "Input that takes tokens; default: the integer input that is no position");
    command->add_option("--position", g.position_input, "Input that takes the position; default: the one with 'pos' in its name");
    command->add_option("--logits", g.logits_output, "Output with the logits; default: the first that is not carried");
    command->add_option("--target", g.target, "Target to run on")->capture_default_str();
    command->add_flag("--sanitize", g.sanitize, "Find races, uninitialised reads and out-of-range accesses");
    command->add_option("--reference", options->reference, "Text to compare with, byte by byte: exit 1 where it first differs");
    command->add_option("--json", options->json, "Write tokens, cycles and shares as JSON to FILE, or to standard output with -");
    command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

}  // namespace assay::cli
