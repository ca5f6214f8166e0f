// assay target list
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "switchover/target.hpp"

namespace assay::cli {

void setup_target(CLI::App& app, Command& chosen) {
    CLI::App* target = app.add_subcommand("target", "Targets that programs run on");
    target->require_subcommand(1);
    target->add_subcommand("list", "List the targets of this build")->callback([&chosen] {
        chosen = [] {
            Table table({"target", "what it is"}, {false, false});
            for (const switchover::TargetListing& t : switchover::list_targets()) table.add({t.name, t.text});
            fmt::print("{}", table.text());
            return static_cast<int>(kPass);
        };
    });
}

}  // namespace assay::cli
