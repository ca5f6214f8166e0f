// assay compare A B --exact
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "golden/judge/compare_files.hpp"

namespace assay::cli {
namespace {

struct CompareCommand {
    std::string a, b;
    bool exact = true;
};

/// A run's folder stands for its tensors.h5.
std::filesystem::path tensors_of(const std::string& path) {
    return std::filesystem::is_directory(path) ? std::filesystem::path(path) / "tensors.h5" : std::filesystem::path(path);
}

int compare(const CompareCommand& options) {
    const golden::FileComparison result = golden::compare_exact(tensors_of(options.a), tensors_of(options.b));
    for (const std::string& difference : result.differences) fmt::print("{}\n", difference);
    fmt::print("{}: {} tensors compared, {} differences\n", result.equal() ? "equal" : "different", result.compared, result.differences.size());
    return result.equal() ? kPass : kFail;
}

}  // namespace

void setup_compare(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<CompareCommand>();
    CLI::App* command = app.add_subcommand("compare", "Compare the tensors of two runs byte for byte; exit status 1 on any difference");
    command->add_option("a", options->a, "tensors.h5, or a run's --out folder")->required();
    command->add_option("b", options->b, "the other")->required();
    command->add_flag("--exact", options->exact, "Bytes, shape and element type of every tensor (the default and only way)");
    command->callback([options, &chosen] { chosen = [options] { return compare(*options); }; });
}

}  // namespace assay::cli
