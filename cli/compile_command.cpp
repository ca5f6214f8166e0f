// assay compile, assay check
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "simkernel/program.hpp"

namespace assay::cli {
namespace {

struct CompileCommand {
    ModelOptions model;
    std::string out;
    bool dump = false;
};

void dump(const simkernel::Program& program) {
    fmt::print("# {} for {} ({}), {} descriptors, {} bytes of device memory\n", program.model_path, program.chip, program.precision,
               program.descriptors.size(), program.hbm_bytes);
    for (const simkernel::TensorSlot& t : program.tensors)
        fmt::print("# tensor {} {} {} {} at {:#x}\n", t.name, name_of(t.dtype), to_string(t.shape), simkernel::name_of(t.role), t.addr.value);
    for (const simkernel::ConstantSlot& c : program.constant_slots)
        fmt::print("# constant {} {} {} bytes at {:#x}{}\n", c.name, simkernel::name_of(c.dtype), c.bytes, c.addr.value, c.elements.empty() ? "" : " (weight)");
    std::uint32_t layer = UINT32_MAX;
    for (std::uint32_t i = 0; i < program.descriptors.size(); ++i) {
        if (program.debug[i].layer != layer) {
            layer = program.debug[i].layer;
            const simkernel::Layer& l = program.layers[layer];
            fmt::print("\n# layer {} {} ({}, {}): {} MAC; {}\n", layer, l.name, l.op, l.precision, l.macs, l.mapping);
        }
        fmt::print("{}\n", simkernel::disassemble(i, program.descriptors[i]));
    }
}

int compile(const CompileCommand& options) {
    campaign::ModelRequest request = options.model.request;
    request.need_data = false;
    const campaign::LoadedModel model = campaign::load_model(request);
    const simkernel::Program program =
        workloads::compile(*model.proto, model.source, campaign::compile_options(model, request, options.model.chip_config(), options.model.precision));
    if (!options.out.empty()) simkernel::save_program(program, options.out);
    if (options.dump) {
        dump(program);
    } else {
        std::uint64_t macs = 0;
        for (const simkernel::Layer& layer : program.layers) macs += layer.macs;
        fmt::print("{}: {} layers, {} descriptors, {} MAC, {} bytes of device memory{}\n", request.model, program.layers.size(),
                   program.descriptors.size(), macs, program.hbm_bytes, options.out.empty() ? "" : "; program in " + options.out);
    }
    return kPass;
}

int check(const CompileCommand& options) {
    campaign::ModelRequest request = options.model.request;
    request.need_data = false;
    const campaign::LoadedModel model = campaign::load_model(request);
    const workloads::CheckReport report =
        workloads::check(*model.proto, model.source, campaign::compile_options(model, request, options.model.chip_config(), options.model.precision));
    for (const workloads::Problem& problem : report.problems) fmt::print("{}\n", problem.text);
    for (const workloads::Problem& node : report.fallback) fmt::print("{}\n", node.text);
    if (!report.problems.empty()) return kUsage;
    if (report.fallback.empty()) fmt::print("{}: every node runs on {}; no host fallback\n", request.model, options.model.chip);
    else fmt::print("{}: {} nodes run on the host, {:.2f} % of the arithmetic; the rest on {}\n", request.model, report.fallback.size(), 100 * report.host_share, options.model.chip);
    return kPass;
}

}  // namespace

void setup_compile(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<CompileCommand>();
    CLI::App* command = app.add_subcommand("compile", "Compile a model for a chip into a program that runs unchanged on every target");
    options->model.add_to(*command);
    command->add_option("-o,--out", options->out, "Write the program here (HDF5)");
    command->add_flag("--dump", options->dump, "Print tensors, constants and every descriptor, layer by layer");
    command->callback([options, &chosen] { chosen = [options] { return compile(*options); }; });
}

void setup_check(CLI::App& app, Command& chosen) {
    auto options = std::make_shared<CompileCommand>();
    CLI::App* command = app.add_subcommand("check", "List everything in a model that could not be compiled, before anything runs");
    options->model.add_to(*command);
    command->callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace assay::cli
