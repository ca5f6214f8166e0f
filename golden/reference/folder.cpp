#include "golden/reference/folder.hpp"

#include <onnx/onnx_pb.h>

#include "support/error.hpp"

namespace assay::golden {
namespace {

/// Operators whose output's shape hangs on values of floats or of conditions.
const std::set<std::string> kShapeByData{"Compress", "NonMaxSuppression", "NonZero", "Range", "Resize", "StringSplit", "Unique", "Upsample"};

Numerics exact(const Step&, const void*) { return {}; }

}  // namespace

void Folder::add_input(const std::string& name, Value value, bool value_known) { known_[name] = Known{std::move(value), value_known, true, {name}}; }

const Folder::Known* Folder::find(const std::string& name) {
    // Depth first without recursion: a chain may be as long as the graph.
    std::vector<std::string> stack{name};
    while (!stack.empty()) {
        const std::string top = stack.back();
        if (known_.contains(top)) {
            stack.pop_back();
            continue;
        }
        if (const auto constant = graph_.constants.find(top); constant != graph_.constants.end()) {
            known_[top] = Known{constant->second, true, true, {}};
            continue;
        }
        const auto producer = graph_.producer.find(top);
        if (producer == graph_.producer.end()) {
            known_[top] = std::nullopt;
            continue;
        }
        const Step& step = graph_.steps[static_cast<std::size_t>(producer->second)];
        bool ready = true, possible = step.bodies.empty() && step.op.kernel;
        for (const std::string& input : step.inputs) {
            if (input.empty() || !possible) continue;
            const auto found = known_.find(input);
            if (found == known_.end()) {
                stack.push_back(input);
                ready = false;
            } else if (!found->second) {
                possible = false;
            }
        }
        if (!possible)
            known_[top] = std::nullopt;
        else if (ready)
            compute(step);
    }
    const auto& found = known_.at(name);
    return found ? &*found : nullptr;
}

void Folder::compute(const Step& step) {
    Known shared;
    shared.value_known = shared.shape_known = true;
    bool shape_known = !kShapeByData.contains(step.proto->op_type());
    const bool asks_shape = step.proto->op_type() == "Shape" || step.proto->op_type() == "Size";
    for (const std::string& input : step.inputs) {
        if (input.empty()) continue;
        const Known& known = *known_.at(input);
        shared.value_known &= asks_shape ? known.shape_known : known.value_known;
        // Integers may say how large the output is.
        shape_known &= known.shape_known && (known.value_known || known.value.floating() || asks_shape);
        shared.inputs.insert(known.inputs.begin(), known.inputs.end());
    }
    shared.shape_known = shape_known || shared.value_known;
    Env env(graph_);
    for (const std::string& input : step.inputs)
        if (!input.empty()) env.own[input] = known_.at(input)->value;
    try {
        evaluate(step, env, {exact, nullptr});
    } catch (const Error&) {
        // Zeros may not be what the node takes; and a true mistake is found, and told, when the graph runs.
        for (const std::string& output : step.outputs) known_[output] = std::nullopt;
        return;
    }
    for (const std::string& output : step.outputs) {
        if (output.empty()) continue;
        Known known = shared;
        known.value = std::move(env.own.at(output));
        known_[output] = std::move(known);
    }
}

}  // namespace assay::golden
