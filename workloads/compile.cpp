#include "workloads/compile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "simkernel/chip_config.hpp"
#include "support/error.hpp"
#include "workloads/lower/host.hpp"
#include "workloads/lower/lower.hpp"
#include "workloads/onnx/import.hpp"
#include "workloads/passes/decompose/decompose.hpp"
#include "workloads/passes/passes.hpp"
#include "workloads/precision/policy.hpp"
#include "workloads/schedule/semaphores.hpp"

namespace assay::workloads {
namespace {

/// Nodes that some graph output needs.
std::vector<bool> live_nodes(const Graph& graph) {
    std::vector<bool> live(static_cast<std::size_t>(graph.node_count()), false);
    std::vector<ValueId> open = graph.outputs;
    while (!open.empty()) {
        const ValueId value = open.back();
        open.pop_back();
        const NodeId producer = graph.value(value).producer;
        if (producer < 0 || live[static_cast<std::size_t>(producer)]) continue;
        live[static_cast<std::size_t>(producer)] = true;
        for (const ValueId input : graph.node(producer).inputs)
            if (input != kNoValue) open.push_back(input);
        open.insert(open.end(), graph.node(producer).captures.begin(), graph.node(producer).captures.end());
    }
    return live;
}

class Compilation {
public:
    Compilation(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options)
        : graph_(import_model(model, source, options)), options_(options), source_(source) {
        find_policy(options.precision);  // throws on an unknown one
        if (options.cores < 1 || options.cores > static_cast<std::uint64_t>(options.chip.cores))
            throw Error(ErrorKind::usage, fmt::format("cores = {}: '{}' has {}; use 1 to {}", options.cores, options.chip.name, options.chip.cores, options.chip.cores));
        // The loads and the stores of each core may signal others.
        if (options.cores > 1 && 2 * static_cast<std::int64_t>(options.cores) > options.chip.semaphores)
            throw Error(ErrorKind::usage, fmt::format("cores = {}: they need {} shared semaphores, '{}' has {}; use --cores {} or --set semaphores={}", options.cores,
                                                      2 * options.cores, options.chip.name, options.chip.semaphores, options.chip.semaphores / 2, 2 * options.cores));
        std::vector<NodeError> errors;
        infer_and_fold(graph_, errors);
        decompose(graph_, errors);
        for (const NodeError& error : errors) report(error);
    }

    /// Emits every layer that can be, on the chip or else on the host; reports each node that neither runs.
    void lower() {
        lowering_.emplace(graph_, options_);
        const auto live = live_nodes(graph_);
        for (const ValueId input : graph_.inputs)
            if (!graph_.is_constant(input)) lowering_->place_input(input);
        for (const ValueId output : graph_.outputs) lower_host_output(*lowering_, output);
        std::int64_t position = -1;
        for (const NodeId id : graph_.topological_order()) {
            const Node& node = graph_.node(id);
            if (position++; position > 0) lowering_->release_dead(position - 1);
            if (!live[static_cast<std::size_t>(id)] || !ready(node)) continue;
            lower_somewhere(id);
        }
    }

    CheckReport check_report() {
        CheckReport report;
        report.problems = problems();
        for (const simkernel::HostStep& step : lowering_->program.host_steps) {
            const simkernel::Layer& layer = lowering_->program.layers[step.layer];
            report.fallback.push_back({layer.nodes.empty() ? -1 : layer.nodes.back(), layer.name, layer.op,
                                       fmt::format("{}: node '{}' ({}): runs on the host: {}", graph_.file, layer.name, layer.op, step.reason)});
        }
        report.host_share = simkernel::host_share(lowering_->program);
        return report;
    }

    simkernel::Program finish() {
        simkernel::Program program = std::move(lowering_->program);
        std::vector<Item>& stream = lowering_->emitter.stream();
        const std::vector<std::uint32_t> place = insert_semaphores(stream);
        for (simkernel::Layer& layer : program.layers) {
            const std::uint32_t end = layer.first_descriptor + layer.descriptor_count;
            layer.first_descriptor = place[layer.first_descriptor];
            layer.descriptor_count = place[end] - layer.first_descriptor;
        }
        for (simkernel::HostStep& step : program.host_steps) step.before = place[step.before];
        program.descriptors.reserve(stream.size());
        for (const Item& item : stream) {
            program.descriptors.push_back(item.words);
            program.debug.push_back({item.layer, item.tile});
        }
        program.chip = options_.chip.name;
        program.config_hash = simkernel::config_hash(options_.chip);
        program.precision = options_.precision;
        program.model_path = source_.path;
        program.model_sha256 = source_.sha256;
        for (const auto& [name, value] : graph_.bound_inputs) program.bound_inputs.push_back({name, value});
        return program;
    }

