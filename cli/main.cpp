// assay: argument parsing and printing. One place catches errors and maps their kind to the exit status.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "support/error.hpp"

namespace {

constexpr const char* kAbout =
    "Assay: pre-silicon testbench for AI accelerators. Compiles an ONNX model for a chip, runs it on a SystemC model of the chip\n"
    "(or with units of it in Verilated RTL), and judges every tensor against an fp64 reference.\n\n"
    "  assay demo                                        the committed digit classifier, end to end\n"
    "  assay run model.onnx --input test_data_set_0      one model, one verdict\n"
    "  assay run model.onnx --target hybrid:mxu          the same with the matrix unit in RTL\n\n"
    "Exit status: 0 pass, 1 fail (wrong values, race, deadlock), 2 bad usage or input file, 3 error (damaged golden, broken target),\n"
    "4 inconclusive.";

int status_of(assay::ErrorKind kind) {
    using assay::ErrorKind;
    switch (kind) {
        case ErrorKind::usage: case ErrorKind::bad_input: return assay::cli::kUsage;
        case ErrorKind::damaged: case ErrorKind::io: case ErrorKind::internal: return assay::cli::kError;
    }
    return assay::cli::kError;
}

}  // namespace

int main(int argc, char** argv) {
    // The library greets on standard output otherwise, which is for results.
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
    CLI::App app{kAbout, "assay"};
    app.require_subcommand(1);
    app.set_version_flag("--version", "assay " ASSAY_VERSION);
    app.get_formatter()->column_width(34);
    assay::cli::Command chosen;
    try {
        using namespace assay::cli;
        for (auto* setup : {&setup_demo, &setup_run, &setup_compile, &setup_check, &setup_golden, &setup_compare, &setup_chip, &setup_target, &setup_workload, &setup_doctor, &setup_conformance, &setup_generate,
                            &setup_sweep})
            setup(app, chosen);
        app.parse(argc, argv);
        return chosen();
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? assay::cli::kPass : assay::cli::kUsage;
    } catch (const assay::Error& error) {
        fmt::print(stderr, "assay: {}\n", error.what());
        return status_of(error.kind());
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "assay: out of memory; give the machine more or the model smaller shapes\n");
        return assay::cli::kError;
    } catch (const std::exception& error) {
        fmt::print(stderr, "assay: internal error: {}\n", error.what());
        return assay::cli::kError;
    }
}

/// libsystemc names it; we keep our own main and drive the kernel through systemc/chip.hpp.
int sc_main(int, char**) { return 0; }
