#pragma once
// Subcommands of `assay`. Each setup_* adds its subcommand to the application and stores in `run` what to do when it is chosen; `run`
// returns the exit status. Errors are thrown as assay::Error and mapped in main.cpp.
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace assay::cli {

using Command = std::function<int()>;

void setup_run(CLI::App& app, Command& chosen);
void setup_demo(CLI::App& app, Command& chosen);
void setup_compile(CLI::App& app, Command& chosen);
void setup_check(CLI::App& app, Command& chosen);
void setup_golden(CLI::App& app, Command& chosen);
void setup_compare(CLI::App& app, Command& chosen);
void setup_chip(CLI::App& app, Command& chosen);
void setup_target(CLI::App& app, Command& chosen);
void setup_doctor(CLI::App& app, Command& chosen);
void setup_sweep(CLI::App& app, Command& chosen);
void setup_workload(CLI::App& app, Command& chosen);
void setup_conformance(CLI::App& app, Command& chosen);
void setup_generate(CLI::App& app, Command& chosen);

/// Exit statuses (DESIGN §9).
enum ExitStatus { kPass = 0, kFail = 1, kUsage = 2, kError = 3, kInconclusive = 4 };

/// Colour only on a terminal that wants it.
void allow_color(bool wanted);
std::string green(const std::string& text);
std::string red(const std::string& text);
std::string yellow(const std::string& text);
std::string bold(const std::string& text);

/// Left-aligned text columns, right-aligned numbers: each row printed as one line of at most the terminal's width.
class Table {
public:
    explicit Table(std::vector<std::string> header, std::vector<bool> right);
    void add(std::vector<std::string> row);
    std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
    std::vector<bool> right_;
};

}  // namespace assay::cli