    std::vector<Problem> problems() {
        std::sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) { return a.node < b.node; });
        return problems_;
    }

private:
    /// What no lowering of a device layer does; empty when there is nothing of the kind.
    std::string beyond_lowering(const Node& node) const {
        const auto wanted = [&](ValueId v) { return v != kNoValue && (graph_.value(v).is_output || !graph_.consumers(v).empty()); };
        if (node.outputs.empty() || node.outputs[0] == kNoValue) return "its first output is left out";
        if (node.op != "Split" && std::any_of(node.outputs.begin() + 1, node.outputs.end(), wanted)) return "outputs beyond the first are asked for";
        if (node.op == "Dropout" && node.input(2) != kNoValue && !(graph_.is_constant(node.input(2)) && graph_.value(node.input(2)).constant->integer(0) == 0))
            return "training mode";
        return "";
    }

    void lower_somewhere(NodeId id) {
        const Node& node = graph_.node(id);
        if (node.folded || lowering_->done.contains(id)) return;
        const Lowering::Mark mark = lowering_->mark();
        std::string reason;
        try {
            // A constant without elements is an absent parameter (Resize's roi): the lowerings know what it means.
            const auto dynamic = [&](ValueId v) { return v != kNoValue && (graph_.value(v).dynamic || (graph_.value(v).known && !graph_.value(v).constant && element_count(graph_.value(v).shape) == 0)); };
            if (std::any_of(node.outputs.begin(), node.outputs.end(), dynamic) || std::any_of(node.inputs.begin(), node.inputs.end(), dynamic))
                throw NodeError(id, "the shape of its tensors is known at run time only, or they have no elements");
            if (const std::string text = beyond_lowering(node); !text.empty()) throw NodeError(id, text);
            return lower_node(*lowering_, id);
        } catch (const MalformedNode& error) {
            lowering_->rollback(mark);
            return report(error);
        } catch (const NodeError& error) {
            reason = error.what();
            lowering_->rollback(mark);
        }
        try {
            lower_to_host(*lowering_, id, reason);
        } catch (const NodeError& error) {
            report(error);
        }
    }

    void problem_at_model(const std::string& text) { problems_.push_back({-1, "", "", graph_.file + ": " + text}); }
    void report(const NodeError& error) {
        const NodeId id = error.node;
        if (id < 0) return problem_at_model(error.what());
        const Node& node = graph_.node(id);
        if (!reported_.insert(id).second) return;
        const std::string op = op_with_version(node, graph_.opset);
        problems_.push_back({node.index, node.name, op, fmt::format("{}: node '{}' ({}): {}", graph_.file, node.name, op, error.what())});
    }
    /// False when an input was not computed because an earlier node failed: that one was reported, this one is not at fault.
    bool ready(const Node& node) const {
        if (node.folded) return false;
        for (const ValueId input : node.inputs)
            if (input != kNoValue && !held(input)) return false;
        if (!std::all_of(node.captures.begin(), node.captures.end(), [&](ValueId v) { return held(v); })) return false;
        return std::all_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId v) { return v == kNoValue || graph_.value(v).known || v != node.outputs[0]; });
    }

    bool held(ValueId value) const {
        return graph_.value(value).constant || lowering_->has_view(value) || lowering_->on_host(value);
    }

    Graph graph_;
    const CompileOptions& options_;
    ModelSource source_;
    std::optional<Lowering> lowering_;
    std::vector<Problem> problems_;
    std::set<NodeId> reported_;
};

}  // namespace

CheckReport check(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options) {
    Compilation compilation(model, source, options);
    compilation.lower();
    return compilation.check_report();
}

simkernel::Program compile(const onnx::ModelProto& model, const ModelSource& source, const CompileOptions& options) {
    Compilation compilation(model, source, options);
    compilation.lower();
    std::string text;
    for (const Problem& problem : compilation.problems()) text += (text.empty() ? "" : "\n") + problem.text;
    if (!text.empty()) throw Error(ErrorKind::bad_input, text);
    return compilation.finish();
}

}  // namespace assay::workloads
