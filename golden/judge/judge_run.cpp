#include "golden/judge/judge_run.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "golden/judge/global.hpp"
#include "golden/judge/local.hpp"
#include "support/error.hpp"

namespace assay::golden {
namespace {

constexpr std::int64_t kMostClasses = 1000;
constexpr std::size_t kMoreDraws = 8;

LayerRule rule_of(const simkernel::Layer& layer) {
    if (layer.precision == "host") return {"fp32", 0};
    return {layer.precision, layer.k_slab, layer.x_scale, layer.w_scale, layer.x_zero};
}

LayerRules rules_of(const simkernel::Program& program, const Reference& reference) {
    LayerRules rules;
    // A node that was taken apart runs in several layers: how its products are made is what counts.
    for (const simkernel::Layer& layer : program.layers)
        for (const int node : layer.nodes) {
            if (node < 0 || node >= reference.node_count()) continue;
            const std::string output = reference.node_output(node);
            if (layer.macs > 0 || !rules.contains(output)) rules[output] = rule_of(layer);
        }
    return rules;
}

/// For nodes that no layer names, as folded ones: they matter to whole-network emulation alone. Formats with scales have none for them.
LayerRule otherwise_for(const std::string& policy) {
    if (policy == "bf16" || policy == "fp16") return {policy, 0};
    return {"bf16x3", 0};
}

LayerRules in_fp32(LayerRules rules) {
    for (auto& [output, rule] : rules)
        if (rule.precision != "int8") rule = {"fp32", 0};
    return rules;
}

/// All that judging one run needs, computed once.
struct Judge {
    const RunToJudge& run;
    Values computed;
    const Values& own;
    const Values& golden;
    Values emulation;
    double typical = 0;  ///< median relative error of the emulation over the layers' float tensors
    std::map<std::string, std::size_t> internal;  ///< tensors that are no values of the model: the layer that makes each

    explicit Judge(const RunToJudge& r)
        : run(r),
          computed(r.own ? Values{} : r.reference.run(r.inputs)),
          own(r.own ? *r.own : computed),
          golden(r.golden ? *r.golden : own),
          emulation(r.reference.emulate(r.inputs, rules_of(r.program, r.reference), otherwise_for(r.program.precision))),
          internal(maker_of_internal()) {
        std::vector<double> levels;
        for (const simkernel::Layer& layer : run.program.layers)
            for (const std::string& output : layer.outputs) {
                const auto value = own.find(output);
                const auto emulated = emulation.find(output);
                if (value != own.end() && emulated != emulation.end() && value->second.floating()) levels.push_back(rms_level(value->second, emulated->second));
            }
        if (levels.empty()) return;
        std::nth_element(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(levels.size() / 2), levels.end());
        typical = levels[levels.size() / 2];
    }

    std::uint64_t unwritten(const std::string& name) const {
        const auto found = run.unwritten.find(name);
        return found == run.unwritten.end() ? 0 : found->second;
    }
    const Tensor* device(const std::string& name) const {
        const auto found = run.device.find(name);
        return found == run.device.end() ? nullptr : &found->second;
    }
    bool is_output(const std::string& name) const {
        const auto& outputs = run.reference.outputs();
        return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
    }

    void add_global(TensorVerdict& verdict, const std::string& name, const Tensor& tensor) const {
        const auto g = golden.find(name), e = emulation.find(name);
        if (g == golden.end() || e == emulation.end()) {
            verdict.verdict = Verdict::error;
            verdict.reason = fmt::format("golden has no value '{}'", name);
            return;
        }
        TensorVerdict best = verdict;
        judge_global(best, tensor, {g->second, own.at(name), e->second, typical});
        // One emulation is one draw of the network's rounding errors, and some tensor of many is lucky in it. What looks too far off is measured
        // against further draws, and counts only when it is too far in all of them.
        for (std::size_t i = 0; i < kMoreDraws && best.global && ratio_of(best) > kGlobalPass; ++i) {
            TensorVerdict again = verdict;
            judge_global(again, tensor, {g->second, own.at(name), draw(i).at(name), typical});
            if (again.global && ratio_of(again) < ratio_of(best)) best = again;
        }
        verdict = best;
    }
    static double ratio_of(const TensorVerdict& v) { return std::max(v.global->r_rms, v.global->r_max); }
    const Values& draw(std::size_t i) const;
    mutable std::vector<Values> draws;  ///< made when first asked for

    TensorVerdict layer(std::size_t index, const std::string& output) const;
    void feed_node_inputs(LocalQuestion& question, const std::set<std::size_t>& asked) const;
    LocalQuestion question(std::size_t index, const std::string& output, std::string& absent) const;
    std::map<std::string, std::size_t> maker_of_internal() const;
    TensorVerdict output(const std::string& name) const;
    std::optional<TensorVerdict> published(const std::string& name, double fp32_level) const;
    double fp32_level() const;
    bool classifier(const std::string& name) const;
};

/// The emulation of inputs that differ in their last bit: the same network, other roundings. Integer inputs stay as they are.
const Values& Judge::draw(std::size_t i) const {
    while (draws.size() <= i) {
        std::map<std::string, Tensor> inputs = run.inputs;
        std::uint64_t bits = 0x9E3779B97F4A7C15u * (draws.size() + 1);
        for (auto& [name, tensor] : inputs) {
            if (tensor.dtype != DType::f32) continue;
            for (float& x : tensor.as<float>()) {
                bits = bits * 6364136223846793005u + 1442695040888963407u;
                if (std::isnormal(x)) x = std::nextafter(x, bits >> 63 ? HUGE_VALF : -HUGE_VALF);
            }
        }
        draws.push_back(run.reference.emulate(inputs, rules_of(run.program, run.reference), otherwise_for(run.program.precision)));
    }
    return draws[i];
}

std::map<std::string, std::size_t> Judge::maker_of_internal() const {
    std::set<std::string> names;
    for (const simkernel::TensorSlot& slot : run.program.tensors)
        if (slot.internal) names.insert(slot.name);
    std::map<std::string, std::size_t> makers;
    for (std::size_t i = 0; i < run.program.layers.size(); ++i)
        for (const std::string& output : run.program.layers[i].outputs)
            if (names.contains(output)) makers[output] = i;
    return makers;
}

/// Golden evaluates a node that was taken apart as a whole, with inputs that only other steps than those in question read: the values of an
/// attention whose scores are asked for, or its keys where the steps read them with the past in front.
void Judge::feed_node_inputs(LocalQuestion& question, const std::set<std::size_t>& asked) const {
    for (const std::size_t i : asked)
        for (const int node : run.program.layers[i].nodes)
            for (const std::string& input : run.reference.node_inputs(node)) {
                if (question.feeds.contains(input)) continue;
                const auto given = run.inputs.find(input);
                if (const Tensor* fed = device(input))
                    question.feeds[input] = *fed;
                else if (given != run.inputs.end())
                    question.feeds[input] = given->second;
            }
}

/// What the layer computes from, as the device had it. Where it reads a step of a node that was taken apart, the steps before it belong to the
/// question, down to values of the model.
LocalQuestion Judge::question(std::size_t index, const std::string& output, std::string& absent) const {
    LocalQuestion question{run.reference, output, {}, rule_of(run.program.layers[index]), &own};
    std::uint64_t macs = run.program.layers[index].macs;
    std::set<std::size_t> seen{index};
    std::vector<std::size_t> open{index};
    while (!open.empty()) {
        const simkernel::Layer& layer = run.program.layers[open.back()];
        open.pop_back();
        for (const std::string& input : layer.inputs) {
            if (const auto maker = internal.find(input); maker != internal.end()) {
                if (!seen.insert(maker->second).second) continue;
                open.push_back(maker->second);
                if (const simkernel::Layer& step = run.program.layers[maker->second]; step.macs > macs) {
                    macs = step.macs;
                    question.rule = rule_of(step);
                }
                continue;
            }
            const auto given = run.inputs.find(input);
            if (const Tensor* fed = device(input))
                question.feeds[input] = *fed;
            else if (given != run.inputs.end())
                question.feeds[input] = given->second;
            else
                absent = input;
        }
    }
    feed_node_inputs(question, seen);
    for (const simkernel::BoundInput& bound : run.program.bound_inputs) question.feeds[bound.name] = bound.value;
    return question;
}

TensorVerdict Judge::layer(std::size_t index, const std::string& output) const {
    const simkernel::Layer& layer = run.program.layers[index];
    TensorVerdict verdict;
    const Tensor* tensor = device(output);
    if (tensor) {
        std::string absent;
        const LocalQuestion question = this->question(index, output, absent);
        if (!run.reference.has_value(output)) {
            verdict.verdict = Verdict::error;
            verdict.reason = fmt::format("'{}' is not a value of the model", output);
        } else if (!absent.empty()) {
            verdict.verdict = Verdict::skip;
            verdict.reason = fmt::format("its input '{}' was not read from the device", absent);
        } else {
            try {
                verdict = judge_local(*tensor, question, unwritten(output));
            } catch (const Error& error) {
                verdict.verdict = Verdict::error;
                verdict.reason = error.what();
            }
        }
        // What was never written has no value to compare further.
        if (verdict.verdict != Verdict::error && unwritten(output) == 0) {
            const bool local = verdict.verdict != Verdict::skip;
            const std::string skipped = verdict.reason;
            if (!local) verdict.verdict = Verdict::miss;
            add_global(verdict, output, *tensor);
            if (!local && verdict.reason.empty()) verdict.reason = "the layer alone was not judged: " + skipped;
        }
    } else if (is_output(output)) {
        verdict.verdict = Verdict::miss;
        verdict.reason = "the output was not read from the device";
    } else {
        verdict.verdict = Verdict::skip;
        verdict.reason = "not probed";
    }
    verdict.role = "layer";
    verdict.name = output;
    verdict.layer = layer.name;
    verdict.layer_index = index;
    verdict.op = layer.op;
    verdict.precision = layer.precision;
    std::vector<std::string> nodes;
    for (const int node : layer.nodes)
        if (node >= 0 && node < run.reference.node_count()) nodes.push_back(run.reference.node_label(node));
    verdict.node = fmt::format("{}", fmt::join(nodes, ", "));
    return verdict;
}

TensorVerdict Judge::output(const std::string& name) const {
    TensorVerdict verdict;
    if (const Tensor* tensor = device(name)) {
        verdict.dtype = name_of(tensor->dtype);
        verdict.shape = to_string(tensor->shape);
        if (unwritten(name) > 0) {
            verdict.verdict = Verdict::fail;
            verdict.reason = fmt::format("{} of {} bytes were never written", unwritten(name), tensor->bytes.size());
        } else {
            add_global(verdict, name, *tensor);
            if (verdict.global) verdict.max_abs = verdict.global->max_abs;
        }
    } else {
        verdict.reason = "the output was not read from the device";
    }
    verdict.role = "output";
    verdict.name = name;
    return verdict;
}

/// A row of scores over 2 to 1000 classes. A tensor as large as an input of the model is a reconstruction, not a choice.
bool Judge::classifier(const std::string& name) const {
    const Shape& shape = own.at(name).shape;
    if (shape.size() != 2 || shape[1] < 2 || shape[1] > kMostClasses) return false;
    return std::none_of(run.inputs.begin(), run.inputs.end(),
                        [&](const auto& input) { return input.second.count() == element_count(shape); });
}

double Judge::fp32_level() const {
    const bool plain = run.program.precision == "native";  // the three-way split is fp32-grade: its emulation serves for both
    const Values computed_fp32 = plain ? Values{} : run.reference.emulate(run.inputs, in_fp32(rules_of(run.program, run.reference)), {"fp32", 0});
    const Values& fp32 = plain ? emulation : computed_fp32;
    double level = 0;
    for (const simkernel::Layer& layer : run.program.layers)
        for (const std::string& output : layer.outputs)
            if (run.reference.has_value(output)) level = std::max(level, relative_level(own.at(output), fp32.at(output)));
    return level;
}

std::optional<TensorVerdict> Judge::published(const std::string& name, double fp32_level) const {
    const auto want = run.published->find(name);
    const Tensor* tensor = device(name);
    if (want == run.published->end()) return std::nullopt;
    TensorVerdict verdict;
    if (tensor && unwritten(name) == 0)
        verdict = judge_published({*tensor, want->second, own.at(name), emulation.at(name), fp32_level, classifier(name)});
    else
        verdict.reason = "the output was not read whole from the device";
    verdict.role = "published";
    verdict.name = name;
    return verdict;
}

}  // namespace

RunVerdict judge_run(const RunToJudge& run) {
    const Judge judge(run);
    RunVerdict out;
    out.warnings = run.reference.warnings();
    std::vector<Verdict> verdicts;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < run.program.layers.size(); ++i)
        for (const std::string& output : run.program.layers[i].outputs) {
            if (judge.internal.contains(output)) continue;
            out.tensors.push_back(judge.layer(i, output));
            const TensorVerdict& verdict = out.tensors.back();
            const bool wrong_itself = verdict.verdict == Verdict::fail && (!verdict.local || verdict.local->failed > 0);
            if (wrong_itself && !out.first_failing) {
                out.first_failing = i;
                out.first_failing_layer = run.program.layers[i].name;
            }
        }
    for (const std::string& name : run.reference.outputs()) out.outputs.push_back(judge.output(name));
    if (run.published && !run.published->empty()) {
        const double level = judge.fp32_level();
        for (const auto& [name, tensor] : *run.published) {
            const auto& outputs = run.reference.outputs();
            if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
                throw Error(ErrorKind::bad_input, fmt::format("published output '{}': the model has no such output", name));
            if (auto verdict = judge.published(name, level)) out.outputs.push_back(std::move(*verdict));
        }
    }
    for (const auto* list : {&out.tensors, &out.outputs})
        for (const TensorVerdict& verdict : *list) {
            verdicts.push_back(verdict.verdict);
            elements += verdict.elements;
        }
    out.verdict = worst(verdicts);
    if (verdicts.empty()) {
        out.verdict = Verdict::error;
        out.reason = "nothing was compared: the program has no layers and the model no outputs";
    } else if (out.verdict == Verdict::pass && elements == 0) {
        out.verdict = Verdict::inconclusive;
        out.reason = "nothing but shapes was compared";
    }
    return out;
}

}  // namespace assay::golden
